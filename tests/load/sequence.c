/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Finds the numbers of frtest-count in a file with samples of raw_syscalls:sys_enter. Prints the first and
 * the last number, how many numbers between them are missing, how many are in the file twice, and how many
 * are out of order. Usage: frtest-sequence FILE TID NR. TID is the thread that counted, and NR is the number
 * of the system call with which it counted.
 */

#include "perfdata/reader.h"

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBERS_MAX (1ULL << 32)
#define HOLES_MAX 64

/* The raw data of the tracepoint. */
struct sys_enter {
	uint64_t common;
	int64_t nr;
	uint64_t args[6];
};

struct sequence {
	uint8_t *seen; /* one bit for each number */
	uint64_t count, twice, backwards, previous, first, last;
	uint64_t first_ns, previous_ns;
	/* A hole is a range of missing numbers: two numbers follow each other in the file, but not in the
	   count. */
	uint64_t n_holes;
	struct {
		uint64_t from_ns, to_ns, missing;
	} holes[HOLES_MAX];
};

/* Returns the raw data of the sample H, or NULL if the sample has none. TYPE is the sample type of its event.
   The raw data follows the fields of fixed size and the call chain. */
static const struct sys_enter *find_raw(const struct perf_event_header *h, uint64_t type)
{
	const uint64_t fixed = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU |
			       PERF_SAMPLE_PERIOD;
	const uint8_t *p = (const uint8_t *)(h + 1) + 8 * (size_t)__builtin_popcountll(type & fixed),
		      *end = (const uint8_t *)h + h->size;
	uint64_t n = 0;
	uint32_t size;

	if (!(type & PERF_SAMPLE_RAW) || type & PERF_SAMPLE_READ)
		return NULL;
	if (type & PERF_SAMPLE_CALLCHAIN) {
		if (end - p < 8)
			return NULL;
		memcpy(&n, p, 8);
		if (n > (size_t)(end - p) / 8 - 1)
			return NULL;
		p += 8 + 8 * n;
	}
	if (end - p < 4)
		return NULL;
	memcpy(&size, p, 4);
	return size >= sizeof(struct sys_enter) && (size_t)(end - p) - 4 >= size ? (const void *)(p + 4)
										 : NULL;
}

static void add_hole(struct sequence *s, uint64_t number, uint64_t ns)
{
	if (s->count == 0 || number <= s->previous + 1)
		return;
	if (s->n_holes < HOLES_MAX) {
		s->holes[s->n_holes].from_ns = s->previous_ns;
		s->holes[s->n_holes].to_ns = ns;
		s->holes[s->n_holes].missing = number - s->previous - 1;
	}
	s->n_holes++;
}

static void add_number(struct sequence *s, uint64_t number, uint64_t ns)
{
	if (number >= NUMBERS_MAX)
		errx(1, "the number %" PRIu64 " was never counted", number);
	add_hole(s, number, ns);
	s->previous_ns = ns;
	s->first_ns = s->count == 0 ? ns : s->first_ns;
	if (s->seen[number / 8] & 1u << number % 8)
		s->twice++;
	s->seen[number / 8] |= (uint8_t)(1u << number % 8);
	s->backwards += s->count > 0 && number < s->previous;
	s->previous = number;
	s->first = s->count == 0 || number < s->first ? number : s->first;
	s->last = s->count == 0 || number > s->last ? number : s->last;
	s->count++;
}

/* Returns the sample type of the event with the id ID, or 0 if there is no such event. */
static uint64_t sample_type(const struct fr_session *s, uint64_t id)
{
	for (size_t e = 0; e < s->n_events; e++)
		for (size_t i = 0; i < s->events[e].n_ids; i++)
			if (s->events[e].ids[i] == id)
				return s->events[e].attr.sample_type;
	return 0;
}

static void print_holes(const struct sequence *s)
{
	for (size_t i = 0; i < s->n_holes && i < HOLES_MAX; i++)
		printf("%s{\"from_ns\":%" PRIu64 ",\"to_ns\":%" PRIu64 ",\"missing\":%" PRIu64 "}",
			i ? "," : "", s->holes[i].from_ns, s->holes[i].to_ns, s->holes[i].missing);
}

int main(int argc, char *argv[])
{
	struct sequence s = {.seen = calloc(1, NUMBERS_MAX / 8)};
	const struct perf_event_header *h;
	struct fr_reader *r;
	struct fr_diag d = {0};
	uint32_t tid;
	int64_t nr;
	int x;

	if (argc != 4)
		errx(2, "usage: frtest-sequence FILE TID NR");
	if (!s.seen)
		err(1, "memory");
	tid = (uint32_t)atoi(argv[2]);
	nr = atoi(argv[3]);
	if (fr_reader_open(argv[1], &r, &d) < 0)
		errx(1, "%s", d.what);
	while ((x = fr_reader_next(r, &h, NULL)) == 1) {
		const struct sys_enter *raw;
		struct sys_enter copy;

		if (h->type != PERF_RECORD_SAMPLE || ((const struct fr_sample *)h)->tid != tid)
			continue;
		raw = find_raw(h, sample_type(fr_reader_session(r), fr_record_id(h)));
		if (!raw)
			continue;
		memcpy(&copy, raw, sizeof(copy));
		if (copy.nr == nr && (uint32_t)copy.args[0] == UINT32_MAX)
			add_number(&s, copy.args[1], fr_record_time(h));
	}
	if (x < 0 || fr_reader_damage(r)->damaged)
		errx(1, "%s: %s", argv[1], x < 0 ? strerror(-x) : fr_reader_damage(r)->text);
	printf("{\"first\":%" PRIu64 ",\"last\":%" PRIu64 ",\"count\":%" PRIu64 ",\"missing\":%" PRIu64
	       ",\"twice\":%" PRIu64 ",\"backwards\":%" PRIu64 ",\"first_ns\":%" PRIu64
	       ",\"last_ns\":%" PRIu64 ",\"holes\":[",
		s.first, s.last, s.count, s.count ? s.last - s.first + 1 - (s.count - s.twice) : 0, s.twice,
		s.backwards, s.first_ns, s.previous_ns);
	print_holes(&s);
	printf("]}\n");
	fr_reader_free(r);
	free(s.seen);
	return 0;
}
