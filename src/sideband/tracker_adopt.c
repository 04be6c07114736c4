// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Adoption: this instance continues the auxiliary file of the previous instance, and reads both process
 * models from the file.
 *
 *     perf.data.auxiliary │ first scan, or checkpoint │ side-band … │ end │ the new instance's scan │ …
 *                         ├── all ───────────────────────────────────►│ head model
 *                         └── up to the ring's low watermark ──►│ tail model
 *
 * The ring's low watermark is that of its oldest frame: no record in the ring is older. Most records that are
 * younger than the low watermark are in the ring. The other younger records were evicted already: in the
 * file, they are before the first record that the ring has. These evicted records stay pending in the tail
 * model. docs/design/33 gives the reasons.
 */
#include "sideband/tracker_internal.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "perfdata/reader.h"
#include "perfdata/record.h"
#include "perfdata/writer.h"

#include <stdio.h>
#include <string.h>

/* An evicted record can be younger than the low watermark, by at most this much: two rounds (passes of the
   recorder over the kernel rings) of at most a second each, and some reserve. */
#define TWO_ROUNDS_NS (5 * FR_NSEC_PER_SEC)

struct replay {
	struct fr_tracker *tracker;
	uint64_t low_watermark_ns;
	uint64_t checkpoint_ns; /* time of the first record; 0: the file begins with a scan */
	bool begun;
	/* The current record is part of a checkpoint that is younger than the low watermark. Such a record
	   goes into the tail model at once. */
	bool in_checkpoint;
	bool in_ring;	    /* the ring has the current record and all later records */
	struct fr_buf late; /* evicted records that are younger than the low watermark */
	uint64_t newest_ns, round_newest_ns;
};

/* Returns whether the file belongs to this recording: whether an event id in the file is an id of our
   session. When events are opened again, they get new ids. Our session may no longer have the oldest ids. But
   the file describes the ids of each opening, so the whole file is searched for ids. */
static bool is_of_this_recording(const struct fr_tracker *t, const char *path)
{
	const struct perf_event_header *h;
	struct fr_reader *reader;
	struct fr_diag d = {0};
	bool found = false;
	size_t seen = 0;

	if (fr_reader_open(path, &reader, &d) < 0)
		return false;
	while (!found && fr_reader_next(reader, &h, NULL) == 1) {
		const struct fr_session *s = fr_reader_session(reader);

		if (s->n_events != seen)
			found = fr_session_shares_id(s, &t->session);
		seen = s->n_events;
	}
	fr_reader_free(reader);
	return found;
}

static int replay_round(struct replay *p) FR_REQUIRES(p->tracker->lock)
{
	int r = tracker_advance(p->tracker, &p->tracker->head, p->round_newest_ns);

	if (r == 0)
		r = tracker_advance(
			p->tracker, &p->tracker->tail, FR_MIN(p->round_newest_ns, p->low_watermark_ns));
	p->round_newest_ns = p->newest_ns;
	p->in_checkpoint = false;
	return r;
}

/* Applies the record at once if the parameter `now` is true, or if the record is from the first scan (time
   0). Otherwise adds it to the pending records. */
static int add_to_stage(
	struct tracker_stage *s, const struct perf_event_header *h, uint64_t time_ns, bool now)
{
	return now || !time_ns ? fr_model_apply(s->model, h) : fr_reorder_add(&s->reorder, h, h->size);
}

static int add_to_tail(struct replay *p, const struct perf_event_header *h, uint64_t time_ns)
{
	if (p->in_checkpoint || time_ns < p->low_watermark_ns || !time_ns)
		return add_to_stage(&p->tracker->tail, h, time_ns, p->in_checkpoint);
	if (p->in_ring || time_ns >= p->low_watermark_ns + TWO_ROUNDS_NS)
		return 0;
	return fr_buf_append(&p->late, h, h->size);
}

static int replay_record(struct replay *p, const struct perf_event_header *h) FR_REQUIRES(p->tracker->lock)
{
	const struct perf_event_header *first = p->tracker->config.adopt_first;
	uint64_t time_ns;
	int r;

	if (h->type == FR_RECORD_FINISHED_ROUND)
		return replay_round(p);
	if (h->type >= FR_RECORD_USER_START || !fr_record_is_whole(h, h->size))
		return 0;
	time_ns = fr_record_time(h);
	if (!p->begun) {
		/* A file begins with a scan, whose records have time 0, or with a checkpoint, whose records
		   all have the same time, which is not 0. */
		p->begun = true;
		p->in_checkpoint = time_ns && time_ns >= p->low_watermark_ns;
		p->checkpoint_ns = time_ns;
	}
	p->in_checkpoint &= time_ns == p->checkpoint_ns;
	p->in_ring |= first && first->size == h->size && memcmp(first, h, h->size) == 0;
	p->newest_ns = FR_MAX(p->newest_ns, time_ns);
	r = add_to_stage(&p->tracker->head, h, time_ns, false);
	return r == 0 ? add_to_tail(p, h, time_ns) : r;
}

/* Reads both models from the file. Returns the size of the file up to its last whole record; 0 if the file
   belongs to another recording or cannot be read. */
