// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Reads the head of the file format: header, attr section, the id sections that the attrs point to, and
 * feature table. The reader compares each offset and size with the size of the file before it uses them. If
 * an id section is beyond the end of the file, the reader takes the ids from the section EVENT_DESC. If a
 * feature section is beyond the end of the file, the reader leaves that section out. In both cases it reads
 * the data.
 */

#include "base/cleanup.h"
#include "base/file.h"
#include "perfdata/bytes.h"
#include "perfdata/file_header.h"
#include "perfdata/reader_private.h"

#include <stdlib.h>

static bool section_fits(const struct fr_reader *r, const struct file_section *s)
{
	return s->offset <= r->file_size && s->size <= r->file_size - s->offset;
}

int fr_reader_read_section(const struct fr_reader *r, const struct file_section *section, void **ret)
{
	_cleanup_free_ void *p = malloc(section->size ? section->size : 1);
	ssize_t n = p ? fr_pread_all(r->fd, p, section->size, (off_t)section->offset) : -ENOMEM;

	if (n < 0)
		return (int)n;
	if ((uint64_t)n < section->size)
		return -EBADMSG;
	*ret = TAKE_PTR(p);
	return 0;
}

/* Does the same as fr_reader_read_section(), for a section that the reader does not need. If the section
   cannot be read, *RET is NULL. Returns 0 or -ENOMEM. */
static int read_optional(const struct fr_reader *r, const struct file_section *section, void **ret)
{
	int x;

	*ret = NULL;
	x = fr_reader_read_section(r, section, ret);
	return x == -ENOMEM ? x : 0;
}

/* Adds the event of one entry of the attr section: an attr of ATTR_SIZE - 16 bytes, and the place of its ids.
 */
static int add_attr(struct fr_reader *r, const uint8_t *entry, size_t attr_size)
{
	struct perf_event_attr attr = {0};
	_cleanup_free_ void *ids = NULL;
	struct file_section where;
	size_t n_ids;
	int x = 0;

	memcpy(&attr, entry, FR_MIN(attr_size - sizeof(where), sizeof(attr)));
	attr.size = sizeof(attr);
	memcpy(&where, entry + attr_size - sizeof(where), sizeof(where));
	if (!section_fits(r, &where) || where.size % 8 || where.size / 8 > FR_READER_IDS_MAX - r->n_ids) {
		if (where.size > 0)
			fr_reader_note_damage(
				r, r->data_start, 0, "the ids of an event are not where its head says");
		where.size = 0;
	}
	if (where.size > 0)
		x = read_optional(r, &where, &ids);
	if (x < 0)
		return x;
	n_ids = ids ? where.size / 8 : 0;
	r->n_ids += n_ids;
	return fr_session_add_event(&r->session, &attr, "", ids, n_ids, NULL);
}

static int read_attrs(struct fr_reader *r, const struct file_header *h, struct fr_diag *d)
{
	_cleanup_free_ void *p = NULL;
	int x;

	if (h->attr_size < PERF_ATTR_SIZE_VER0 + sizeof(struct file_section) || h->attr_size > 4096 ||
		!section_fits(r, &h->attrs) || h->attrs.size < h->attr_size ||
		h->attrs.size / h->attr_size > FR_READER_EVENTS_MAX)
		return fr_fail(d, -EBADMSG, NULL, "its list of events is damaged");
	x = fr_reader_read_section(r, &h->attrs, &p);
	if (x < 0)
		return fr_fail_errno(d, x, NULL, "cannot read its list of events");
	for (size_t i = 0; i < h->attrs.size / h->attr_size && x == 0; i++)
		x = add_attr(r, (const uint8_t *)p + i * h->attr_size, h->attr_size);
	return x;
}

static int read_feature(struct fr_reader *r, unsigned bit, const struct file_section *where)
{
	_cleanup_free_ void *p = NULL;
	int x;

	if (where->size > FR_READER_SECTION_MAX || where->size > FR_READER_SECTIONS_MAX - r->section_bytes ||
		!section_fits(r, where)) {
		fr_reader_note_damage(
			r, where->offset, 0, "a feature section reaches past the end of the file");
		return 0;
	}
	x = read_optional(r, where, &p);
	if (x < 0 || !p)
		return x;
	r->section_bytes += where->size;
	return fr_buf_append(&r->session.features[bit], p, where->size);
}

/* Reads the feature sections. Their table follows the data, and has one entry for each bit that is set. */
static int read_features(struct fr_reader *r, const struct file_header *h)
{
	struct file_section table = {.offset = h->data.offset + h->data.size};
	_cleanup_free_ void *p = NULL;
	const struct file_section *entry;
	int x;

	for (size_t i = 0; i < FR_ARRAY_SIZE(h->features); i++)
		table.size += (uint64_t)__builtin_popcountll(h->features[i]) * sizeof(*entry);
	if (table.size == 0)
		return 0;
	if (!section_fits(r, &table)) {
		fr_reader_note_damage(r, table.offset, 0, "the table of features is missing");
		return 0;
	}
	x = read_optional(r, &table, &p);
	if (x < 0 || !p)
		return x;
	entry = p;
	for (unsigned bit = 0; bit < _FR_FEATURE_MAX && x == 0; bit++)
		if (h->features[bit / 64] & (1ULL << (bit % 64)))
			x = read_feature(r, bit, entry++);
	return x;
}

