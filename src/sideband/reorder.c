// SPDX-License-Identifier: GPL-2.0-or-later
#include "sideband/reorder.h"
#include "perfdata/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct entry {
	uint64_t time;
	size_t at; /* offset in `pending`; also the order of arrival */
};

static struct entry *entries(const struct fr_reorder *r)
{
	return (struct entry *)r->index.data;
}

static size_t count(const struct fr_reorder *r)
{
	return r->index.len / sizeof(struct entry);
}

static const struct perf_event_header *record_at(const struct fr_reorder *r, size_t i)
{
	return (const struct perf_event_header *)(r->pending.data + entries(r)[i].at);
}

static int by_time(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->at < y->at ? -1 : 1;
}

int fr_reorder_add(struct fr_reorder *r, const void *records, size_t len)
{
	const size_t index_before = r->index.len, base = r->pending.len;
	struct fr_record_iter it = fr_record_iter(records, len);
	const struct perf_event_header *h;
	int result = 0;

	while (result == 0 && (h = fr_record_next(&it))) {
		const struct entry e = {
			fr_record_time(h), base + (size_t)((const char *)h - (const char *)records)};
		const size_t n = count(r);

		r->is_sorted = n == 0 || (r->is_sorted && e.time >= entries(r)[n - 1].time);
		result = fr_buf_append(&r->index, &e, sizeof(e));
	}
	if (result == 0)
		result = fr_buf_append(&r->pending, records, (size_t)(it.at - (const uint8_t *)records));
	if (result < 0)
		r->index.len = index_before;
	return result;
}

static void sort(struct fr_reorder *r)
{
	if (!r->is_sorted && r->index.len)
		qsort(r->index.data, count(r), sizeof(struct entry), by_time);
	r->is_sorted = true;
}

/* Removes the released records from `pending`. If there is no memory, they stay there. */
static void compact(struct fr_reorder *r)
{
	struct fr_buf old = r->pending;

	r->spare.len = 0;
	if (fr_buf_reserve(&r->spare, old.len - r->released_bytes) < 0)
		return;
	for (size_t i = 0; i < count(r); i++) {
		const struct perf_event_header *h = record_at(r, i);

		entries(r)[i].at = r->spare.len;
		(void)fr_buf_append(&r->spare, h, h->size);
	}
	r->pending = r->spare;
	r->spare = old;
	r->released_bytes = 0;
}

static void drop_first(struct fr_reorder *r, size_t n)
{
	const size_t bytes = n * sizeof(struct entry);

	for (size_t i = 0; i < n; i++)
		r->released_bytes += record_at(r, i)->size;
	r->index.len -= bytes;
	memmove(r->index.data, r->index.data + bytes, r->index.len);
	if (2 * r->released_bytes >= r->pending.len)
		compact(r);
}

int fr_reorder_release(struct fr_reorder *r, uint64_t low_watermark_ns, fr_reorder_apply apply, void *ctx)
{
	size_t i = 0;
	int result = 0;

	sort(r);
	for (; i < count(r) && entries(r)[i].time < low_watermark_ns; i++) {
		int failed = apply(ctx, record_at(r, i));

		result = result < 0 ? result : failed;
	}
	if (i > 0)
		drop_first(r, i);
	return result;
}

int fr_reorder_write(struct fr_reorder *r, struct fr_buf *ret)
{
	if (fr_buf_reserve(ret, r->pending.len - r->released_bytes) < 0)
		return -ENOMEM;
	sort(r);
	for (size_t i = 0; i < count(r); i++) {
		const struct perf_event_header *h = record_at(r, i);

		(void)fr_buf_append(ret, h, h->size);
	}
	return 0;
}

void fr_reorder_deinit(struct fr_reorder *r)
{
	fr_buf_deinit(&r->pending);
	fr_buf_deinit(&r->spare);
	fr_buf_deinit(&r->index);
	*r = (struct fr_reorder){0};
}
