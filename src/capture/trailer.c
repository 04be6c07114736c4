// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KSYMBOL, BPF_EVENT and TEXT_POKE of kernels (seen in 6.18) where another recorder listens too: the kernel
 * has one header for all listeners and adds the size of each one's trailer to it, one after the other, so
 * that every listener but the first finds bytes behind its own trailer that nobody wrote. The trailer then
 * stands where the body ends, and not where readers look for it: at the end of the record.
 */
#include "capture/ring.h"
#include "base/cleanup.h"
#include "perfdata/record.h"

#include <string.h>

#define ALIGN_8(N) (((N) + 7) & ~(size_t)7)

/* Its fixed part and what that says; 0 where it does not say. SIZE is the record's. */
static size_t body_size(const struct perf_event_header *h, size_t size)
{
	const size_t poke = sizeof(*h) + 8 + 4;

	if (h->type == PERF_RECORD_BPF_EVENT)
		return sizeof(*h) + 16;
	if (h->type == PERF_RECORD_KSYMBOL && size > sizeof(struct fr_record_ksymbol)) {
		const struct fr_record_ksymbol *k = (const void *)h;
		size_t room = size - sizeof(*k), len = strnlen(k->name, room);

		return len < room ? ALIGN_8(sizeof(*k) + len + 1) : 0;
	}
	if (h->type == PERF_RECORD_TEXT_POKE && size > poke) {
		uint16_t len[2]; /* of the old bytes and of the new ones */

		memcpy(len, (const uint8_t *)h + sizeof(*h) + 8, sizeof(len));
		return ALIGN_8(poke + len[0] + len[1]);
	}
	return 0;
}

static bool is_early(const struct perf_event_header *h, const struct fr_id_table *ids, size_t *ret_body)
{
	size_t body = body_size(h, h->size);
	struct fr_sample_id id;

	if (!body || h->size <= body + sizeof(id))
		return false;
	memcpy(&id, (const uint8_t *)h + body, sizeof(id));
	*ret_body = body;
	return fr_id_table_find(ids, id.id) != FR_ID_UNKNOWN;
}

bool fr_trailer_is_early(const struct perf_event_header *h, const struct fr_id_table *ids)
{
	size_t body;

	return is_early(h, ids, &body);
}

void fr_trailer_settle(struct perf_event_header *h, const struct fr_id_table *ids)
{
	uint8_t *p = (uint8_t *)h;
	struct fr_sample_id id;
	size_t body;

	if (!is_early(h, ids, &body))
		return;
	memcpy(&id, p + body, sizeof(id));
	memset(p + body, 0, h->size - sizeof(id) - body);
	memcpy(p + h->size - sizeof(id), &id, sizeof(id));
}