/* Finds the data section. *RET_HAS_FEATURES is true if the feature table is after the data. If the writer
   died, the header has the data size 0 and no features. */
static void find_data(struct fr_reader *r, const struct file_header *h, bool *ret_has_features)
{
	bool any = h->features[0] || h->features[1] || h->features[2] || h->features[3];
	uint64_t missing;

	r->data_start = h->data.offset;
	r->data_end = r->file_size;
	*ret_has_features = false;
	if (h->data.size == 0 && (!any || h->data.offset < sizeof(*h))) {
		fr_reader_note_damage(r, offsetof(struct file_header, data), 0,
			"its writer did not finish the file (data size 0)");
	} else if (section_fits(r, &h->data)) {
		r->data_end = h->data.offset + h->data.size;
		*ret_has_features = true;
	} else {
		missing = h->data.offset > r->file_size ? 0 : h->data.size - (r->file_size - h->data.offset);
		fr_reader_note_damage(r, r->file_size, missing, "the file is cut off inside its data");
	}
}

static bool has_no_id(const struct fr_event_desc *e, const void *ctx)
{
	return !fr_reader_any_id(e->ids, e->n_ids);
}

/* If some events have ids, an event without ids has no records. If the header states a size of the attr
   section that is too large, the bytes at the end of the section look like such events. */
static void drop_events_without_ids(struct fr_session *s)
{
	bool any = false;

	for (size_t i = 0; i < s->n_events; i++)
		any |= !has_no_id(&s->events[i], NULL);
	if (any)
		fr_session_remove_events(s, has_no_id, NULL);
}

/* Returns the event of the session that has the first of IDS, else the event at INDEX; or NULL. */
static struct fr_event_desc *find_event(struct fr_reader *r, size_t index, const void *ids, size_t n_ids)
{
	for (size_t e = 0; n_ids > 0 && e < r->session.n_events; e++)
		if (r->session.events[e].n_ids > 0 &&
			memcmp(r->session.events[e].ids, ids, sizeof(uint64_t)) == 0)
			return &r->session.events[e];
	return index < r->session.n_events ? &r->session.events[index] : NULL;
}

static int describe_event(struct fr_reader *r, struct fr_event_desc *e, const char *name, size_t name_len,
	const void *ids, size_t n_ids)
{
	if (fr_event_desc_set_name(e, name, name_len) < 0)
		return -ENOMEM;
	if (e->n_ids > 0 || n_ids == 0 || n_ids > FR_READER_IDS_MAX - r->n_ids)
		return 0;
	r->n_ids += n_ids;
	return fr_event_desc_add_ids(e, ids, n_ids);
}

/* The section EVENT_DESC has: u32 number of events, u32 size of an attr; then for each event its attr, u32
   number of ids, name (u32 length, text), and ids. */
int fr_reader_apply_event_desc(struct fr_reader *r)
{
	const struct fr_buf *section = &r->session.features[FR_FEATURE_EVENT_DESC];
	struct byte_reader in = {section->data, section->len, false};
	uint32_t n, attr_size;
	int x = 0;

	if (section->len == 0)
		return 0;
	n = read_u32(&in);
	attr_size = read_u32(&in);
	if (in.failed || n > FR_READER_EVENTS_MAX)
		return -EBADMSG;
	for (uint32_t i = 0; i < n && x == 0; i++) {
		struct fr_event_desc *e;
		const void *name, *ids;
		uint32_t n_ids, len;

		(void)read_bytes(&in, attr_size);
		n_ids = read_u32(&in);
		len = read_u32(&in);
		name = read_bytes(&in, len);
		ids = read_bytes(&in, (uint64_t)n_ids * sizeof(uint64_t));
		if (in.failed)
			return -EBADMSG;
		e = find_event(r, i, ids, n_ids);
		x = e ? describe_event(r, e, name, len, ids, n_ids) : 0;
	}
	return x;
}

static int read_features_and_names(struct fr_reader *r, const struct file_header *h)
{
	int x = read_features(r, h);

	if (x < 0)
		return x;
	x = fr_reader_apply_event_desc(r);
	if (x == -EBADMSG)
		fr_reader_note_damage(r, r->data_end, 0, "its description of events is damaged");
	return x == -EBADMSG ? 0 : x;
}

int fr_reader_head(struct fr_reader *r, struct fr_diag *d)
{
	struct file_header h;
	bool has_features;
	ssize_t n = fr_pread_all(r->fd, &h, sizeof(h), 0);
	int x;

	if (n < 0)
		return fr_fail_errno(d, (int)n, NULL, "cannot read");
	if ((size_t)n < sizeof(h))
		return fr_fail(d, -EBADMSG, NULL, "it ends inside its header");
	x = read_attrs(r, &h, d);
	if (x < 0)
		return x;
	/* Writers put the data after the attrs. The reader looks there if the header has an impossible
	   offset. */
	if (h.data.offset < sizeof(h) || h.data.offset > r->file_size) {
		h.data.offset = FR_MAX(h.attrs.offset + h.attrs.size, sizeof(h));
		h.data.size = r->file_size - FR_MIN(h.data.offset, r->file_size);
		memset(h.features, 0, sizeof(h.features));
		fr_reader_note_damage(r, offsetof(struct file_header, data), 0,
			"its header does not say where the data is");
	}
	find_data(r, &h, &has_features);
	x = has_features ? read_features_and_names(r, &h) : 0;
	drop_events_without_ids(&r->session);
	return x;
}
