// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecd/reopen.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/thread.h"
#include "flightrecd/change.h"
#include "flightrecd/stages.h"
#include "flightrecd/takeover.h"

#include <errno.h>

/* The pause between two attempts to open the events of the recorded cgroup again. If a service crashes in a
   loop, the events must not be opened in a loop, because it takes time to open all events. Opened events also
   get new ids. All files contain the old ids, too, until the ring has evicted all samples with old ids. */
#define PAUSE_MIN_NS (10 * FR_NSEC_PER_SEC)
#define PAUSE_MAX_NS (60 * FR_NSEC_PER_SEC)

/* Drops the closed events that are no longer used: the ring has no record of them, and neither have the
   records that the tracker has not written yet. The ring keeps the frames of a dump until the dump has been
   written, so an event of such a dump is still used. */
static void drop_closed_events(struct fr_daemon *m)
{
	struct fr_history_stats ring;
	struct fr_tracker_stats tracker;

	fr_rings_stats(&m->rings, &ring);
	fr_tracker_stats(m->tracker, &tracker);
	fr_session_drop_closed_events(
		&m->recording.session, FR_MIN(ring.low_watermark_ns, tracker.low_watermark_ns));
}

/* Excludes the threads of the daemon from the recording `next`. If the ring still has samples of older
   events, adds these events to the session of `next`. */
static int complete(struct fr_daemon *m, struct fr_recording *next, struct fr_diag *d)
{
	pid_t tids[FR_OWN_TIDS_MAX];
	int r = fr_capture_exclude_tids(next->capture, tids, fr_daemon_own_tids(m, tids), d);

	if (r < 0)
		return r;
	drop_closed_events(m);
	if (fr_session_add_older_events(&next->session, &m->recording.session) < 0)
		return fr_fail_errno(d, -ENOMEM, NULL, "cannot unite the events with the previous ones");
	return 0;
}

/* Gives the events of both recordings to the tracker, to the dumper, and to the daemon that runs after a
   restart. The files that they write after this call can have records of both recordings. */
static int announce(struct fr_daemon *m, struct fr_recording *next, struct fr_diag *d)
{
	const bool strip =
		fr_capture_has_overwrite(next->capture) || fr_capture_has_overwrite(m->recording.capture);
	int r = fr_tracker_set_session(m->tracker, &next->session, fr_session_sideband_id(&next->session));

	if (r >= 0)
		r = fr_dumper_set_session(m->dumper, &next->session, strip);
	if (r < 0)
		return fr_fail_errno(d, r, NULL, "cannot switch to the newly opened events");
	fr_session_deinit(&m->recording.session);
	m->recording.session = next->session;
	next->session = (struct fr_session){0};
	fr_daemon_store(m);
	return 0;
}

/* Swaps the recording of the daemon with `next`. The session of the daemon, which already has the events of
   both recordings, stays. */
static void put_in_place(struct fr_daemon *m, struct fr_recording *next, const struct fr_rings *rings)
{
	struct fr_recording old = m->recording;

	fr_lock(&m->parts_lock);
	fr_capture_inherit_counters(next->capture, old.capture, m->lost_before);
	m->recording = *next;
	m->recording.session = old.session;
	if (rings != &m->rings)
		fr_rings_take_named(&m->rings, rings);
	fr_unlock(&m->parts_lock);
	old.session = (struct fr_session){0};
	*next = old;
	fr_frequency_set_capture(&m->frequency, m->recording.capture);
	fr_switching_set_capture(&m->switching, m->recording.capture);
	fr_rates_reset(&m->rates);
	fr_rates_tick(&m->rates, m->recording.capture);
}

/* Marks the old events as closed. The old events make no further records, so a dump that has only later
   records does not need them. */
static void close_old_events(struct fr_daemon *m)
{
	fr_session_close_events(&m->recording.session, fr_monotonic_ns());
	/* If the dumper has no memory for its copy of the session, later dumps still contain the old
	   events. */
	(void)fr_dumper_set_session(
		m->dumper, &m->recording.session, fr_capture_has_overwrite(m->recording.capture));
}

int fr_daemon_switch(
	struct fr_daemon *m, struct fr_recording *next, const struct fr_rings *rings, struct fr_diag *d)
{
	int r = complete(m, next, d);
	unsigned stored = 0;

	fr_thread_assert(FR_THREAD_MAIN);
	if (r >= 0) {
		stored = fr_daemon_store_bpf(m, next->capture);
		r = announce(m, next, d);
	}
	if (r >= 0)
		r = fr_switching_prepare(&m->switching, next->capture, d);
	if (r >= 0)
		r = fr_frequency_prepare(&m->frequency, next->capture, d);
	if (r >= 0)
		r = fr_capture_enable(next->capture, FR_CAPTURE_SIDEBAND, d);
	if (r >= 0)
		r = fr_capture_enable(next->capture, FR_CAPTURE_SAMPLES, d);
	if (r >= 0)
		r = fr_recorder_switch(m->recorder, next->capture, rings, d);
	if (r < 0) {
		fr_bpf_store_remove(&m->handover.bpf, stored);
		return r;
	}
	put_in_place(m, next, rings);
	close_old_events(m);
	fr_daemon_store(m);
	fr_daemon_use_bpf(m, stored);
	return 0;
}

/* A change that opens the same events again, on the CPUs that are online. */
struct reopening {
	struct fr_recording_config open;
	char cpus[FR_CPU_LIST_SIZE];
	struct fr_recording next;
	enum fr_loss loss; /* on success, this loss is counted N times */
	unsigned n;
	int result;
	struct fr_diag diag;
};

