// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Decides which pieces of AUX data the output gets. If a piece begins inside another piece of its queue, and
 * both have the same bytes there, these bytes are cut off its start. If the bytes differ, both pieces are
 * kept. There are two reasons for a difference. The event was opened again, and its offsets began at 0
 * again. Or the end of a piece is not data: it is padded with zeros to a multiple of 8, and the record does
 * not say how many bytes these are.
 */

#include "base/cleanup.h"
#include "base/file.h"
#include "merge/aux.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 65536u
/* The number of pieces with which a piece is compared. Normally there are 0 or 1. With more, it takes more
   than this many files that overlap at one place, or pieces with different bytes there, to miss a
   duplicate. */
#define OVERLAPPING_MAX 64

struct plan {
	struct fr_aux *a;
	struct fr_id_table used; /* the numbers of queues of the output, plus 1 */
	uint32_t next;		 /* the next number that no queue of the inputs has */
};

#define COMPARE(x, y)                                                                                        \
	do {                                                                                                 \
		if ((x) != (y))                                                                              \
			return (x) < (y) ? -1 : 1;                                                           \
	} while (0)

static int compare_queues(const struct fr_aux_piece *x, const struct fr_aux_piece *y, const struct fr_aux *a)
{
	COMPARE(a->recordings[x->input], a->recordings[y->input]);
	COMPARE(x->t.idx, y->t.idx);
	COMPARE(x->t.cpu, y->t.cpu);
	COMPARE(x->t.tid, y->t.tid);
	return 0;
}

static int compare_offsets(const struct fr_aux_piece *x, const struct fr_aux_piece *y)
{
	COMPARE(x->t.offset, y->t.offset);
	COMPARE(y->t.len, x->t.len); /* of pieces with the same start, the longest first */
	COMPARE(x->input, y->input);
	COMPARE(x->at, y->at);
	return 0;
}

static int compare_for_cut(const void *p, const void *q, void *ctx)
{
	const int r = compare_queues(p, q, ctx);

	return r != 0 ? r : compare_offsets(p, q);
}

/* The order in the output. */
static int compare_for_output(const void *p, const void *q, void *ctx)
{
	const struct fr_aux_piece *x = p, *y = q;
	const int r = compare_queues(x, y, ctx);

	if (r != 0)
		return r;
	COMPARE(x->opening, y->opening);
	return compare_offsets(x, y);
}

/* Returns 1 if the next N bytes of the inputs X and Y, at their places AT_X and AT_Y, are equal; 0 if they
   differ; or a negative errno. */
static int is_equal(const struct fr_aux *a, size_t x, uint64_t at_x, size_t y, uint64_t at_y, uint64_t n)
{
	static _Thread_local uint8_t bytes[2][BLOCK];
	const int fd_x = fr_reader_fd(a->inputs->v[x].reader), fd_y = fr_reader_fd(a->inputs->v[y].reader);

	for (uint64_t done = 0, len; done < n; done += len) {
		ssize_t got_x, got_y;

		len = FR_MIN(n - done, done ? (uint64_t)BLOCK : 512); /* most differences are at the start */
		got_x = fr_pread_all(fd_x, bytes[0], len, (off_t)(at_x + done));
		got_y = got_x < 0 ? got_x : fr_pread_all(fd_y, bytes[1], len, (off_t)(at_y + done));
		if (got_y < 0)
			return (int)got_y;
		if ((uint64_t)got_x < len || (uint64_t)got_y < len)
			return -EBADMSG;
		if (memcmp(bytes[0], bytes[1], len) != 0)
			return 0;
	}
	return 1;
}

/* Cuts off the bytes at the start of P that OTHER also has. Returns 0 or a negative errno. */
static int cut(struct fr_aux *a, const struct fr_aux_piece *other, struct fr_aux_piece *p)
{
	const uint64_t end = other->t.offset + other->t.len;
	uint64_t n;
	int r;

	if (p->t.offset < other->t.offset || p->t.offset >= end || p->t.len == 0)
		return 0;
	n = FR_MIN(end - p->t.offset, (uint64_t)p->t.len);
	r = is_equal(a, other->input, other->at + (p->t.offset - other->t.offset), p->input, p->at, n);
	if (r <= 0)
		return r;
	p->t.offset += n;
	p->t.len -= n;
	p->at += n;
	a->duplicates += n;
	return 0;
}

/* The pieces that the output gets and that a following piece can overlap. */
struct overlapping {
	struct fr_aux_piece v[OVERLAPPING_MAX];
	size_t n;
};

/* Removes the pieces that P, the next piece, cannot overlap. */
static void drop_passed(struct overlapping *o, const struct fr_aux_piece *p, const struct fr_aux *a)
{
	size_t kept = 0;

	for (size_t i = 0; i < o->n; i++)
		if (compare_queues(&o->v[i], p, a) == 0 && o->v[i].t.offset + o->v[i].t.len > p->t.offset)
			o->v[kept++] = o->v[i];
	o->n = kept;
}

/* Cuts P by all pieces of O. After a cut, P begins elsewhere, and a piece that did not overlap can do so now.
   No piece cuts twice, because P then begins at the end of this piece. */
