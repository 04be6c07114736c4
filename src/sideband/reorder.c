// SPDX-License-Identifier: GPL-2.0-or-later
#include "sideband/reorder.h"
#include "perfdata/record.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int by_time(const void *a, const void *b)
{
	const struct fr_reorder_entry *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->at < y->at ? -1 : 1;
}

static int add_entry(struct fr_reorder *r, uint64_t time, size_t at)
{
	if (r->n == r->cap) {
		size_t cap = r->cap ? 2 * r->cap : 256;
		struct fr_reorder_entry *grown = reallocarray(r->index, cap, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		r->index = grown;
		r->cap = cap;
	}
	if (r->n == 0)
		r->sorted = true;
	else if (time < r->index[r->n - 1].time)
		r->sorted = false;
	r->index[r->n++] = (struct fr_reorder_entry){time, at};
	return 0;
}

int fr_reorder_add(struct fr_reorder *r, const void *records, size_t len)
{
	const uint8_t *p = records;
	size_t n = r->n, base = r->held.len, at = 0;
	int k = 0;

	while (k == 0 && fr_record_is_whole(p + at, len - at)) {
		const struct perf_event_header *h = (const void *)(p + at);

		k = add_entry(r, fr_record_time(h), base + at);
		at += h->size;
	}
	if (k == 0)
		k = fr_buf_append(&r->held, records, at);
	if (k < 0)
		r->n = n;
	return k;
}

static void sort(struct fr_reorder *r)
{
	if (!r->sorted && r->n)
		qsort(r->index, r->n, sizeof(*r->index), by_time);
	r->sorted = true;
}

static const struct perf_event_header *record_of(const struct fr_reorder *r, size_t i)
{
	return (const struct perf_event_header *)(r->held.data + r->index[i].at);
}

/* What is still held moves together, in order. Without memory for that, it stays where it is. */
static void compact(struct fr_reorder *r)
{
	struct fr_buf old = r->held;

	r->spare.len = 0;
	if (fr_buf_reserve(&r->spare, old.len - r->dead) < 0)
		return;
	for (size_t i = 0; i < r->n; i++) {
		const struct perf_event_header *h = record_of(r, i);

		r->index[i].at = r->spare.len;
		(void)fr_buf_append(&r->spare, h, h->size);
	}
	r->held = r->spare;
	r->spare = old;
	r->dead = 0;
}

/* The first N have gone. Their bytes follow when they are the half of all. */
static void drop_first(struct fr_reorder *r, size_t n)
{
	for (size_t i = 0; i < n; i++)
		r->dead += record_of(r, i)->size;
	r->n -= n;
	memmove(r->index, r->index + n, r->n * sizeof(*r->index));
	if (2 * r->dead >= r->held.len)
		compact(r);
}

int fr_reorder_release(struct fr_reorder *r, uint64_t low_watermark_ns, fr_reorder_apply apply, void *ctx)
{
	size_t i = 0;
	int k = 0;

	sort(r);
	for (; i < r->n && r->index[i].time < low_watermark_ns; i++) {
		int failed = apply(ctx, record_of(r, i));

		k = k < 0 ? k : failed;
	}
	if (i > 0)
		drop_first(r, i);
	return k;
}

int fr_reorder_write(struct fr_reorder *r, struct fr_buf *ret)
{
	if (fr_buf_reserve(ret, r->held.len - r->dead) < 0)
		return -ENOMEM;
	sort(r);
	for (size_t i = 0; i < r->n; i++) {
		const struct perf_event_header *h = record_of(r, i);

		(void)fr_buf_append(ret, h, h->size);
	}
	return 0;
}

void fr_reorder_deinit(struct fr_reorder *r)
{
	fr_buf_deinit(&r->held);
	fr_buf_deinit(&r->spare);
	free(r->index);
	*r = (struct fr_reorder){0};
}
