// SPDX-License-Identifier: GPL-2.0-or-later

/* EVENT_DESC: u32 events, u32 attr size, then for each: attr, u32 ids, name (u32 length, text), the ids. */

#include "base/cleanup.h"
#include "perfdata/bytes.h"
#include "perfdata/reader_private.h"

/* The event of the session with the first of IDS, else the one at INDEX; or NULL. */
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
	char *copy = strndup(name, name_len);

	if (!copy)
		return -ENOMEM;
	free(e->name);
	e->name = copy;
	if (e->n_ids > 0 || n_ids == 0 || n_ids > FR_READER_IDS_MAX - r->n_ids)
		return 0;
	free(e->ids);
	e->ids = malloc(n_ids * sizeof(*e->ids));
	if (!e->ids)
		return -ENOMEM;
	memcpy(e->ids, ids, n_ids * sizeof(*e->ids));
	e->n_ids = n_ids;
	r->n_ids += n_ids;
	return 0;
}

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