static int cut_by_all(struct fr_aux *a, const struct overlapping *o, struct fr_aux_piece *p)
{
	size_t i = 0;

	while (i < o->n) {
		const uint64_t before = p->t.offset;
		const int r = cut(a, &o->v[i], p);

		if (r < 0)
			return r;
		i = p->t.offset != before ? 0 : i + 1;
	}
	return 0;
}

/* Cuts the pieces so that no byte is in two of them. Removes pieces of which nothing is left. */
static int remove_duplicates(struct fr_aux *a)
{
	struct fr_aux_piece *p = fr_aux_pieces(a);
	struct overlapping o = {.n = 0};
	size_t n = fr_aux_count(a), kept = 0;
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		struct fr_aux_piece one = p[i];

		drop_passed(&o, &one, a);
		r = cut_by_all(a, &o, &one);
		if (r < 0 || one.t.len == 0)
			continue;
		if (o.n == OVERLAPPING_MAX)
			memmove(o.v, o.v + 1, --o.n * sizeof(o.v[0]));
		o.v[o.n++] = one;
		p[kept++] = one;
	}
	a->pieces.len = kept * sizeof(*p);
	return r;
}

/* Returns the number of the queue of P in the output: its own number, if no other queue has it. */
static int number_queue(struct plan *plan, const struct fr_aux_piece *p, uint32_t *ret)
{
	const uint64_t wanted = (uint64_t)plan->a->first_queues[p->input] + p->t.idx;

	*ret = (uint32_t)wanted;
	if (p->t.idx > FR_AUX_QUEUE_MAX || fr_id_table_find(&plan->used, wanted + 1) != FR_ID_UNKNOWN)
		*ret = plan->next++;
	return fr_id_table_add(&plan->used, (uint64_t)*ret + 1, 0);
}

/* Removes the pieces of inputs that describe other hardware. */
static void remove_foreign(struct fr_aux *a)
{
	struct fr_aux_piece *p = fr_aux_pieces(a);
	size_t n = fr_aux_count(a), kept = 0;

	for (size_t i = 0; i < a->inputs->n; i++) {
		uint64_t bytes = 0;

		if (!fr_aux_is_foreign(a, i))
			continue;
		for (size_t k = 0; k < n; k++)
			bytes += p[k].input == i ? p[k].t.len : 0;
		if (bytes == 0)
			continue;
		a->inputs->v[i].incomplete = true;
		fr_merge_warn(a->options,
			"%s: %llu bytes of AUX data are left out, because they are of other hardware than "
			"those of %s, and perf can decode only one of the two. The file is kept",
			a->inputs->v[i].path, (unsigned long long)bytes, a->inputs->v[a->chosen].path);
	}
	for (size_t k = 0; k < n; k++)
		if (!fr_aux_is_foreign(a, p[k].input))
			p[kept++] = p[k];
	a->pieces.len = kept * sizeof(*p);
}

/* Gives the queues their numbers in the output. Two queues next to each other are compared by their old
   numbers, so LAST is a copy of the previous piece. */
static int number_queues(struct plan *plan)
{
	struct fr_aux_piece *p = fr_aux_pieces(plan->a), last;
	uint32_t number = 0;
	int r = 0;

	for (size_t i = 0; i < fr_aux_count(plan->a) && r == 0; i++) {
		if (i == 0 || compare_queues(&last, &p[i], plan->a) != 0)
			r = number_queue(plan, &p[i], &number);
		last = p[i];
		p[i].t.idx = number;
	}
	return r;
}

static void sort(struct fr_aux *a, int (*compare)(const void *p, const void *q, void *ctx))
{
	if (fr_aux_count(a) > 0)
		qsort_r(a->pieces.data, fr_aux_count(a), sizeof(struct fr_aux_piece), compare, a);
}

int fr_aux_plan(struct fr_aux *a)
{
	const struct fr_aux_piece *p = fr_aux_pieces(a);
	struct plan plan = {.a = a};
	int r;

	if (fr_aux_count(a) == 0)
		return 0;
	fr_aux_find_recordings(a);
	plan.next = a->n_queues;
	if (a->too_many)
		fr_merge_warn(a->options,
			"%llu bytes of AUX data are left out, because the inputs have more than %u pieces",
			(unsigned long long)a->too_many, FR_AUX_MAX);
	if (a->chosen == SIZE_MAX)
		fr_merge_warn(a->options,
			"no input has an AUXTRACE_INFO for its AUX data: perf reads the output only with "
			"--no-itrace");
	remove_foreign(a);
	for (size_t i = 0; i < fr_aux_count(a); i++)
		if (p[i].t.idx <= FR_AUX_QUEUE_MAX)
			plan.next = FR_MAX(plan.next, a->first_queues[p[i].input] + p[i].t.idx + 1);
	sort(a, compare_for_cut);
	r = remove_duplicates(a);
	sort(a, compare_for_output);
	if (r == 0)
		r = number_queues(&plan);
	fr_id_table_deinit(&plan.used);
	return r;
}
