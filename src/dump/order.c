// SPDX-License-Identifier: GPL-2.0-or-later
#include "dump/order.h"
#include "base/cleanup.h"

/* A reader keeps the bytes that wait in memory. */
#define WAITING_MAX (16ULL << 20)

static void next_frame(struct fr_order_source *s)
{
	s->begun = false;
	s->has_frame = fr_snapshot_next(s->snapshot, &s->frame) > 0;
}

void fr_order_init(struct fr_order *o, const struct fr_snapshots *s, bool no_rounds)
{
	*o = (struct fr_order){.n = s->n,
		.sideband = s->sideband,
		.no_rounds = no_rounds,
		.others_ns = UINT64_MAX,
		.waiting_max = WAITING_MAX};
	for (unsigned i = 0; i < s->n; i++) {
		o->sources[i].snapshot = s->of[i];
		next_frame(&o->sources[i]);
	}
}

void fr_order_add_record(struct fr_order *o, uint64_t ns)
{
	o->newest_ns = FR_MAX(o->newest_ns, ns);
}

void fr_order_add_round(struct fr_order *o)
{
	o->promised_ns = o->newest_ns;
	o->waiting = 0;
}

void fr_order_expect(struct fr_order *o, uint64_t ns)
{
	o->others_ns = ns;
}

static uint64_t newest_of(const struct fr_frame *f)
{
	return FR_MAX(f->last_ns, f->sideband_last_ns);
}

/* No record of S that has not been written is older than this time. */
static uint64_t low_of(const struct fr_order_source *s)
{
	if (!s->has_frame)
		return UINT64_MAX;
	return s->begun ? FR_MIN(s->done_ns + 1, s->next_low_ns) : s->frame.low_watermark_ns;
}

static bool may_round(const struct fr_order *o)
{
	for (unsigned i = 0; i < o->n; i++)
		if (low_of(&o->sources[i]) < o->promised_ns)
			return false;
	return o->others_ns >= o->promised_ns;
}

/* Returns the source whose next frame has the smallest newest time; NULL if there is no more frame. */
static struct fr_order_source *find_oldest(struct fr_order *o)
{
	struct fr_order_source *oldest = NULL;

	for (unsigned i = 0; i < o->n; i++) {
		struct fr_order_source *s = &o->sources[i];

		if (s->has_frame && (!oldest || newest_of(&s->frame) < newest_of(&oldest->frame)))
			oldest = s;
	}
	return oldest;
}

/* Returns a source that does not allow a FINISHED_ROUND, but would if a piece of its frame was written. */
static struct fr_order_source *find_blocker(struct fr_order *o)
{
	for (unsigned i = 0; i < o->n; i++) {
		struct fr_order_source *s = &o->sources[i];

		if (low_of(s) < o->promised_ns && newest_of(&s->frame) > o->newest_ns &&
			(!s->begun || s->done_ns < o->newest_ns))
			return s;
	}
	return NULL;
}

/* Sets RET to the records of S up to TO_NS that have not been written. */
static void take_piece(struct fr_order *o, struct fr_order_source *s, uint64_t to_ns, struct fr_piece *ret)
{
	*ret = (struct fr_piece){
		.frame = &s->frame,
		.ring = (unsigned)(s - o->sources),
		.sideband = s == &o->sources[o->sideband],
		.from_ns = s->begun ? s->done_ns + 1 : 0,
		.to_ns = to_ns,
		.last_ns = FR_MIN(newest_of(&s->frame), to_ns),
	};
	fr_order_add_record(o, ret->last_ns);
	o->waiting += s->frame.samples_raw + s->frame.sideband_raw;
	s->begun = true;
	s->done_ns = to_ns;
	s->next_low_ns = fr_snapshot_next_low_watermark(s->snapshot);
}

int fr_order_next(struct fr_order *o, struct fr_piece *ret)
{
	struct fr_order_source *s;
	bool round;

	for (unsigned i = 0; i < o->n; i++)
		if (o->sources[i].begun && o->sources[i].done_ns == UINT64_MAX)
			next_frame(&o->sources[i]);
	round = !o->no_rounds && may_round(o);
	if (round)
		fr_order_add_round(o);
	s = !o->no_rounds && o->waiting > o->waiting_max ? find_blocker(o) : NULL;
	if (s) {
		take_piece(o, s, o->newest_ns, ret);
		o->waiting = 0; /* so that each piece of this frame comes after many bytes of others */
	} else {
		s = find_oldest(o);
		if (!s)
			return 0;
		take_piece(o, s, UINT64_MAX, ret);
	}
	ret->round = round;
	return 1;
}
