// SPDX-License-Identifier: GPL-2.0-or-later

/* Writes the pipe format of perf.data. It consists of records: a reader can read a file while it is written,
   and can read a truncated file up to its last whole record. */

#include "perfdata/writer.h"
#include "perfdata/bytes.h"
#include "perfdata/file_header.h"
#include "perfdata/record.h"
#include "base/cleanup.h"

#include <stdio.h>

#define NAME_SIZE 4096u					     /* a longer name is truncated */
#define BODY_MAX (65528u - sizeof(struct perf_event_header)) /* a multiple of 8 */

/* Appends a record of TYPE. Its body is FIXED, then TAIL, then zeros up to a multiple of 8. */
static void put_record(struct builder *b, uint32_t type, const void *fixed, size_t fixed_len,
	const void *tail, size_t tail_len)
{
	size_t size = sizeof(struct perf_event_header) + fixed_len + tail_len;
	size_t padded = FR_ALIGN_UP(size, 8);
	struct perf_event_header h = {.type = type, .size = (uint16_t)padded};

	put_bytes(b, &h, sizeof(h));
	put_bytes(b, fixed, fixed_len);
	put_bytes(b, tail, tail_len);
	put_zeros(b, padded - size);
}

static void put_event(struct builder *b, const struct fr_event_desc *e)
{
	struct perf_event_attr attr = e->attr;
	char name[NAME_SIZE];
	size_t room = (BODY_MAX - sizeof(attr)) / sizeof(uint64_t), at = 0;

	/* The whole struct is written, because perf before 6.5 expects the ids after an attr of the size of
	   its own struct. */
	attr.size = sizeof(attr);
	snprintf(name, sizeof(name), "%s", e->name);
	do { /* ids that do not fit go into another record */
		const size_t n = FR_MIN(e->n_ids - at, room);
		uint64_t update[2] = {EVENT_UPDATE_NAME, n ? e->ids[at] : 0};

		put_record(b, FR_RECORD_HEADER_ATTR, &attr, sizeof(attr), e->ids + at, n * sizeof(uint64_t));
		if (n)
			put_record(b, FR_RECORD_EVENT_UPDATE, update, sizeof(update), name, strlen(name) + 1);
		at += n;
	} while (at < e->n_ids);
}

static void put_features(struct builder *b, const struct fr_session *s)
{
	for (uint64_t f = 0; f < _FR_FEATURE_MAX; f++) {
		const struct fr_buf *section = &s->features[f];

		if (f != FR_FEATURE_TRACING_DATA && f != FR_FEATURE_BUILD_ID && section->len > 0 &&
			section->len <= BODY_MAX - sizeof(f))
			put_record(b, FR_RECORD_HEADER_FEATURE, &f, sizeof(f), section->data, section->len);
	}
}

/* The section follows the TRACING_DATA record. The size in the header of the record does not count it. */
static void put_tracing_data(struct builder *b, const struct fr_buf *section)
{
	size_t size = FR_ALIGN_UP(section->len, 8);
	uint32_t body[2] = {(uint32_t)size, 0};

	if (size == 0)
		return;
	put_record(b, FR_RECORD_HEADER_TRACING_DATA, body, sizeof(body), NULL, 0);
	put_bytes(b, section->data, section->len);
	put_zeros(b, size - section->len);
}

/* Appends the bytes of B to RET, and leaves B empty. */
static int append_built(struct builder *b, struct fr_buf *ret)
{
	int r = b->failed ? -ENOMEM : fr_buf_append(ret, b->buf.data, b->buf.len);

	fr_buf_deinit(&b->buf);
	return r;
}

int fr_pipe_append_event(const struct fr_event_desc *e, struct fr_buf *ret)
{
	struct builder b = {0};

	put_event(&b, e);
	return append_built(&b, ret);
}

int fr_pipe_append_head(const struct fr_session *s, struct fr_buf *ret)
{
	const struct fr_buf *build_ids = &s->features[FR_FEATURE_BUILD_ID];
	struct builder b = {0};

	put_u64(&b, FILE_MAGIC);
	put_u64(&b, 2 * sizeof(uint64_t)); /* the size of this header */
	for (size_t i = 0; i < s->n_events; i++)
		put_event(&b, &s->events[i]);
	put_features(&b, s);
	put_tracing_data(&b, &s->features[FR_FEATURE_TRACING_DATA]);
	put_bytes(&b, build_ids->data, build_ids->len);
	return append_built(&b, ret);
}
