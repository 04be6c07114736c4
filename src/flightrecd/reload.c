// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The configuration, read again, while recording goes on.
 *
 *     old rings ─────────────────────────┤ drained, closed
 *     new rings             ├ enabled ───┼──────────────►
 *                                        cut: what is older is the old ones', what is not is the new ones'
 *
 * So no record is missing, and none is there twice. The events of before stay in the session, as the ring has
 * samples of theirs. A ring of another size takes over while the recorder drains: history/resize.c.
 */
#include "base/cleanup.h"
#include "base/log.h"
#include "base/units.h"
#include "base/utf8.h"
#include "flightrecd/config_read.h"
#include "flightrecd/daemon.h"
#include "flightrecd/memory.h"
#include "flightrecd/triggers.h"
#include "perfdata/features.h"
#include "perfdata/tracing_data.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include <systemd/sd-daemon.h>

/* A scan of /proc holds the ring as it is; a machine with 100,000 processes takes that long. Where its
   records wait for a disk, it takes as long as the disk. */
#define HOLD_TIMEOUT_NS (2 * FR_NSEC_PER_SEC)
#define FIT_TRIES 10 /* at a start, each of as long */
/* Once in a change of the ring's size, for a tracker that waits for its disk: what it has no room for is
   counted, and healed. */
#define TRACKER_PATIENCE_MS 200
#define READ_TIMEOUT_NS (2 * FR_NSEC_PER_SEC)

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_events(const struct fr_config *a, const struct fr_config *b)
{
	if (a->n_events != b->n_events)
		return false;
	for (size_t i = 0; i < a->n_events; i++)
		if (!same_text(a->events[i].spec, b->events[i].spec) ||
			!same_text(a->events[i].filter, b->events[i].filter))
			return false;
	return a->defaults.frequency_hz == b->defaults.frequency_hz &&
	       a->defaults.period == b->defaults.period && a->defaults.call_graph == b->defaults.call_graph &&
	       a->defaults.dwarf_stack_bytes == b->defaults.dwarf_stack_bytes;
}

static bool same_capture(const struct fr_config *a, const struct fr_config *b)
{
	return same_events(a, b) && same_text(a->cpus, b->cpus) && same_text(a->cgroup, b->cgroup) &&
	       a->kernel_buffer_bytes == b->kernel_buffer_bytes &&
	       a->sideband_buffer_bytes == b->sideband_buffer_bytes &&
	       a->kernel_build_ids == b->kernel_build_ids;
}

