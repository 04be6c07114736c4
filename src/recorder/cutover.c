// SPDX-License-Identifier: GPL-2.0-or-later
#include "recorder/cutover.h"
#include "perfdata/record.h"

#include <stdlib.h>
#include <string.h>

/* Room for the records of the old capture near the cut-over time: enough for a million records a second. If a
   record does not fit, its duplicate from the new capture is not recognized, so both records are kept. */
#define NEAR_BYTES (256u << 10)
#define TYPE_FOUND UINT32_MAX /* marks a record whose duplicate has come */

struct fr_cutover {
	uint64_t at_ns;
	bool is_new; /* true: the records come from the new capture now */
	size_t len;
	_Alignas(8) uint8_t near[NEAR_BYTES]; /* records of the old capture; their ids and times are 0 */
};

struct fr_cutover *fr_cutover_new(void)
{
	return calloc(1, sizeof(struct fr_cutover));
}

struct fr_cutover *fr_cutover_free(struct fr_cutover *c)
{
	free(c);
	return NULL;
}

void fr_cutover_set_time(struct fr_cutover *c, uint64_t ns)
{
	c->at_ns = ns;
	c->is_new = false;
	c->len = 0;
}

void fr_cutover_begin_old(struct fr_cutover *c)
{
	c->is_new = false;
}

void fr_cutover_begin_new(struct fr_cutover *c)
{
	c->is_new = true;
}

bool fr_cutover_keeps_run(const struct fr_cutover *c, uint64_t first_ns, uint64_t last_ns)
{
	return c->is_new ? first_ns >= c->at_ns + FR_CUTOVER_NEAR_NS
			 : last_ns + FR_CUTOVER_NEAR_NS < c->at_ns;
}

/* Sets the fields in which duplicates differ to 0: the id and the time. FORK and EXIT records have the time
   twice. */
static void clear_event(struct perf_event_header *h)
{
	struct fr_sample *s = (struct fr_sample *)h;
	struct fr_sample_id *id = (struct fr_sample_id *)((uint8_t *)h + h->size - sizeof(*id));

	if (h->type == PERF_RECORD_SAMPLE) {
		s->id = 0;
		s->time = 0;
		return;
	}
	id->id = 0;
	id->time = 0;
	if (h->type == PERF_RECORD_FORK || h->type == PERF_RECORD_EXIT)
		((struct fr_record_task *)h)->time = 0;
}

static void remember(struct fr_cutover *c, const struct perf_event_header *h)
{
	if (h->size > sizeof(c->near) - c->len)
		return;
	memcpy(c->near + c->len, h, h->size);
	clear_event((struct perf_event_header *)(c->near + c->len));
	c->len += h->size;
}

/* Returns whether H is a duplicate of a record of the old capture, and marks that record. Each record of the
   old capture has at most one duplicate. */
static bool is_duplicate(struct fr_cutover *c, const struct perf_event_header *h)
{
	uint8_t copy[FR_RECORD_MAX + 1] __attribute__((aligned(8)));
	struct perf_event_header *wanted = (struct perf_event_header *)copy, *old;

	memcpy(copy, h, h->size);
	clear_event(wanted);
	for (size_t at = 0; at < c->len; at += old->size) {
		old = (struct perf_event_header *)(c->near + at);
		if (old->size == h->size && memcmp(old, wanted, h->size) == 0) {
			old->type = TYPE_FOUND;
			return true;
		}
	}
	return false;
}

bool fr_cutover_keeps(struct fr_cutover *c, const struct perf_event_header *h)
{
	const uint64_t t = fr_record_time(h);
	const bool is_near_or_later = t + FR_CUTOVER_NEAR_NS >= c->at_ns;

	if (c->is_new)
		return is_near_or_later && (t >= c->at_ns + FR_CUTOVER_NEAR_NS || !is_duplicate(c, h));
	if (is_near_or_later && t < c->at_ns)
		remember(c, h);
	return t < c->at_ns;
}
