// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecd/takeover.h"
#include "base/log.h"
#include "capture/adopt.h"

#include <errno.h>
#include <string.h>

/* Returns whether the adopted rings have the samples of an opening of the event E. It need not be the newest
   opening: after a reload that has failed, the state can have an opening whose programs are gone. The
   programs that the store has make samples until now. */
static bool is_continued(const struct fr_daemon *m, const struct fr_event_desc *e)
{
	const struct fr_session *s = &m->handover.state.session;

	for (size_t i = 0; i < s->n_events; i++) {
		const struct fr_event_desc *o = &s->events[i];

		if (o->n_ids && memcmp(&o->attr, &e->attr, sizeof(o->attr)) == 0 &&
			!strcmp(o->name, e->name) && fr_capture_continues_id(m->recording.capture, o->ids[0]))
			return true;
	}
	return false;
}

/* Returns whether the adopted rings have the samples of all events that the previous instance recorded at its
   end. */
static bool has_all_events(const struct fr_daemon *m)
{
	const struct fr_session *s = &m->handover.state.session;

	for (size_t i = 0; i < s->n_events; i++) {
		const struct fr_event_desc *e = &s->events[i];
		const bool is_open = e->until_ns == 0 || e->until_ns == UINT64_MAX;

		if (is_open && e->n_ids && !fr_attr_is_sideband(&e->attr) && !is_continued(m, e))
			return false;
	}
	return true;
}

/* Closes the openings of the previous instances that make no samples any more. Otherwise, they would stay
   open until an instance has completed its start. */
static void close_ended_events(struct fr_daemon *m)
{
	struct fr_session *s = &m->recording.session;

	for (size_t i = 0; i < s->n_events; i++) {
		struct fr_event_desc *e = &s->events[i];

		if (e->until_ns == UINT64_MAX &&
			!(e->n_ids && fr_capture_continues_id(m->recording.capture, e->ids[0])))
			e->until_ns = fr_monotonic_ns();
	}
}

void fr_daemon_adopt_bpf(struct fr_daemon *m)
{
	struct fr_handover *h = &m->handover;
	const struct fr_adoption adoption = {
		.sets = h->bpf.old,
		.n = h->bpf.n_old,
		.session = &h->state.session,
		.newest = &h->newest_samples,
	};
	struct fr_diag d = {0};
	int r;

	if (!h->bpf.n_old)
		return;
	r = h->adopted ? fr_capture_adopt(m->recording.capture, &adoption, &d) : -ENOENT;
	if (r == 0) {
		h->continued =
			has_all_events(m) && !fr_handover_is_in_gap(h) ? FR_CONTINUED_ALL : FR_CONTINUED_SOME;
		close_ended_events(m);
		return;
	}
	if (r != -ENOENT) {
		fr_diag_prefix(&d, "there is a gap, because BPF programs of the previous instance cannot be "
				   "continued");
		fr_log_diag(LOG_NOTICE, &d, r);
	}
	fr_bpf_store_remove_old(&h->bpf);
	fr_session_close_events(&m->recording.session, fr_monotonic_ns());
}

unsigned fr_daemon_store_bpf(struct fr_daemon *m, struct fr_capture *capture)
{
	struct fr_bpf_fds fds;
	struct fr_diag d = {0};
	int r = m->handover.on ? fr_capture_bpf_fds(capture, &fds) : -ENOENT;

	if (r == 0) {
		r = fr_bpf_store_put(&m->handover.bpf, &fds, &d);
		fr_bpf_fds_free(&fds);
	}
	if (r < 0 && r != -ENOENT) {
		if (!d.code)
			fr_fail_errno(&d, r, NULL, "cannot list the BPF programs");
		fr_diag_prefix(&d, "a restart will have a gap");
		fr_log_diag(LOG_NOTICE, &d, r);
	}
	fr_capture_set_lives_on(capture, r > 0);
	return r > 0 ? (unsigned)r : 0;
}

void fr_daemon_use_bpf(struct fr_daemon *m, unsigned number)
{
	fr_bpf_store_remove(&m->handover.bpf, m->handover.bpf.current);
	m->handover.bpf.current = number;
}

/* The programs of the previous instance make no further samples that count. */
static int take_over(struct fr_daemon *m, uint64_t *ret_ns, struct fr_diag *d)
{
	uint64_t lost[_FR_LOSS_MAX] = {0};
	int r = fr_recorder_take_over(m->recorder, ret_ns, lost, d);

	if (r < 0)
		return r;
	fr_lock(&m->parts_lock);
	for (int i = 0; i < _FR_LOSS_MAX; i++)
		m->lost_before[i] += lost[i];
	fr_unlock(&m->parts_lock);
	fr_session_close_events(&m->recording.session, fr_monotonic_ns());
	/* If the dumper has no memory for its copy of the session, later dumps still contain the old events.
	 */
	(void)fr_dumper_set_session(
		m->dumper, &m->recording.session, fr_capture_has_overwrite(m->recording.capture));
	return 0;
}

int fr_daemon_begin_samples(struct fr_daemon *m, struct fr_diag *d)
{
	struct fr_capture *c = m->recording.capture;
	uint64_t since_ns = fr_monotonic_ns();
	int r;

	if (!fr_capture_has_adopted(c))
		fr_capture_begin(c, since_ns);
	r = fr_capture_enable(c, FR_CAPTURE_SAMPLES, d);
	if (r >= 0 && fr_capture_has_adopted(c))
		r = take_over(m, &since_ns, d);
	else
		since_ns = fr_monotonic_ns();
	if (r >= 0 && fr_handover_end_gap(&m->handover, since_ns))
		m->lost_before[FR_LOSS_RESTART]++;
	return r;
}
