// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/cutover.h"
#include "base/crc32c.h"
#include "perfdata/record.h"

#include <stdlib.h>
#include <string.h>

/* Room for the records of the old capture near the cut-over time: enough for a million records of 1,000 bytes
   a second. If a record does not fit, its duplicate from the new capture is not recognized, so both records
   are kept. */
#define NEAR_BYTES (3u << 20)
#define LISTS 4096u

struct near_record {
	uint64_t ns; /* the record's time */
	struct near_record *next;
	struct perf_event_header h; /* the record; its id and time are 0 */
};

struct fr_cutover {
	uint64_t at_ns;
	bool is_new; /* true: the records come from the new capture now */
	/* Records of the old capture whose duplicates have not come, by their hash. Equal records come from
	   one kernel ring, so they are in the order of their times. */
	struct near_list {
		struct near_record *first, **end;
	} lists[LISTS];
	size_t len;
	_Alignas(8) uint8_t near[NEAR_BYTES];
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
	for (size_t i = 0; i < LISTS; i++)
		c->lists[i] = (struct near_list){.end = &c->lists[i].first};
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
			 : last_ns + FR_CUTOVER_WAIT_NS < c->at_ns;
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

static struct near_list *find_list(struct fr_cutover *c, const struct perf_event_header *h)
{
	return &c->lists[fr_crc32c(0, h, h->size) % LISTS];
}

static void remember(struct fr_cutover *c, const struct perf_event_header *h, uint64_t ns)
{
	struct near_record *n = (struct near_record *)(c->near + c->len);
	struct near_list *list;

	if (sizeof(*n) - sizeof(*h) + h->size > sizeof(c->near) - c->len)
		return;
	n->ns = ns;
	n->next = NULL;
	memcpy(&n->h, h, h->size);
	clear_event(&n->h);
	list = find_list(c, &n->h);
	*list->end = n;
	list->end = &n->next;
	c->len += sizeof(*n) - sizeof(*h) + h->size;
}

static void forget(struct near_list *list, struct near_record **n)
{
	if (list->end == &(*n)->next)
		list->end = n;
	*n = (*n)->next;
}

static uint64_t distance(uint64_t a_ns, uint64_t b_ns)
{
	return a_ns < b_ns ? b_ns - a_ns : a_ns - b_ns;
}

/* Returns whether H is a duplicate of a record of the old capture, and forgets that record: each record of
   the old capture has at most one duplicate. If a program makes the same call again and again, there are
   several equal records, and the one with the nearest time is of the same incident. */
static bool take_duplicate(struct fr_cutover *c, const struct perf_event_header *h, uint64_t ns)
{
	uint8_t copy[FR_RECORD_MAX + 1] __attribute__((aligned(8)));
	struct perf_event_header *wanted = (struct perf_event_header *)copy;
	struct near_record **n, **nearest = NULL;
	uint64_t nearest_ns = FR_CUTOVER_NEAR_NS + 1;
	struct near_list *list;

	memcpy(copy, h, h->size);
	clear_event(wanted);
	list = find_list(c, wanted);
	n = &list->first;
	while (*n) {
		const bool equal = (*n)->h.size == h->size && memcmp(&(*n)->h, wanted, h->size) == 0;

		if (equal && (*n)->ns + FR_CUTOVER_NEAR_NS < ns) {
			forget(list, n);
			continue;
		}
		if (equal && distance((*n)->ns, ns) < nearest_ns) {
			nearest = n;
			nearest_ns = distance((*n)->ns, ns);
		} else if (equal && (*n)->ns > ns) {
			break;
		}
		n = &(*n)->next;
	}
	if (nearest)
		forget(list, nearest);
	return nearest;
}

static bool keeps_new(struct fr_cutover *c, const struct perf_event_header *h, uint64_t ns)
{
	if (ns + 2 * FR_CUTOVER_NEAR_NS < c->at_ns || ns >= c->at_ns + FR_CUTOVER_NEAR_NS)
		return ns >= c->at_ns;
	return !take_duplicate(c, h, ns) && ns + FR_CUTOVER_NEAR_NS >= c->at_ns;
}

bool fr_cutover_keeps(struct fr_cutover *c, const struct perf_event_header *h)
{
	const uint64_t ns = fr_record_time(h);

	if (c->is_new)
		return keeps_new(c, h, ns);
	if (ns < c->at_ns && ns + FR_CUTOVER_WAIT_NS >= c->at_ns)
		remember(c, h, ns);
	return ns < c->at_ns;
}
