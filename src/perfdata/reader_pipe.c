// SPDX-License-Identifier: GPL-2.0-or-later

/* Reads the head of the pipe format, which consists of records. These records are before the data. If an
   event was opened again, some of its head records are also between the records of the data. */

#include "base/cleanup.h"
#include "perfdata/bytes.h"
#include "perfdata/reader_private.h"

/* The record is { header; attr, whose member SIZE has its size; u64 ids[] }. */
static int read_attr(struct fr_reader *r, const struct perf_event_header *h)
{
	const uint8_t *p = (const uint8_t *)(h + 1);
	size_t left = h->size - sizeof(*h), n_ids;
	struct perf_event_attr attr = {0};
	uint32_t attr_size;
	int x;

	if (left < PERF_ATTR_SIZE_VER0)
		return -EBADMSG;
	memcpy(&attr_size, p + offsetof(struct perf_event_attr, size), sizeof(attr_size));
	if (attr_size == 0)
		attr_size = PERF_ATTR_SIZE_VER0;
	if (attr_size < PERF_ATTR_SIZE_VER0 || attr_size > left || (left - attr_size) % 8)
		return -EBADMSG;
	memcpy(&attr, p, FR_MIN(attr_size, sizeof(attr)));
	attr.size = sizeof(attr);
	n_ids = (left - attr_size) / 8;
	if (r->session.n_events >= FR_READER_EVENTS_MAX || n_ids > FR_READER_IDS_MAX - r->n_ids)
		return -EBADMSG;
	p += attr_size;
	if (r->ids.n > 0 && !fr_reader_any_id(p, n_ids))
		return 0; /* if some events have ids, an event without ids has no records */
	x = fr_session_add_event(&r->session, &attr, "", p, n_ids, NULL);
	r->n_ids += n_ids;
	if (x < 0)
		return x;
	fr_reader_replace_attr(r, &r->session.events[r->session.n_events - 1]);
	return fr_reader_add_layouts(r);
}

/* The record is { header; u64 type; u64 id; char name[] }. */
static int read_update(struct fr_reader *r, const struct perf_event_header *h)
{
	struct byte_reader in = {(const uint8_t *)(h + 1), h->size - sizeof(*h), false};
	uint64_t type = read_u64(&in), id = read_u64(&in);
	uint32_t e = fr_id_table_find(&r->ids, id);

	if (in.failed)
		return -EBADMSG;
	if (type != EVENT_UPDATE_NAME || e == FR_ID_UNKNOWN)
		return 0;
	return fr_event_desc_set_name(&r->session.events[e], (const char *)in.p, in.left);
}

static int add_section(struct fr_reader *r, unsigned bit, const void *p, size_t len, bool replace)
{
	struct fr_buf *b = &r->session.features[bit];

	if (replace) {
		r->section_bytes -= b->len;
		b->len = 0;
	}
	if (b->len + len > FR_READER_SECTION_MAX || len > FR_READER_SECTIONS_MAX - r->section_bytes)
		return -EBADMSG;
	r->section_bytes += len;
	return fr_buf_append(b, p, len);
}

/* The record is { header; u64 feature; data }. */
static int read_feature(struct fr_reader *r, const struct perf_event_header *h)
{
	struct byte_reader in = {(const uint8_t *)(h + 1), h->size - sizeof(*h), false};
	uint64_t bit = read_u64(&in);
	int x;

	if (in.failed)
		return -EBADMSG;
	if (bit >= _FR_FEATURE_MAX)
		return 0;
	x = add_section(r, (unsigned)bit, in.p, in.left, true);
	if (x < 0 || bit != FR_FEATURE_EVENT_DESC)
		return x;
	x = fr_reader_apply_event_desc(r);
	return x < 0 ? x : fr_reader_reset_layouts(r);
}

/* The record is { header; u32 size }. SIZE bytes follow, which header.size does not count. The last bytes, at
   most seven, are padding. */
static int read_tracing_data(
	struct fr_reader *r, const struct perf_event_header *h, uint64_t at, uint64_t *ret_size)
{
	struct byte_reader in = {(const uint8_t *)(h + 1), h->size - sizeof(*h), false};
	uint32_t size = read_u32(&in);
	_cleanup_free_ void *p = NULL;
	int x;

	at += h->size;
	if (in.failed || size > FR_READER_SECTION_MAX || at > r->data_end || size > r->data_end - at)
		return -EBADMSG;
	*ret_size = (uint64_t)h->size + size;
	x = fr_reader_read_section(r, &(struct file_section){at, size}, &p);
	return x < 0 ? x : add_section(r, FR_FEATURE_TRACING_DATA, p, size, true);
}

int fr_reader_pipe_record(
	struct fr_reader *r, const struct perf_event_header *record, uint64_t at, uint64_t *ret_size)
{
	int x;

	*ret_size = record->size;
	switch (record->type) {
	case FR_RECORD_HEADER_ATTR:
		x = read_attr(r, record);
		break;
	case FR_RECORD_EVENT_UPDATE:
		x = read_update(r, record);
		break;
	case FR_RECORD_HEADER_FEATURE:
		x = read_feature(r, record);
		break;
	case FR_RECORD_HEADER_TRACING_DATA:
		x = read_tracing_data(r, record, at, ret_size);
		break;
	case FR_RECORD_HEADER_BUILD_ID:
		x = add_section(r, FR_FEATURE_BUILD_ID, record, record->size, false);
		break;
	case FR_RECORD_HEADER_EVENT_TYPE:
		return 1;
	default:
		return 0;
	}
	return x < 0 ? x : 1;
}