static void prepare(void *ctx)
{
	struct reopening *x = ctx;

	x->result = fr_cpus_online(x->open.cpus, x->cpus, sizeof(x->cpus));
	if (x->result < 0) {
		fr_fail_errno(&x->diag, x->result, NULL, "cannot list the CPUs");
		return;
	}
	x->open.cpus = x->cpus;
	x->result = fr_recording_open(&x->open, &x->next, &x->diag);
}

static void report_cpus(struct fr_daemon *m, struct reopening *x)
{
	if (x->result >= 0) {
		fr_cpu_watch_opened(m->cpu_watch, x->n);
		/* A scan finds the processes that were forked on these CPUs before the events of these CPUs
		   were open. */
		fr_tracker_request_scan(m->tracker);
		if (m->triggers)
			fr_triggers_rearm_events(m->triggers);
		fr_log(LOG_NOTICE, "recording on %zu CPUs from now on",
			fr_capture_n_sampled_cpus(m->recording.capture));
	} else if (x->n > m->cpus_failed) {
		fr_diag_prefix(
			&x->diag, "CPUs that came online are not recorded yet; flightrecd tries again");
		fr_log_diag(LOG_ERR, &x->diag, x->result);
	}
	m->cpus_failed = x->result < 0 ? x->n : 0;
}

/* No scan of /proc is needed: side-band events are opened for whole CPUs and not for the cgroup, so no
   side-band is missing. */
static void report_cgroup(struct fr_daemon *m, struct reopening *x)
{
	struct fr_cgroup_retry *c = &m->cgroup_retry;

	if (x->result >= 0) {
		fr_log(LOG_NOTICE, "the cgroup %s was created again, and is recorded from now on",
			m->config->cgroup);
	} else if (!c->failed) {
		fr_diag_prefix(&x->diag,
			"the cgroup %s was created again, but is not recorded yet; flightrecd tries again",
			m->config->cgroup);
		fr_log_diag(LOG_ERR, &x->diag, x->result);
	}
	c->failed = x->result < 0;
}

static void finish(struct fr_daemon *m, void *ctx, bool aborted)
{
	struct reopening *x = ctx;

	if (!aborted && x->result >= 0)
		x->result = fr_daemon_switch(m, &x->next, &m->rings, &x->diag);
	if (x->result < 0 && !x->diag.code)
		fr_fail_errno(&x->diag, x->result, NULL, "cannot open the events");
	if (!aborted && x->result >= 0) {
		fr_lock(&m->parts_lock);
		m->lost_before[x->loss] += x->n;
		fr_unlock(&m->parts_lock);
	}
	if (!aborted && x->loss == FR_LOSS_CPU_CAME)
		report_cpus(m, x);
	else if (!aborted)
		report_cgroup(m, x);
	fr_recording_close(&x->next);
	free(x);
}

/* Begins a reopen. Returns true if the reopen was tried; false if another change is being prepared, or if
   there is no memory. */
static bool begin_reopen(struct fr_daemon *m, enum fr_loss loss, unsigned n)
{
	static const struct fr_change_ops ops = {prepare, finish};
	struct reopening *x = m->change ? NULL : calloc(1, sizeof(*x));
	int r;

	if (!x)
		return false;
	x->open = fr_daemon_recording_config(m);
	x->loss = loss;
	x->n = n;
	/* If fr_change_begin() returns 0, the change has begun and owns X. */
	r = fr_change_begin(m, &ops, x);
	if (r < 0) {
		x->result = r;
		finish(m, x, false);
	}
	return true;
}

static void on_cpus_came(void *ctx, unsigned n)
{
	struct fr_daemon *m = ctx;

	(void)begin_reopen(m, FR_LOSS_CPU_CAME, n);
}

static uint64_t next_pause(const struct fr_cgroup_retry *c, uint64_t now_ns)
{
	const bool soon = c->tried_ns && now_ns - c->tried_ns < 2 * c->pause_ns;

	return soon ? FR_MIN(2 * c->pause_ns, PAUSE_MAX_NS) : PAUSE_MIN_NS;
}

/* If the recorded cgroup was removed and created again, opens the events again: events of a removed cgroup
   record nothing, even if a new cgroup has the same name. */
static void follow_cgroup(struct fr_daemon *m)
{
	struct fr_cgroup_retry *c = &m->cgroup_retry;
	const uint64_t now_ns = fr_monotonic_ns();
	const char *path = m->config->cgroup;

	if (!path || now_ns - c->tried_ns < c->pause_ns ||
		!fr_capture_has_other_cgroup(m->recording.capture, path) ||
		!begin_reopen(m, FR_LOSS_CGROUP_CAME, 1))
		return;
	c->pause_ns = next_pause(c, now_ns);
	c->tried_ns = now_ns;
}

void fr_daemon_watch_cpus(struct fr_daemon *m)
{
	/* The events of a task follow the task to any CPU, also to a CPU that comes online later. So only
	   events of CPUs have to be opened again. */
	if (!fr_config_follows_tasks(m->config))
		(void)fr_cpu_watch_new(m->event, m->recording.capture, on_cpus_came, m, &m->cpu_watch);
}

void fr_daemon_reopen_tick(struct fr_daemon *m)
{
	fr_cpu_watch_tick(m->cpu_watch);
	follow_cgroup(m);
}
