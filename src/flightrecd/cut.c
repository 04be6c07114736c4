// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecd/cut.h"
#include "perfdata/record.h"

#include <stdlib.h>
#include <string.h>

/* Of what happens near the cut: at a million records a second, a tenth of it. Of what does not fit, twins
 * stay. */
#define TWINS_BYTES (256u << 10)

struct fr_cut {
	uint64_t at_ns;
	size_t len;
	_Alignas(8) uint8_t twins[TWINS_BYTES]; /* whole records without id and time; taken: of no type */
};

struct fr_cut *fr_cut_new(void)
{
	return calloc(1, sizeof(struct fr_cut));
}

struct fr_cut *fr_cut_free(struct fr_cut *c)
{
	free(c);
	return NULL;
}

void fr_cut_at(struct fr_cut *c, uint64_t ns)
{
	c->at_ns = ns;
	c->len = 0;
}

bool fr_cut_is_old(const struct fr_cut *c, uint64_t first_ns, uint64_t last_ns)
{
	return last_ns + FR_CUT_NEAR_NS < c->at_ns;
}

bool fr_cut_is_new(const struct fr_cut *c, uint64_t first_ns, uint64_t last_ns)
{
	return first_ns >= c->at_ns + FR_CUT_NEAR_NS;
}

/* FORK and EXIT have their time twice. */
static void forget_event(struct perf_event_header *h)
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

bool fr_cut_keep_old(struct fr_cut *c, const struct perf_event_header *h)
{
	const uint64_t t = fr_record_time(h);

	if (t >= c->at_ns)
		return false;
	if (t + FR_CUT_NEAR_NS >= c->at_ns && h->size <= sizeof(c->twins) - c->len) {
		memcpy(c->twins + c->len, h, h->size);
		forget_event((struct perf_event_header *)(c->twins + c->len));
		c->len += h->size;
	}
	return true;
}

/* Each is the twin of one. */
static bool take_twin(struct fr_cut *c, const struct perf_event_header *h)
{
	uint8_t copy[FR_RECORD_MAX + 1] __attribute__((aligned(8)));
	struct perf_event_header *wanted = (struct perf_event_header *)copy;

	memcpy(copy, h, h->size);
	forget_event(wanted);
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

bool fr_cut_keep_new(struct fr_cut *c, const struct perf_event_header *h)
{
	const uint64_t t = fr_record_time(h);

	if (t + FR_CUT_NEAR_NS < c->at_ns)
		return false;
	return t >= c->at_ns + FR_CUT_NEAR_NS || !take_twin(c, h);
}
