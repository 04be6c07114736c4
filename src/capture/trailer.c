// SPDX-License-Identifier: GPL-2.0-or-later
/* Finds and moves sample ids that are not at the end of their record, where readers expect them
   (docs/design/10). */
#include "capture/ring.h"
#include "base/cleanup.h"
#include "perfdata/record.h"

#include <string.h>

/* H is a whole record. Returns the number of bytes before the sample id of H: the fixed part and the strings
   of H. Returns 0 if the number is not known. */
static size_t body_size(const struct perf_event_header *h)
{
	const size_t size = h->size, poke = sizeof(*h) + 8 + 4;

	if (h->type == PERF_RECORD_BPF_EVENT)
		return sizeof(*h) + 16;
	if (h->type == PERF_RECORD_KSYMBOL && size > sizeof(struct fr_record_ksymbol)) {
		const struct fr_record_ksymbol *k = (const void *)h;
		size_t room = size - sizeof(*k), len = strnlen(k->name, room);

		return len < room ? FR_ALIGN_UP(sizeof(*k) + len + 1, 8) : 0;
	}
	if (h->type == PERF_RECORD_TEXT_POKE && size > poke) {
		uint16_t len[2]; /* numbers of old bytes and of new bytes */

		memcpy(len, (const uint8_t *)h + sizeof(*h) + 8, sizeof(len));
		return FR_ALIGN_UP(poke + len[0] + len[1], 8);
	}
	return 0;
}

size_t fr_misplaced_trailer(const struct perf_event_header *h, const struct fr_id_table *ids)
{
	size_t body = body_size(h);
	struct fr_sample_id id;

	if (!body || h->size <= body + sizeof(id))
		return 0;
	memcpy(&id, (const uint8_t *)h + body, sizeof(id));
	return fr_id_table_find(ids, id.id) != FR_ID_UNKNOWN ? body : 0;
}

void fr_move_trailer_to_end(struct perf_event_header *h, const struct fr_id_table *ids)
{
	const size_t body = fr_misplaced_trailer(h, ids);
	uint8_t *p = (uint8_t *)h;
	struct fr_sample_id id;

	if (!body)
		return;
	memcpy(&id, p + body, sizeof(id));
	memset(p + body, 0, h->size - sizeof(id) - body);
	memcpy(p + h->size - sizeof(id), &id, sizeof(id));
}
