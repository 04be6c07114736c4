// SPDX-License-Identifier: GPL-2.0-or-later

/* perf.data's pipe format: everything is a record, so it can be read while it is written, and as far as it
   goes. */

#include "perfdata/writer.h"
#include "perfdata/record.h"
#include "base/cleanup.h"

#include <string.h>

#define PIPE_MAGIC 0x32454c4946524550ULL
#define RECORD_ALIGNED_MAX 65528u
#define EVENT_UPDATE_NAME 2u /* perf's PERF_EVENT_UPDATE__NAME */

/* A record of TYPE: FIXED_LEN bytes, then TAIL, with zeros up to a multiple of 8. */
static int append_record(struct fr_buf *b, uint32_t type, const void *fixed, size_t fixed_len,
	const void *tail, size_t tail_len)
{
	size_t size = sizeof(struct perf_event_header) + fixed_len + tail_len;
	size_t padded = FR_ALIGN_UP(size, 8);
	struct perf_event_header h = {.type = type, .size = (uint16_t)padded};
	int r = fr_buf_reserve(b, padded);

	if (r < 0)
		return r;
	(void)fr_buf_append(b, &h, sizeof(h));
	(void)fr_buf_append(b, fixed, fixed_len);
	(void)fr_buf_append(b, tail, tail_len);
	return fr_buf_append_zero(b, padded - size);
}

int fr_pipe_append_event(const struct fr_event_desc *e, struct fr_buf *b)
{
	struct perf_event_attr attr = e->attr;
	size_t room =
		(RECORD_ALIGNED_MAX - sizeof(struct perf_event_header) - sizeof(attr)) / sizeof(uint64_t);
	size_t at = 0;

	/* The whole struct: perf before 6.5 looks for the ids behind the struct that it was built with. */
	attr.size = sizeof(attr);
	do {
		const size_t n = FR_MIN(e->n_ids - at, room);
		uint64_t update[2] = {EVENT_UPDATE_NAME, n ? e->ids[at] : 0};
		int r = append_record(
			b, FR_RECORD_HEADER_ATTR, &attr, sizeof(attr), e->ids + at, n * sizeof(uint64_t));

		if (r == 0 && n)
			r = append_record(b, FR_RECORD_EVENT_UPDATE, update, sizeof(update), e->name,
				strnlen(e->name, 4095) + 1);
		if (r < 0)
			return r;
		at += n;
	} while (at < e->n_ids); /* what no record has room for stands in one more */
	return 0;
}

static int append_features(struct fr_buf *b, const struct fr_session *s)
{
	int r = 0;

	for (uint64_t f = 0; f < _FR_FEATURE_MAX && r == 0; f++) {
		const struct fr_buf *section = &s->features[f];

		if (f == FR_FEATURE_TRACING_DATA || f == FR_FEATURE_BUILD_ID || section->len == 0 ||
			section->len >
				RECORD_ALIGNED_MAX - sizeof(struct perf_event_header) - sizeof(uint64_t))
			continue;
		r = append_record(b, FR_RECORD_HEADER_FEATURE, &f, sizeof(f), section->data, section->len);
	}
	return r;
}

/* The blob stands behind its record, and outside of header.size. */
static int append_tracing_data(struct fr_buf *b, const struct fr_buf *blob)
{
	uint64_t size = FR_ALIGN_UP(blob->len, 8);
	uint32_t body[2] = {(uint32_t)size, 0};
	int r;

	if (blob->len == 0)
		return 0;
	r = append_record(b, FR_RECORD_HEADER_TRACING_DATA, body, sizeof(body), NULL, 0);
	if (r == 0)
		r = fr_buf_append(b, blob->data, blob->len);
	return r < 0 ? r : fr_buf_append_zero(b, size - blob->len);
}

int fr_pipe_append_head(const struct fr_session *s, struct fr_buf *ret)
{
	const struct fr_buf *build_ids = &s->features[FR_FEATURE_BUILD_ID];
	size_t start = ret->len;
	uint64_t head[2] = {PIPE_MAGIC, sizeof(head)};
	int r = fr_buf_append(ret, head, sizeof(head));

	for (size_t i = 0; i < s->n_events && r == 0; i++)
		r = fr_pipe_append_event(&s->events[i], ret);
	if (r == 0)
		r = append_features(ret, s);
	if (r == 0)
		r = append_tracing_data(ret, &s->features[FR_FEATURE_TRACING_DATA]);
	if (r == 0)
		r = fr_buf_append(ret, build_ids->data, build_ids->len);
	if (r < 0)
		ret->len = start;
	return r;
}
