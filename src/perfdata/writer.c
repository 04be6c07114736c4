// SPDX-License-Identifier: GPL-2.0-or-later

/* The file format of perf.data. */

#include "perfdata/writer.h"
#include "perfdata/bytes.h"
#include "perfdata/file_header.h"
#include "perfdata/record.h"
#include "base/cleanup.h"

_Static_assert(sizeof(struct file_header) == FR_FILE_HEADER_SIZE, "the header of perf.data is 104 bytes");

const struct perf_event_header fr_finished_round = {
	.type = FR_RECORD_FINISHED_ROUND, .size = sizeof(fr_finished_round)};

int fr_file_write_records(struct fr_file_writer *w, const void *data, size_t len)
{
	int r = len ? w->sink.append(w->sink.ctx, data, len) : 0;

	if (r == 0)
		w->offset += len;
	return r;
}

/* Returns the smallest size of an attr that has all fields that are set. perf refuses attrs that are larger
   than its own struct. So an older perf can read a file that uses no newer field. */
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

/* Writes the bytes of B, and leaves B empty. */
static int write_built(struct fr_file_writer *w, struct builder *b)
{
	int r = b->failed ? -ENOMEM : fr_file_write_records(w, b->buf.data, b->buf.len);

	fr_buf_deinit(&b->buf);
	return r;
}

int fr_file_begin(struct fr_file_writer *w, const struct fr_session *s, const struct fr_sink *sink)
{
	struct file_section ids = {.offset = sizeof(struct file_header)};
	struct builder b = {0};

	*w = (struct fr_file_writer){.sink = *sink, .attr_bytes = smallest_attr_size(s)};
	put_zeros(&b, sizeof(struct file_header));
	for (size_t i = 0; i < s->n_events; i++)
		put_bytes(&b, s->events[i].ids, s->events[i].n_ids * sizeof(uint64_t));
	w->attr_offset = b.buf.len;
	for (size_t i = 0; i < s->n_events; i++) {
		struct perf_event_attr attr = s->events[i].attr;

		attr.size = w->attr_bytes;
		ids.size = s->events[i].n_ids * sizeof(uint64_t);
		put_bytes(&b, &attr, w->attr_bytes);
		put_bytes(&b, &ids, sizeof(ids));
		ids.offset += ids.size;
	}
	w->attr_size = b.buf.len - w->attr_offset;
	w->data_offset = b.buf.len;
	return write_built(w, &b);
}

/* Makes the section AUXTRACE: u64 number of entries, then the entries. */
static int make_aux_section(const struct fr_file_writer *w, struct fr_buf *ret)
{
	int r = w->aux_index.len ? fr_buf_append_u64(ret, w->aux_index.len / (2 * sizeof(uint64_t))) : 0;

	return r < 0 ? r : fr_buf_append(ret, w->aux_index.data, w->aux_index.len);
}

int fr_file_end(
	struct fr_file_writer *w, const struct fr_session *s, uint8_t ret_header[static FR_FILE_HEADER_SIZE])
{
	struct file_header header = {
		.magic = FILE_MAGIC,
		.size = sizeof(header),
		.attr_size = w->attr_bytes + sizeof(struct file_section),
		.attrs = {w->attr_offset, w->attr_size},
		.data = {w->data_offset, w->offset - w->data_offset},
	};
	struct file_section section = {.offset = w->offset};
	const struct fr_buf *features[_FR_FEATURE_MAX];
	_cleanup_buf_ struct fr_buf aux = {0};
	struct builder b = {0};
	int r = make_aux_section(w, &aux);

	fr_buf_deinit(&w->aux_index);
	if (r < 0)
		return r;
	for (size_t f = 0; f < _FR_FEATURE_MAX; f++) {
		features[f] = f == FR_FEATURE_AUXTRACE ? &aux : &s->features[f];
		section.offset += features[f]->len > 0 ? sizeof(section) : 0;
	}
	for (size_t f = 0; f < _FR_FEATURE_MAX; f++) {
		section.size = features[f]->len;
		if (section.size == 0)
			continue;
		header.features[f / 64] |= 1ULL << f % 64;
		put_bytes(&b, &section, sizeof(section));
		section.offset += FR_ALIGN_UP(section.size, 8);
	}
	for (size_t f = 0; f < _FR_FEATURE_MAX; f++) {
		put_bytes(&b, features[f]->data, features[f]->len);
		put_zeros(&b, FR_ALIGN_UP(features[f]->len, 8) - features[f]->len);
	}
	r = write_built(w, &b);
	if (r == 0)
		memcpy(ret_header, &header, sizeof(header));
	return r;
}
