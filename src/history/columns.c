// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The encoded section (docs/design/27):
 *
 *     struct head │ records, the samples without their times │ columns: the low byte of each difference, …
 */
#include "history/columns.h"
#include "perfdata/record.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define TIME_AT offsetof(struct fr_sample, time)
#define AFTER_TIME (TIME_AT + sizeof(uint64_t))

struct head {
	uint32_t n;	  /* number of samples */
	uint32_t n_bytes; /* number of columns: bytes that the largest difference needs */
	uint64_t start;	  /* the difference of the first sample is to this time */
};

struct fr_columns {
	size_t max_bytes;
	uint8_t *encoded;
	uint64_t *differences;
};

int fr_columns_new(size_t max_bytes, struct fr_columns **ret)
{
	struct fr_columns *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->max_bytes = max_bytes;
	c->encoded = malloc(fr_columns_bound(max_bytes));
	c->differences = malloc(max_bytes / sizeof(struct fr_sample) * sizeof(*c->differences));
	if (!c->encoded || !c->differences) {
		fr_columns_free(c);
		return -ENOMEM;
	}
	*ret = c;
	return 0;
}

struct fr_columns *fr_columns_free(struct fr_columns *c)
{
	if (!c)
		return NULL;
	free(c->encoded);
	free(c->differences);
	free(c);
	return NULL;
}

size_t fr_columns_bound(size_t len)
{
	return sizeof(struct head) +
	       len; /* each sample gives away 8 bytes, and gets up to 8 bytes in columns */
}

/* Maps small differences of both signs to small numbers: 0, -1, 1, -2 … to 0, 1, 2, 3 … */
static uint64_t from_signed(uint64_t x)
{
	return (x << 1) ^ (0 - (x >> 63));
}

static uint64_t to_signed(uint64_t x)
{
	return (x >> 1) ^ (0 - (x & 1));
}

static uint32_t count_bytes(uint64_t x)
{
	return x ? (71 - (uint32_t)__builtin_clzll(x)) / 8 : 0;
}

/* Copies the records without the times of the samples to OUT, and the differences of the times to
   c->differences. Fills HEAD. Returns the end of the copied records; NULL if the records are not whole. */
static uint8_t *take_times(
	struct fr_columns *c, const void *records, size_t len, uint8_t *out, struct head *head)
{
	struct fr_record_iter it = fr_record_iter(records, len);
	const struct perf_event_header *record;
	uint64_t before = 0, bits = 0;
	uint32_t n = 0;

	while ((record = fr_record_next(&it))) {
		const size_t size = record->size;
		const uint8_t *bytes = (const uint8_t *)record;
		uint64_t time;

		if (record->type != PERF_RECORD_SAMPLE) {
			memcpy(out, bytes, size);
			out += size;
			continue;
		}
		time = ((const struct fr_sample *)record)->time;
		memcpy(out, bytes, TIME_AT);
		memcpy(out + TIME_AT, bytes + AFTER_TIME, size - AFTER_TIME);
		out += size - sizeof(time);
		if (n == 0)
			head->start = before = time;
		c->differences[n] = from_signed(time - before);
		bits |= c->differences[n++];
		before = time;
	}
	head->n = n;
	head->n_bytes = count_bytes(bits);
	return it.at == it.end ? out : NULL;
}

static uint8_t *put_columns(const uint64_t *differences, const struct head *head, uint8_t *out)
{
	for (uint32_t b = 0; b < head->n_bytes; b++)
		for (uint32_t i = 0; i < head->n; i++)
			*out++ = (uint8_t)(differences[i] >> 8 * b);
	return out;
}

size_t fr_columns_encode(
	struct fr_columns *c, const void *records, size_t len, const void **ret, size_t *ret_columns)
{
	struct head head = {0};
	uint8_t *out;

	if (len > c->max_bytes)
		return 0;
	out = take_times(c, records, len, c->encoded + sizeof(head), &head);
	if (!out)
		return 0;
	memcpy(c->encoded, &head, sizeof(head));
	*ret_columns = (size_t)(out - c->encoded);
	out = put_columns(c->differences, &head, out);
	*ret = c->encoded;
	return (size_t)(out - c->encoded);
}

/* The state of fr_columns_decode(). */
struct decoder {
	struct head head;
	const uint8_t *columns;
	uint32_t i; /* number of samples that are restored */
	uint64_t time;
};

static uint64_t next_time(struct decoder *d)
{
	uint64_t difference = 0;

	for (uint32_t b = 0; b < d->head.n_bytes; b++)
		difference |= (uint64_t)d->columns[(size_t)b * d->head.n + d->i] << 8 * b;
	d->i++;
	d->time += to_signed(difference);
	return d->time;
}

/* Restores the record at SRC, which has at most LEFT bytes, to DST, which has room for CAP bytes. Returns the
   size of the record; or 0 if it is not valid. */
static size_t restore_record(struct decoder *d, const uint8_t *src, size_t left, uint8_t *dst, size_t cap)
{
	const struct perf_event_header *record = (const struct perf_event_header *)src;
	const bool is_sample = left >= sizeof(*record) && record->type == PERF_RECORD_SAMPLE;
	uint64_t time;

	if (left < sizeof(*record) || record->size % 8 || record->size > cap ||
		record->size < (is_sample ? sizeof(struct fr_sample) : sizeof(*record)))
		return 0;
	if (!is_sample) {
		if (record->size > left)
			return 0;
		memcpy(dst, src, record->size);
		return record->size;
	}
	if (record->size - sizeof(time) > left || d->i == d->head.n)
		return 0;
	time = next_time(d);
	memcpy(dst, src, TIME_AT);
	memcpy(dst + TIME_AT, &time, sizeof(time));
	memcpy(dst + AFTER_TIME, src + TIME_AT, record->size - AFTER_TIME);
	return record->size;
}

ssize_t fr_columns_decode(const void *src, size_t len, void *dst, size_t cap)
{
	const uint8_t *at = src, *end;
	struct decoder d = {0};
	size_t left = cap;

	if (len < sizeof(d.head))
		return -EBADMSG;
	memcpy(&d.head, src, sizeof(d.head));
	if (d.head.n_bytes > sizeof(uint64_t) || (uint64_t)d.head.n * d.head.n_bytes > len - sizeof(d.head))
		return -EBADMSG;
	end = at + len - (size_t)d.head.n * d.head.n_bytes;
	at += sizeof(d.head);
	d.columns = end;
	d.time = d.head.start;
	while (at < end) {
		const size_t size = restore_record(&d, at, (size_t)(end - at), dst, left);

		if (size == 0)
			return -EBADMSG;
		at += ((const struct perf_event_header *)at)->type == PERF_RECORD_SAMPLE ? size - 8 : size;
		dst = (uint8_t *)dst + size;
		left -= size;
	}
	return d.i == d.head.n ? (ssize_t)(cap - left) : -EBADMSG;
}
