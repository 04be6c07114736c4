// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * The head of the file format: header, attr section with the id sections it points to, feature table. Nothing
 * of it is believed before it was compared with the size of the file; ids that are out of reach are taken
 * from EVENT_DESC, features that are out of reach are left out, and the data is read all the same.
 */

#include "base/cleanup.h"
#include "base/file.h"
#include "perfdata/reader_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct section {
	uint64_t offset, size;
};

/* perf's struct perf_file_header. */
struct file_header {
	char magic[8];
	uint64_t size, attr_size;
	struct section attrs, data, event_types;
	uint64_t features[4];
};

static bool section_fits(const struct fr_reader *r, const struct section *s)
{
	return s->offset <= r->file_size && s->size <= r->file_size - s->offset;
}

/* SECTION as a block of memory; the caller has bounded its size. 0, -ENOMEM, -EBADMSG: not all there. */
static int read_section(const struct fr_reader *r, const struct section *section, void **ret)
{
	_cleanup_free_ void *p = malloc(section->size ? section->size : 1);
	ssize_t n;

	if (!p)
		return -ENOMEM;
	n = fr_pread_all(r->fd, p, section->size, (off_t)section->offset);
	if (n < 0)
		return (int)n;
	if ((uint64_t)n < section->size)
		return -EBADMSG;
	*ret = TAKE_PTR(p);
	return 0;
}

static int read_ids(struct fr_reader *r, const struct section *where, uint64_t **ret, size_t *ret_n)
{
	void *p = NULL;
	int x;

	*ret = NULL;
	*ret_n = 0;
	if (where->size == 0)
		return 0;
	if (!section_fits(r, where) || where->size % 8 || where->size / 8 > FR_READER_IDS_MAX - r->n_ids) {
		fr_reader_damaged(r, r->data_start, 0, "the ids of an event are not where its head says");
		return 0;
	}
	x = read_section(r, where, &p);
	if (x < 0)
		return x == -ENOMEM ? x : 0;
	*ret = p;
	*ret_n = where->size / 8;
	r->n_ids += *ret_n;
	return 0;
}

/* One entry of the attr section: an attr of ATTR_SIZE - 16 bytes, and where its ids are. */
static int add_attr(struct fr_reader *r, const uint8_t *entry, size_t attr_size)
{
	struct perf_event_attr attr = {0};
	_cleanup_free_ uint64_t *ids = NULL;
	struct section where;
	size_t n_ids;
	int x;

	memcpy(&attr, entry, FR_MIN(attr_size - sizeof(where), sizeof(attr)));
	attr.size = sizeof(attr);
	memcpy(&where, entry + attr_size - sizeof(where), sizeof(where));
	x = read_ids(r, &where, &ids, &n_ids);
	return x < 0 ? x : fr_session_add_event(&r->session, &attr, "", ids, n_ids, NULL);
}

static int read_attrs(struct fr_reader *r, const struct file_header *h, struct fr_diag *d)
{
	_cleanup_free_ void *p = NULL;
	size_t n;
	int x;

	if (h->attr_size < PERF_ATTR_SIZE_VER0 + sizeof(struct section) || h->attr_size > 4096 ||
		!section_fits(r, &h->attrs) || h->attrs.size < h->attr_size ||
		h->attrs.size / h->attr_size > FR_READER_EVENTS_MAX)
		return fr_fail(d, -EBADMSG, NULL, "its list of events is damaged");
	x = read_section(r, &h->attrs, &p);
	if (x < 0)
		return fr_fail_errno(d, x, NULL, "cannot read its list of events");
	n = h->attrs.size / h->attr_size;
	for (size_t i = 0; i < n; i++) {
		x = add_attr(r, (const uint8_t *)p + i * h->attr_size, h->attr_size);
		if (x < 0)
			return x;
	}
	return 0;
}

static int read_feature(struct fr_reader *r, unsigned bit, const struct section *where)
{
	_cleanup_free_ void *p = NULL;
	int x;

	if (where->size > FR_READER_SECTION_MAX || where->size > FR_READER_SECTIONS_MAX - r->section_bytes ||
		!section_fits(r, where)) {
		fr_reader_damaged(r, where->offset, 0, "a feature section reaches past the end of the file");
		return 0;
	}
	x = read_section(r, where, &p);
	if (x < 0)
		return x == -ENOMEM ? x : 0;
	r->section_bytes += where->size;
	return fr_buf_append(&r->session.features[bit], p, where->size);
}

