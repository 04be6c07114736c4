// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Going on with the file of an instance that is no more.
 *
 *     perf.data.auxiliary │ first scan, or checkpoint │ side-band … │ ✝ │ the new instance's scan │ …
 *                         ├── in order, all ───────────────────────►│ model of now
 *                         └── in order, up to the ring's low watermark ──►│ model at the ring's tail
 *
 * What is younger than the low watermark is in the ring's frames, and comes when they are evicted. But for
 * what was evicted already though it is younger. File and ring got the same records in the same order, so
 * that is what stands in the file before the first record that the ring has; it is held back, and a dump
 * begins with it. Where that record is not found (the disk was full then), it is given up.
 *
 * Where the file was compacted after the low watermark, its checkpoint is the oldest that is known, and
 * counts as of the tail.
 */
#include "sideband/tracker_internal.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "perfdata/reader.h"
#include "perfdata/record.h"
#include "perfdata/writer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Before the oldest frame was opened: two rounds, at most a second apart, with time to spare. */
#define TWO_ROUNDS_NS (5 * FR_NSEC_PER_SEC)

struct replay {
	struct fr_tracker *tracker;
	uint64_t low_watermark_ns;
	uint64_t checkpoint_ns; /* of one that is younger than the low watermark; 0: none */
	bool begun, in_checkpoint;
	bool in_ring;	    /* from here on the ring has it, too */
	struct fr_buf late; /* evicted, and younger than the low watermark */
	uint64_t newest_ns, round_newest_ns;
};

/* Whether it was written by the instance that we go on with. Its head may be of events that the ring has
   nothing of any more; when they were opened anew, the file was told. */
static bool is_ours(const struct fr_tracker *k, const char *path)
{
	const struct perf_event_header *h;
	struct fr_reader *reader;
	struct fr_diag d = {0};
	bool ours = false;
	size_t seen = 0;

	if (fr_reader_open(path, &reader, &d) < 0)
		return false;
	while (!ours && fr_reader_next(reader, &h, NULL) == 1) {
		const struct fr_session *s = fr_reader_session(reader);

		if (s->n_events != seen)
			ours = fr_session_shares_id(s, &k->session);
		seen = s->n_events;
	}
	fr_reader_free(reader);
	return ours;
}

/* A file begins with a scan, of time 0, or with a checkpoint, all of which has one time. */
static void look_at_first(struct replay *p, uint64_t time_ns)
{
	p->begun = true;
	p->in_checkpoint = time_ns && time_ns >= p->low_watermark_ns;
	p->checkpoint_ns = time_ns;
}

static int apply(struct tracker_stage *s, const struct perf_event_header *h, uint64_t time_ns, bool now)
{
	return now || !time_ns ? fr_model_apply(s->model, h) : fr_reorder_add(&s->reorder, h, h->size);
}

static int replay_round(struct replay *p)
{
	struct fr_tracker *k = p->tracker;
	int r = tracker_advance(&k->head, p->round_newest_ns);

	if (r == 0)
		r = tracker_advance(&k->tail, FR_MIN(p->round_newest_ns, p->low_watermark_ns));
	p->round_newest_ns = p->newest_ns;
	p->in_checkpoint = false;
	return r;
}

static bool is_first_in_ring(const struct fr_tracker *k, const struct perf_event_header *h)
{
	const struct perf_event_header *first = k->config.adopt_first;

	return first && first->size == h->size && memcmp(first, h, h->size) == 0;
}

static int replay_at_tail(struct replay *p, const struct perf_event_header *h, uint64_t t)
{
	if (p->in_checkpoint || t < p->low_watermark_ns || !t)
		return apply(&p->tracker->tail, h, t, p->in_checkpoint);
	return p->in_ring || t >= p->low_watermark_ns + TWO_ROUNDS_NS ? 0
								      : fr_buf_append(&p->late, h, h->size);
}

static int replay_record(struct replay *p, const struct perf_event_header *h)
{
	uint64_t t;
	int r;

	if (h->type == FR_RECORD_FINISHED_ROUND)
		return replay_round(p);
	if (h->type >= FR_RECORD_USER_START || !fr_record_is_whole(h, h->size))
		return 0;
	t = fr_record_time(h);
	if (!p->begun)
		look_at_first(p, t);
	p->in_checkpoint &= t == p->checkpoint_ns;
	p->in_ring = p->in_ring || is_first_in_ring(p->tracker, h);
	p->newest_ns = FR_MAX(p->newest_ns, t);
	r = apply(&p->tracker->head, h, t, false);
	return r == 0 ? replay_at_tail(p, h, t) : r;
}

