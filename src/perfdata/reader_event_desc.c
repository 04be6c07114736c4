// SPDX-License-Identifier: GPL-2.0-or-later

/* EVENT_DESC: u32 events, u32 attr size, then for each: attr, u32 ids, name (u32 length, text), the ids. */

#include "base/cleanup.h"
#include "perfdata/take.h"
#include "perfdata/reader_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool take_u32(struct cursor *c, uint32_t *ret)
{
	const uint8_t *p = take(c, sizeof(*ret));

	if (p)
		memcpy(ret, p, sizeof(*ret));
	return p;
}

/* Where the section's Nth event is in the session: the one with its ids, else the Nth. */
static struct fr_event_desc *find_event(struct fr_reader *r, size_t index, const uint8_t *ids, size_t n_ids)
{
	uint64_t first;

	if (n_ids > 0) {
		memcpy(&first, ids, sizeof(first));
		for (size_t e = 0; e < r->session.n_events; e++)
			if (r->session.events[e].n_ids > 0 && r->session.events[e].ids[0] == first)
				return &r->session.events[e];
	}
	return index < r->session.n_events ? &r->session.events[index] : NULL;
}

static int describe(struct fr_reader *r, struct fr_event_desc *e, const uint8_t *name, size_t name_len,
	const uint8_t *ids, size_t n_ids)
{
	char *copy = strndup((const char *)name, name_len);

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
	const struct fr_buf *b = &r->session.features[FR_FEATURE_EVENT_DESC];
	struct cursor c = {b->data, b->len};
	uint32_t n, attr_size;

	if (b->len == 0)
		return 0;
	if (!take_u32(&c, &n) || !take_u32(&c, &attr_size) || n > FR_READER_EVENTS_MAX)
		return -EBADMSG;
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *name, *ids;
		struct fr_event_desc *e;
		uint32_t n_ids, len;
		int x;

		if (!take(&c, attr_size) || !take_u32(&c, &n_ids) || !take_u32(&c, &len))
			return -EBADMSG;
		name = take(&c, len);
		ids = take(&c, (size_t)n_ids * sizeof(uint64_t));
		if (!name || !ids)
			return -EBADMSG;
		e = find_event(r, i, ids, n_ids);
		x = e ? describe(r, e, name, len, ids, n_ids) : 0;
		if (x < 0)
			return x;
	}
	return 0;
}
