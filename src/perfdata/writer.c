// SPDX-License-Identifier: GPL-2.0-or-later

/* perf.data's file format: struct perf_file_header and what follows it, as perf.data-file-format.txt tells.
 */

#include "perfdata/writer.h"
#include "perfdata/record.h"
#include "base/cleanup.h"

#include <string.h>

#define FILE_MAGIC 0x32454c4946524550ULL /* "PERFILE2" in the byte order of the machine */

struct section {
	uint64_t offset, size;
};

struct file_header {
	uint64_t magic, size, attr_size;
	struct section attrs, data, event_types;
	uint64_t features[4];
};
_Static_assert(sizeof(struct file_header) == FR_FILE_HEADER_SIZE, "the header of perf.data is 104 bytes");

const struct perf_event_header fr_finished_round = {
	.type = FR_RECORD_FINISHED_ROUND, .size = sizeof(fr_finished_round)};

static int put(struct fr_file_writer *w, const void *data, size_t len)
{
	int r = w->sink.append(w->sink.ctx, data, len);

	if (r == 0)
		w->offset += len;
	return r;
}

/* The smallest size that holds all that is set in the attrs. perf refuses attrs that are larger than its own
   struct, so an older perf reads our files as long as no newer field is used. */
static uint32_t smallest_attr_size(const struct fr_session *s)
{
	uint32_t size = PERF_ATTR_SIZE_VER5;

	for (size_t i = 0; i < s->n_events; i++) {
		const uint8_t *p = (const uint8_t *)&s->events[i].attr;

		for (uint32_t n = size; n < sizeof(struct perf_event_attr); n++)
			if (p[n])
				size = FR_ALIGN_UP(n + 1, 8);
	}
	return size;
}

static int append_attrs(const struct fr_file_writer *w, const struct fr_session *s, struct fr_buf *b)
{
	uint64_t ids = sizeof(struct file_header);
	int r = 0;

	for (size_t i = 0; i < s->n_events && r == 0; i++) {
		const struct fr_event_desc *e = &s->events[i];
		struct perf_event_attr attr = e->attr;
		struct section of_ids = {ids, e->n_ids * sizeof(uint64_t)};

		attr.size = w->attr_bytes;
		r = fr_buf_append(b, &attr, w->attr_bytes);
		if (r == 0)
			r = fr_buf_append(b, &of_ids, sizeof(of_ids));
		ids += of_ids.size;
	}
	return r;
}

int fr_file_begin(struct fr_file_writer *w, const struct fr_session *s, const struct fr_sink *sink)
{
	_cleanup_buf_ struct fr_buf b = {0};
	int r = fr_buf_append_zero(&b, sizeof(struct file_header));

	*w = (struct fr_file_writer){.sink = *sink, .attr_bytes = smallest_attr_size(s)};
	for (size_t i = 0; i < s->n_events && r == 0; i++)
		r = fr_buf_append(&b, s->events[i].ids, s->events[i].n_ids * sizeof(uint64_t));
	w->attr_offset = b.len;
	if (r == 0)
		r = append_attrs(w, s, &b);
	if (r < 0)
		return r;
	w->attr_size = b.len - w->attr_offset;
	w->data_offset = b.len;
	return put(w, b.data, b.len);
}

int fr_file_write_records(struct fr_file_writer *w, const void *records, size_t len)
{
	return len ? put(w, records, len) : 0;
}

static int append_sections(const struct fr_file_writer *w, const struct fr_session *s, struct fr_buf *b,
	struct file_header *header)
{
	uint64_t at;
	size_t n = 0;
	int r = 0;

	for (size_t f = 0; f < _FR_FEATURE_MAX; f++)
		n += s->features[f].len > 0;
	at = w->offset + n * sizeof(struct section);
	for (size_t f = 0; f < _FR_FEATURE_MAX && r == 0; f++) {
		struct section at_and_size = {at, s->features[f].len};

		if (at_and_size.size == 0)
			continue;
		header->features[f / 64] |= 1ULL << f % 64;
		r = fr_buf_append(b, &at_and_size, sizeof(at_and_size));
		at += FR_ALIGN_UP(at_and_size.size, 8);
	}
	for (size_t f = 0; f < _FR_FEATURE_MAX && r == 0; f++) {
		const struct fr_buf *section = &s->features[f];

		r = fr_buf_append(b, section->data, section->len);
		if (r == 0)
			r = fr_buf_append_zero(b, FR_ALIGN_UP(section->len, 8) - section->len);
	}
	return r;
}

int fr_file_end(
	struct fr_file_writer *w, const struct fr_session *s, uint8_t ret_header[static FR_FILE_HEADER_SIZE])
{
	_cleanup_buf_ struct fr_buf b = {0};
	struct file_header header = {
		.magic = FILE_MAGIC,
		.size = sizeof(header),
		.attr_size = w->attr_bytes + sizeof(struct section),
		.attrs = {w->attr_offset, w->attr_size},
		.data = {w->data_offset, w->offset - w->data_offset},
	};
	int r = append_sections(w, s, &b, &header);

	if (r == 0 && b.len)
		r = put(w, b.data, b.len);
	if (r == 0)
		memcpy(ret_header, &header, sizeof(header));
	return r;
}