static void __attribute__((format(printf, 2, 3))) note(cJSON *list, const char *fmt, ...)
{
	char text[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	cJSON_AddItemToArray(list, cJSON_CreateString(text));
}

/* What only a start can change. */
static void note_waiting(const struct fr_config *now, const struct fr_config *fresh, cJSON *waiting)
{
	const struct {
		const char *key;
		bool same;
	} keys[] = {
		{"Directory=", same_text(now->directory, fresh->directory)},
		{"ControlSocket=", same_text(now->socket, fresh->socket)},
		{"Group=", same_text(now->group, fresh->group)},
		{"CompressionLevel=", now->compression_level == fresh->compression_level},
		{"AuxiliaryMax=", now->auxiliary_max_bytes == fresh->auxiliary_max_bytes},
		{"AuxiliaryMaxAge=", now->auxiliary_max_age_ns == fresh->auxiliary_max_age_ns},
		{"CacheObjects=", now->cache_bytes == fresh->cache_bytes},
		{"CacheObjectMax=", now->cache_object_bytes == fresh->cache_object_bytes},
		{"MetricsListen=", same_text(now->metrics_listen, fresh->metrics_listen)},
	};

	for (size_t i = 0; i < FR_ARRAY_SIZE(keys); i++)
		if (!keys[i].same)
			note(waiting, "%s waits for a restart", keys[i].key);
}

/* A capture that is to take the place of the one that runs. */
struct next {
	struct fr_event_list events;
	struct fr_capture *capture;
	struct fr_session session;
	pid_t disturbed_pid;
};

static void next_deinit(struct next *n)
{
	fr_capture_free(n->capture);
	fr_session_deinit(&n->session);
	fr_event_list_deinit(&n->events);
}

/* Those that neither the ring nor what the tracker has not written yet has anything of. What a dump pins does
   not leave the ring. */
static void forget_events(struct fr_daemon *m)
{
	struct fr_history_stats ring;
	struct fr_tracker_stats file;

	fr_history_stats(m->history, &ring);
	fr_tracker_stats(m->tracker, &file);
	fr_session_drop_closed(&m->session, FR_MIN(ring.low_watermark_ns, file.low_watermark_ns));
}

static int open_next(struct fr_daemon *m, const struct fr_config *fresh, struct next *n, struct fr_diag *d)
{
	const struct fr_clock_pair pair = fr_clock_pair_now();
	pid_t tids[FR_OWN_TIDS_MAX];
	int r = fr_daemon_parse_events(fresh, &n->events, d);

	if (r >= 0)
		r = fr_daemon_open_capture(m, fresh, &n->events, &n->capture, &n->disturbed_pid, d);
	if (r >= 0)
		r = fr_capture_exclude_tids(n->capture, tids, fr_daemon_own_tids(m, tids), d);
	if (r < 0)
		return r;
	r = fr_capture_describe(n->capture, &n->session);
	if (r < 0)
		return fr_fail_errno(d, r, NULL, "cannot describe the events");
	r = fr_features_gather(&n->session, m->argc, m->argv, &pair, d);
	if (r >= 0)
		r = fr_tracing_data_gather(&n->session, d);
	if (r >= 0)
		forget_events(m);
	if (r >= 0 && fr_session_unite(&n->session, &m->session) < 0)
		r = fr_fail_errno(d, -ENOMEM, NULL, "cannot unite the events with those of before");
	return r;
}

/* From here on whoever writes a head has the events of both. */
static int announce(struct fr_daemon *m, struct next *n, struct fr_diag *d)
{
	const uint64_t sideband_id = n->session.events[n->session.n_events - 1].ids[0];
	const bool strip = fr_capture_has_overwrite(n->capture) || fr_capture_has_overwrite(m->capture);
	int r = fr_tracker_set_session(m->tracker, &n->session, sideband_id);

	if (r >= 0)
		r = fr_dumper_set_session(m->dumper, &n->session, strip);
	if (r < 0)
		return fr_fail_errno(d, r, NULL, "cannot take over other events");
	fr_session_deinit(&m->session);
	m->session = n->session;
	n->session = (struct fr_session){0};
	m->sideband_id = sideband_id;
	fr_handover_store(m);
	return 0;
}

/* All of the old rings is in the history by now: a dump that begins later is without what only they had. */
static void close_events(struct fr_daemon *m)
{
	fr_session_close_events(&m->session, fr_monotonic_ns());
	/* Without memory for a copy the dumps go on to name them. */
	(void)fr_dumper_set_session(m->dumper, &m->session, fr_capture_has_overwrite(m->capture));
}

static void forget_rates(struct fr_daemon *m)
{
	for (size_t i = 0; i < FR_ARRAY_SIZE(m->rate); i++) {
		free(m->rate[i].samples);
		m->rate[i] = (struct fr_counter_snapshot){0};
	}
}

static void put_in_place(struct fr_daemon *m, struct next *n)
{
	struct fr_capture *old = m->capture;
	struct fr_event_list events = m->events;

	pthread_rwlock_wrlock(&m->parts);
	fr_capture_go_on(n->capture, old, m->lost_before);
	m->capture = n->capture;
	pthread_rwlock_unlock(&m->parts);
	n->capture = old;
	m->events = n->events;
	n->events = events;
	m->disturbed_pid = n->disturbed_pid;
	fr_frequency_capture_changed(m);
	forget_rates(m);
	fr_status_tick(m);
}

static void take_capture_keys(struct fr_config *now, struct fr_config *fresh)
{
	const struct fr_config before = *now;

	now->events = fresh->events;
	now->n_events = fresh->n_events;
	now->defaults = fresh->defaults;
	now->cpus = fresh->cpus;
	now->cgroup = fresh->cgroup;
	now->kernel_buffer_bytes = fresh->kernel_buffer_bytes;
	now->sideband_buffer_bytes = fresh->sideband_buffer_bytes;
	now->kernel_build_ids = fresh->kernel_build_ids;
	fresh->events = before.events;
	fresh->n_events = before.n_events;
	fresh->cpus = before.cpus;
	fresh->cgroup = before.cgroup;
}

static int switch_capture(struct fr_daemon *m, const struct fr_config *fresh, struct fr_diag *d)
{
	_cleanup_(next_deinit) struct next n = {0};
	int r = open_next(m, fresh, &n, d);

	if (r >= 0)
		r = announce(m, &n, d);
	if (r >= 0)
		r = fr_frequency_prepare(m, n.capture, d);
	if (r >= 0)
		r = fr_capture_enable(n.capture, FR_CAPTURE_SIDEBAND, d);
	if (r >= 0)
		r = fr_capture_enable(n.capture, FR_CAPTURE_SAMPLES, d);
	if (r >= 0)
		r = fr_recorder_switch(m->recorder, n.capture, d);
	if (r < 0)
		return r;
	put_in_place(m, &n);
	close_events(m);
	return 0;
}

int fr_daemon_reopen(struct fr_daemon *m, char *cpus, enum fr_loss came, unsigned n, struct fr_diag *d)
{
	struct fr_config here = *m->config; /* borrowed: but for CPUS */
	int r;

	here.cpus = cpus;
	r = switch_capture(m, &here, d);
	if (r < 0)
		return r;
	pthread_rwlock_wrlock(&m->parts);
	m->lost_before[came] += n;
	pthread_rwlock_unlock(&m->parts);
	/* Side-band is of whole CPUs, whatever the cgroup. */
	if (came != FR_LOSS_CPU_CAME)
		return 0;
	/* What was forked and mapped there meanwhile. */
	fr_tracker_request_scan(m->tracker);
	if (m->triggers)
		fr_triggers_rearm_events(m->triggers);
	return 0;
}

static int wait_for_ring(struct fr_daemon *m)
{
	const uint64_t until = fr_monotonic_ns() + HOLD_TIMEOUT_NS;
	const struct timespec ts = {(time_t)(until / FR_NSEC_PER_SEC), (long)(until % FR_NSEC_PER_SEC)};

	return -pthread_mutex_clocklock(&m->hold, CLOCK_MONOTONIC, &ts);
}

struct moving {
	struct fr_daemon *m;
	bool tracker_waits; /* for its disk: waited for in vain */
};

static void store_new_ring(void *ctx, int fd)
{
	const struct moving *x = ctx;

	fr_handover_add_ring(x->m, fd);
}

/* What was evicted goes to the tracker through a queue that is bounded; and the service manager is told that
   the main thread lives, as long as the recorder does. */
static void while_it_moves(void *ctx)
{
	const struct timespec ms = {.tv_nsec = (long)FR_NSEC_PER_MSEC};
	struct moving *x = ctx;

	for (unsigned i = 0;
		i < TRACKER_PATIENCE_MS && !x->tracker_waits && fr_tracker_is_behind(x->m->tracker); i++)
		nanosleep(&ms, NULL);
	x->tracker_waits |= fr_tracker_is_behind(x->m->tracker);
	if (x->m->watchdog_usec)
		fr_daemon_feed_watchdog(x->m);
}

static int resize(struct fr_daemon *m, uint64_t bytes, struct fr_history_adopted *what, struct fr_diag *d)
{
	struct moving moving = {.m = m};
	const struct fr_recorder_resize calls = {store_new_ring, while_it_moves, &moving};
	int r = wait_for_ring(m);

	if (r < 0)
		return fr_fail_errno(
			d, -EBUSY, "try again", "the ring cannot change its size during a scan of /proc");
	pthread_rwlock_wrlock(&m->parts);
	r = fr_recorder_resize(m->recorder, &m->history, bytes, &calls, what, d);
	pthread_rwlock_unlock(&m->parts);
	pthread_mutex_unlock(&m->hold);
	return r;
}

/* The old one stays where this fails: a dump of it is being made, or the memory is not there. */
static int give_size(struct fr_daemon *m, const struct fr_config *c, struct fr_history_adopted *what)
{
	const uint64_t now = fr_history_size(m->history);
	struct fr_memory memory;
	int r;

	m->ring_kept = (struct fr_diag){0};
	fr_memory_look("", &memory);
	r = fr_memory_check_ring(&memory, now, c->ring_bytes, c->ring_origin, &m->ring_kept);
	if (r == 0)
		r = resize(m, c->ring_bytes, what, &m->ring_kept);
	if (r < 0) {
		if (!m->ring_kept.code)
			fr_fail_errno(&m->ring_kept, r, NULL, "the ring cannot change its size");
		return r;
	}
	m->handover.ring_number += !what->in_place;
	fr_handover_store(m);
	return 0;
}

static void change_ring(struct fr_daemon *m, const struct fr_config *fresh, cJSON *changed, cJSON *waiting)
{
	struct fr_history_adopted what = {0};
	char size[FR_UNIT_SIZE];

	if (give_size(m, fresh, &what) < 0) {
		note(waiting, "RingSize= stays at %s: %s%s%s",
			fr_size_format(fr_history_size(m->history), size), m->ring_kept.what,
			m->ring_kept.hint[0] ? "; " : "", m->ring_kept.hint);
		return;
	}
	m->config->ring_bytes = fresh->ring_bytes;
	note(changed, "RingSize= is %s, with %llu samples of before%s",
		fr_size_format(fresh->ring_bytes, size), (unsigned long long)what.samples,
		what.frames_left_out ? "; the oldest did not fit" : "");
}

void fr_daemon_fit_ring(struct fr_daemon *m)
{
	const uint64_t now = fr_history_size(m->history);
	struct fr_history_adopted what = {0};
	char size[FR_UNIT_SIZE];
	int r = -EBUSY;

	if (now == fr_history_whole_pages(m->config->ring_bytes))
		return;
	fr_size_format(now, size);
	/* The first scan of /proc may just be going on. */
	for (unsigned i = 0; i < FIT_TRIES && r == -EBUSY; i++)
		r = give_size(m, m->config, &what);
	if (r < 0) {
		m->config->ring_bytes = now;
		fr_log(LOG_WARNING, "RingSize= stays at %s: %s%s%s", size, m->ring_kept.what,
			m->ring_kept.hint[0] ? "; " : "", m->ring_kept.hint);
		return;
	}
	fr_log(LOG_INFO, "the ring of %s that the instance before left is one of another size now%s", size,
		what.frames_left_out ? "; the oldest did not fit" : "");
}

static void take_simple_keys(struct fr_daemon *m, const struct fr_config *fresh)
{
	struct fr_config *now = m->config;

	now->dump_compress = fresh->dump_compress;
	now->window_ns = fresh->window_ns;
	now->post_trigger_ns = fresh->post_trigger_ns;
	now->retention = fresh->retention;
	now->keep_failed = fresh->keep_failed;
	fr_dumper_set(m->dumper, &(struct fr_dumper_settings){now->retention, now->keep_failed});
	now->block_bytes = fresh->block_bytes;
	now->queue_depth = fresh->queue_depth;
	now->log_level = fresh->log_level;
	fr_log_set_level(now->log_level);
	fr_frequency_reload(m, fresh->cpu_budget_ppm);
}

static int take(struct fr_daemon *m, struct fr_config *fresh, struct fr_reloaded *ret, struct fr_diag *d)
{
	bool capture = !same_capture(m->config, fresh);
	int r;

	if (capture && m->config->command) {
		note(ret->waiting, "the events of a command are those that it was started with");
		capture = false;
	}
	if (capture) {
		r = switch_capture(m, fresh, d);
		if (r < 0)
			return r;
		take_capture_keys(m->config, fresh);
		note(ret->changed, "records %s%s on %zu CPUs", fr_capture_event_name(m->capture, 0),
			fr_capture_n_events(m->capture) > 2 ? " and more" : "",
			fr_capture_n_sampled(m->capture));
	}
	r = fr_daemon_triggers_reload(m, fresh);
	if (r < 0)
		return r;
	if (fresh->ring_bytes != m->config->ring_bytes)
		change_ring(m, fresh, ret->changed, ret->waiting);
	note_waiting(m->config, fresh, ret->waiting);
	take_simple_keys(m, fresh);
	return 0;
}

static void log_reloaded(const struct fr_reloaded *what)
{
	const cJSON *line;

	fr_log_struct(LOG_INFO, FR_MSG_RELOADED, NULL, 0, "configuration reloaded");
	cJSON_ArrayForEach (line, what->changed)
		fr_log(LOG_INFO, "%s", cJSON_GetStringValue(line));
	cJSON_ArrayForEach (line, what->waiting)
		fr_log(LOG_NOTICE, "%s", cJSON_GetStringValue(line));
}

void fr_daemon_refuse_config(struct fr_diag *ret, const struct fr_diag *why)
{
	*ret = *why;
	fr_utf8_tidy(ret->what); /* it quotes a file that may be anything */
	fr_utf8_tidy(ret->hint);
	fr_log_struct(LOG_ERR, FR_MSG_OLD_CONFIG, NULL, 0,
		"the configuration cannot be used, that of before stays in force: %s%s%s", ret->what,
		ret->hint[0] ? "\n  " : "", ret->hint);
}

/* What waits for a restart has not been tried: it is not what to go back to. */
static void keep(struct fr_daemon *m, struct fr_config *fresh, const struct fr_reloaded *what)
{
	const struct fr_buf text = m->config->text;

	m->refused = (struct fr_diag){0};
	m->config->text = fresh->text;
	fresh->text = text;
	if (cJSON_GetArraySize(what->waiting) == 0)
		fr_handover_keep_config(m);
	fr_handover_update(m);
}

int fr_daemon_reload(struct fr_daemon *m, struct fr_reloaded *ret, struct fr_diag *d)
{
	struct fr_config fresh;
	int r;

	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu",
		(unsigned long long)(fr_monotonic_ns() / FR_NSEC_PER_USEC));
	*ret = (struct fr_reloaded){cJSON_CreateArray(), cJSON_CreateArray()};
	fr_config_init(&fresh);
	r = fr_config_read_within(READ_TIMEOUT_NS, &fresh, m->argc, m->argv, d);
	if (r >= 0)
		r = take(m, &fresh, ret, d);
	if (r >= 0) {
		keep(m, &fresh, ret);
		log_reloaded(ret);
	} else {
		if (!d->code)
			fr_fail_errno(d, r, NULL, "the configuration cannot be taken over");
		fr_daemon_refuse_config(&m->refused, d);
	}
	fr_config_deinit(&fresh);
	sd_notify(0, "READY=1");
	return r < 0 ? r : 0;
}

void fr_reloaded_deinit(struct fr_reloaded *what)
{
	cJSON_Delete(what->changed);
	cJSON_Delete(what->waiting);
	*what = (struct fr_reloaded){0};
}