static uint64_t replay(struct replay *p)
{
	const struct perf_event_header *h;
	const struct fr_damage *damage;
	struct fr_reader *reader;
	struct fr_diag d = {0};
	uint64_t bytes;
	char path[32];
	int r = 0;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fr_auxfile_fd(p->tracker->file));
	if (!is_of_this_recording(p->tracker, path) || fr_reader_open(path, &reader, &d) < 0)
		return 0;
	while (r == 0 && fr_reader_next(reader, &h, NULL) == 1) {
		fr_lock(&p->tracker->lock);
		r = replay_record(p, h);
		fr_unlock(&p->tracker->lock);
	}
	bytes = fr_auxfile_bytes(p->tracker->file);
	damage = fr_reader_damage(reader);
	if (damage->damaged)
		bytes = FR_MIN(bytes, damage->offset);
	fr_reader_free(reader);
	return bytes;
}

/* Returns the number of ids of E that are not in KNOWN. If KNOWN is NULL, returns the number of all ids of E.
   The ids of an event are sorted by opening, the newest first, so the new ids come first. */
static size_t count_new_ids(const struct fr_event_desc *e, const struct fr_session *known)
{
	for (size_t n = 0; known && n < e->n_ids; n++)
		for (size_t i = 0; i < known->n_events; i++)
			if (known->events[i].n_ids && known->events[i].ids[0] == e->ids[n])
				return n;
	return e->n_ids;
}

void tracker_describe(struct fr_tracker *t, const struct fr_session *known)
{
	_cleanup_buf_ struct fr_buf b = {0};
	int r = 0;

	/* All records in the file are of side-band events, so only these events are described. There are at
	   most two side-band events: one with build-ids and one without. */
	for (size_t i = 0; r == 0 && i < t->session.n_events; i++) {
		struct fr_event_desc e = t->session.events[i];

		e.n_ids = e.attr.comm ? count_new_ids(&e, known) : 0;
		if (e.n_ids)
			r = fr_pipe_append_event(&e, &b);
	}
	t->compaction.described++;
	if (r == 0)
		tracker_file_append(t, b.data, b.len);
}

/* Begins a new file, because the old file belongs to another recording or cannot be read. */
static void replace_file(struct fr_tracker *t)
{
	_cleanup_buf_ struct fr_buf head = {0};

	if (fr_pipe_append_head(&t->session, &head) == 0 &&
		fr_auxfile_replace(t->file, head.data, head.len) == 0)
		return;
	/* The old file could not be replaced. Remove its records, because a file with records of two
	   recordings would be unreadable. */
	(void)fr_auxfile_truncate(t->file, 0);
	if (!head.len || fr_auxfile_append(t->file, head.data, head.len) < 0)
		atomic_fetch_add(&t->write_errors, 1);
}

bool tracker_adopt(struct fr_tracker *t)
{
	struct replay p = {.tracker = t, .low_watermark_ns = t->config.adopt_low_watermark_ns};
	uint64_t bytes = replay(&p);

	if (bytes) {
		(void)fr_auxfile_truncate(t->file, bytes);
		tracker_describe(t, NULL);
	} else {
		replace_file(t);
	}
	fr_lock(&t->lock);
	(void)tracker_advance(t, &t->tail, p.low_watermark_ns);
	/* If the disk was full, the file may lack the first record of the ring. In this case it is not known
	   which records of p.late are also in the ring, so p.late is dropped. */
	if (p.in_ring || !t->config.adopt_first)
		(void)fr_reorder_add(&t->tail.reorder, p.late.data, p.late.len);
	fr_unlock(&t->lock);
	fr_buf_deinit(&p.late);
	t->newest_ns = t->round_newest_ns = FR_MAX(t->newest_ns, p.newest_ns);
	t->round_bytes = fr_auxfile_bytes(t->file);
	atomic_store(&t->file_bytes, t->round_bytes);
	tracker_compact_init(t, fr_monotonic_ns());
	/* tracker_compact_init() has stored the current size of the file as the size of its checkpoint. But
	   the size of the checkpoint of an adopted file is not known. */
	t->compaction.checkpoint_bytes = 0;
	return bytes > 0;
}

int fr_tracker_set_session(struct fr_tracker *t, const struct fr_session *s, uint64_t sideband_id)
{
	struct fr_session copy = {0}, old;
	int r = fr_session_copy(s, &copy);

	if (r == 0)
		r = fr_session_join_equal_events(&copy);
	if (r < 0) {
		fr_session_deinit(&copy);
		return r;
	}
	fr_lock(&t->lock);
	old = t->session_next;
	t->session_next = copy;
	t->sideband_id_next = sideband_id;
	fr_unlock(&t->lock);
	fr_session_deinit(&old);
	return 0;
}

void tracker_update_session(struct fr_tracker *t)
{
	_cleanup_session_ struct fr_session old = {0};

	fr_lock(&t->lock);
	if (t->session_next.n_events) {
		old = t->session;
		t->session = t->session_next;
		t->session_next = (struct fr_session){0};
		t->config.sideband_id = t->sideband_id_next;
	}
	fr_unlock(&t->lock);
	if (old.n_events) {
		tracker_compact_stop_writing(t); /* the head of the next file describes the old session */
		tracker_describe(t, &old);
	}
}
