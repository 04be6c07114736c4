// SPDX-License-Identifier: GPL-2.0-or-later
#include "merge/dedup.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1 /* if an allocation fails, uthash leaves the entry without a table */
#include <uthash.h>

struct fr_dedup_entry {
	UT_hash_handle hh;
	size_t input;	  /* the last input that has had this record */
	uint64_t count;	  /* how many times the input has had the record */
	uint64_t written; /* how many times the record was written */
	uint8_t record[];
};

void fr_dedup_clear(struct fr_dedup *g)
{
	struct fr_dedup_entry *e, *next;

	HASH_ITER (hh, g->entries, e, next) {
		HASH_DEL(g->entries, e);
		free(e);
	}
	*g = (struct fr_dedup){0};
}

int fr_dedup_add(struct fr_dedup *g, size_t input, const struct perf_event_header *record)
{
	struct fr_dedup_entry *e;

	HASH_FIND(hh, g->entries, record, record->size, e);
	if (e) {
		e->count = e->input == input ? e->count + 1 : 1;
		e->input = input;
		if (e->count <= e->written)
			return 0;
		e->written = e->count;
		return 1;
	}
	if (g->bytes + record->size > FR_DEDUP_MAX) {
		g->overflow = true;
		return 1;
	}
	e = malloc(sizeof(*e) + record->size);
	if (!e)
		return -ENOMEM;
	*e = (struct fr_dedup_entry){.input = input, .count = 1, .written = 1};
	memcpy(e->record, record, record->size);
	HASH_ADD_KEYPTR(hh, g->entries, e->record, record->size, e);
	if (!e->hh.tbl) {
		free(e);
		return -ENOMEM;
	}
	g->bytes += record->size;
	return 1;
}