/* The table stands behind the data, one entry for each bit that is set. */
static int read_features(struct fr_reader *r, const struct file_header *h)
{
	struct section table = {.offset = h->data.offset + h->data.size};
	_cleanup_free_ void *p = NULL;
	const struct section *entry;
	int x;

	for (size_t i = 0; i < FR_ARRAY_SIZE(h->features); i++)
		table.size += (uint64_t)__builtin_popcountll(h->features[i]) * sizeof(struct section);
	if (table.size == 0)
		return 0;
	if (!section_fits(r, &table)) {
		fr_reader_damaged(r, table.offset, 0, "the table of features is missing");
		return 0;
	}
	x = read_section(r, &table, &p);
	if (x < 0)
		return x == -ENOMEM ? x : 0;
	entry = p;
	for (unsigned bit = 0; bit < 256; bit++) {
		if (!(h->features[bit / 64] & (1ULL << (bit % 64))))
			continue;
		if (bit < _FR_FEATURE_MAX) {
			x = read_feature(r, bit, entry);
			if (x < 0)
				return x;
		}
		entry++;
	}
	return 0;
}

/* Where the data is. A writer that died left its size 0, and no features. */
static void find_data(struct fr_reader *r, const struct file_header *h, bool *ret_features)
{
	bool any = h->features[0] || h->features[1] || h->features[2] || h->features[3];
	uint64_t past;

	r->data_start = h->data.offset;
	*ret_features = false;
	if (h->data.size == 0 && (!any || h->data.offset < sizeof(*h))) {
		r->data_end = r->file_size;
		fr_reader_damaged(r, offsetof(struct file_header, data), 0,
			"it was not finished by its writer (data size 0)");
		return;
	}
	if (section_fits(r, &h->data)) {
		r->data_end = h->data.offset + h->data.size;
		*ret_features = true;
		return;
	}
	past = h->data.offset > r->file_size ? 0 : h->data.size - (r->file_size - h->data.offset);
	r->data_end = r->file_size;
	fr_reader_damaged(r, r->file_size, past, "the file is cut off inside its data");
}

/* Among events with ids, one without has no records: it is what a list that says too large a size ends with.
 */
static void drop_events_without_ids(struct fr_session *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->n_events; i++)
		kept += fr_reader_any_id(s->events[i].ids, s->events[i].n_ids);
	if (kept == 0)
		return;
	kept = 0;
	for (size_t i = 0; i < s->n_events; i++) {
		struct fr_event_desc e = s->events[i];

		if (fr_reader_any_id(e.ids, e.n_ids)) {
			s->events[kept++] = e;
			continue;
		}
		free(e.name);
		free(e.ids);
	}
	s->n_events = kept;
}

static int read_described(struct fr_reader *r, const struct file_header *h)
{
	int x = read_features(r, h);

	if (x < 0)
		return x;
	x = fr_reader_apply_event_desc(r);
	if (x == -EBADMSG)
		fr_reader_damaged(r, r->data_end, 0, "its description of events is damaged");
	return x == -EBADMSG ? 0 : x;
}

int fr_reader_head(struct fr_reader *r, struct fr_diag *d)
{
	struct file_header h;
	bool features;
	ssize_t n;
	int x;

	n = fr_pread_all(r->fd, &h, sizeof(h), 0);
	if (n < 0)
		return fr_fail_errno(d, (int)n, NULL, "cannot read");
	if ((size_t)n < sizeof(h))
		return fr_fail(d, -EBADMSG, NULL, "it ends inside its header");
	x = read_attrs(r, &h, d);
	if (x < 0)
		return x;
	/* Writers put the data behind the attrs; where the header lies about it, take what comes after them.
	 */
	if (h.data.offset < sizeof(h) || h.data.offset > r->file_size) {
		h.data.offset = FR_MAX(h.attrs.offset + h.attrs.size, sizeof(h));
		h.data.size = r->file_size - FR_MIN(h.data.offset, r->file_size);
		memset(h.features, 0, sizeof(h.features));
		fr_reader_damaged(r, offsetof(struct file_header, data), 0, "its header names no data");
	}
	find_data(r, &h, &features);
	x = features ? read_described(r, &h) : 0;
	drop_events_without_ids(&r->session);
	return x;
}