/* Returns how many bytes of the file are whole; 0: it is none of ours. */
static uint64_t replay(struct fr_tracker *k, struct replay *p)
{
	const struct perf_event_header *h;
	const struct fr_damage *damage;
	struct fr_reader *reader;
	struct fr_diag d = {0};
	uint64_t bytes;
	char path[32];
	int r = 0;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fr_auxfile_fd(k->file));
	if (!is_ours(k, path) || fr_reader_open(path, &reader, &d) < 0)
		return 0;
	while (r == 0 && fr_reader_next(reader, &h, NULL) == 1) {
		pthread_mutex_lock(&k->lock);
		r = replay_record(p, h) < 0 ? -ENOMEM : 0;
		pthread_mutex_unlock(&k->lock);
	}
	bytes = fr_auxfile_bytes(k->file);
	damage = fr_reader_damage(reader);
	if (damage->damaged)
		bytes = FR_MIN(bytes, damage->offset);
	fr_reader_free(reader);
	return bytes;
}

/* How many of E's ids, the newest first, KNOWN has not. */
static size_t count_new(const struct fr_event_desc *e, const struct fr_session *known)
{
	for (size_t n = 0; known && n < e->n_ids; n++)
		for (size_t i = 0; i < known->n_events; i++)
			if (known->events[i].n_ids && known->events[i].ids[0] == e->ids[n])
				return n;
	return e->n_ids;
}

void tracker_describe(struct fr_tracker *k, const struct fr_session *known)
{
	_cleanup_buf_ struct fr_buf b = {0};
	int r = 0;

	/* The records in the file are of no others; with and without build-ids they are two. */
	for (size_t i = 0; r == 0 && i < k->session.n_events; i++) {
		struct fr_event_desc e = k->session.events[i];

		e.n_ids = e.attr.comm ? count_new(&e, known) : 0;
		if (e.n_ids)
			r = fr_pipe_append_event(&e, &b);
	}
	k->compaction.described++;
	if (r == 0)
		tracker_file_append(k, b.data, b.len);
}

/* It was of somebody else: a head of its own, and what the models are told next is all there is. */
static void begin_anew(struct fr_tracker *k)
{
	_cleanup_buf_ struct fr_buf head = {0};

	if (fr_pipe_append_head(&k->session, &head) == 0 &&
		fr_auxfile_begin_anew(k->file, head.data, head.len) == 0)
		return;
	/* Two recordings in one file would be none. */
	(void)fr_auxfile_cut(k->file, 0);
	if (!head.len || fr_auxfile_append(k->file, head.data, head.len) < 0)
		atomic_fetch_add(&k->write_errors, 1);
}

bool tracker_adopt(struct fr_tracker *k)
{
	struct replay p = {.tracker = k, .low_watermark_ns = k->config.adopt_low_watermark_ns};
	uint64_t bytes = replay(k, &p);

	if (bytes) {
		(void)fr_auxfile_cut(k->file, bytes);
		tracker_describe(k, NULL);
	} else {
		begin_anew(k);
	}
	pthread_mutex_lock(&k->lock);
	(void)tracker_advance(&k->tail, p.low_watermark_ns);
	if (p.in_ring || !k->config.adopt_first)
		(void)fr_reorder_add(&k->tail.reorder, p.late.data, p.late.len);
	pthread_mutex_unlock(&k->lock);
	fr_buf_deinit(&p.late);
	k->newest_ns = k->round_newest_ns = FR_MAX(k->newest_ns, p.newest_ns);
	k->round_bytes = fr_auxfile_bytes(k->file);
	atomic_store(&k->file_bytes, k->round_bytes);
	tracker_compact_init(k, fr_monotonic_ns());
	/* What it has grown to says nothing of how small it may be. */
	k->compaction.checkpoint_bytes = 0;
	return bytes > 0;
}

int fr_tracker_set_session(struct fr_tracker *k, const struct fr_session *s, uint64_t sideband_id)
{
	struct fr_session copy = {0}, old;
	int r = fr_session_copy(s, &copy);

	if (r == 0)
		r = fr_session_join_equal_events(&copy);
	if (r < 0) {
		fr_session_deinit(&copy);
		return r;
	}
	pthread_mutex_lock(&k->lock);
	old = k->session_next;
	k->session_next = copy;
	k->sideband_id_next = sideband_id;
	pthread_mutex_unlock(&k->lock);
	fr_session_deinit(&old);
	return 0;
}

void tracker_take_session(struct fr_tracker *k)
{
	_cleanup_session_ struct fr_session old = {0};

	pthread_mutex_lock(&k->lock);
	if (k->session_next.n_events) {
		old = k->session;
		k->session = k->session_next;
		k->session_next = (struct fr_session){0};
		k->config.sideband_id = k->sideband_id_next;
	}
	pthread_mutex_unlock(&k->lock);
	if (old.n_events) {
		tracker_compact_stop_writing(k); /* it has the head of before */
		tracker_describe(k, &old);
	}
}
