// SPDX-License-Identifier: GPL-2.0-or-later
#include "recorder/cutover.h"
#include "perfdata/record.h"

#include <stdlib.h>
#include <string.h>

/* Room for the old capture's records near the instant: enough for a million records a second. A record that
   does not fit is in both captures then, and both are kept. */
#define TWINS_BYTES (256u << 10)

struct fr_cutover {
	uint64_t at_ns;
	size_t len;
	_Alignas(8) uint8_t
		twins[TWINS_BYTES]; /* whole records without id and time; type UINT32_MAX: its twin came */
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
	c->len = 0;
}

bool fr_cutover_keeps_old_run(const struct fr_cutover *c, uint64_t first_ns, uint64_t last_ns)
{
	return last_ns + FR_CUTOVER_NEAR_NS < c->at_ns;
}

bool fr_cutover_keeps_new_run(const struct fr_cutover *c, uint64_t first_ns, uint64_t last_ns)
{
	return first_ns >= c->at_ns + FR_CUTOVER_NEAR_NS;
}

/* Clear what differs between twins. FORK and EXIT have their time twice. */
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

bool fr_cutover_keeps_old(struct fr_cutover *c, const struct perf_event_header *h)
{
	const uint64_t t = fr_record_time(h);

	if (t >= c->at_ns)
		return false;
	if (t + FR_CUTOVER_NEAR_NS >= c->at_ns && h->size <= sizeof(c->twins) - c->len) {
		memcpy(c->twins + c->len, h, h->size);
		clear_event((struct perf_event_header *)(c->twins + c->len));
		c->len += h->size;
	}
	return true;
}

/* Each record is the twin of one record at most. */
static bool take_twin(struct fr_cutover *c, const struct perf_event_header *h)
{
	uint8_t copy[FR_RECORD_MAX + 1] __attribute__((aligned(8)));
	struct perf_event_header *wanted = (struct perf_event_header *)copy;

	memcpy(copy, h, h->size);
	clear_event(wanted);
	for (size_t at = 0; at < c->len;) {
		struct perf_event_header *twin = (struct perf_event_header *)(c->twins + at);

		if (twin->size == h->size && memcmp(twin, wanted, h->size) == 0) {
			twin->type = UINT32_MAX;
			return true;
		}
		at += twin->size;
	}
	return false;
}

bool fr_cutover_keeps_new(struct fr_cutover *c, const struct perf_event_header *h)
{
	const uint64_t t = fr_record_time(h);

	if (t + FR_CUTOVER_NEAR_NS < c->at_ns)
		return false;
	return t >= c->at_ns + FR_CUTOVER_NEAR_NS || !take_twin(c, h);
}
