// SPDX-License-Identifier: GPL-2.0-or-later

/* Tests that a frame has the runs of each CPU together and in their order, that no record is missing or
   twice, and that long runs stay as they are. */

#include "records.h"
#include "base/cleanup.h"
#include "history/regroup.h"
#include "history/unpack.h"

#include <string.h>

#define MAX (1u << 20)
#define CPUS 5u

struct fixture {
	struct fr_regroup *g;
	uint64_t random;
	_Alignas(8) uint8_t data[MAX];
	size_t len;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_int_equal(fr_regroup_new(MAX, &f->g), 0);
	f->random = 5;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	fr_regroup_free(f->g);
	free(f);
	return 0;
}

FIXTURE(setup, teardown)

/* A run is words: each is the CPU in its upper half, and its place in the chunk in the lower half. */
static void add(struct fixture *f, unsigned cpu, unsigned words)
{
	fr_regroup_add(f->g, cpu, words * sizeof(uint64_t));
	for (unsigned i = 0; i < words; i++, f->len += sizeof(uint64_t)) {
		const uint64_t word = (uint64_t)cpu << 32 | f->len;

		memcpy(f->data + f->len, &word, sizeof(word));
	}
}

static int compare_words(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void check(struct fixture *f, size_t before)
{
	static uint64_t wanted[MAX / sizeof(uint64_t)];

	memcpy(wanted, f->data, f->len);
	qsort(wanted + before, f->len / sizeof(*wanted) - before, sizeof(*wanted), compare_words);
	assert_memory_equal(fr_regroup_join(f->g, f->data, f->len), wanted, f->len);
}

TEST(runs_of_each_cpu_come_together)
{
	struct fixture *f = *state;

	for (unsigned turn = 0; turn < 300; turn++) {
		const unsigned before = (unsigned)test_between(&f->random, 0, 20),
			       runs = (unsigned)test_between(&f->random, 0, 200);

		fr_regroup_clear(f->g);
		f->len = 0;
		add(f, CPUS, before); /* bytes of the chunk that were there before the first run */
		fr_regroup_clear(f->g);
		for (unsigned cpu = 0; cpu < 3; cpu++) /* two runs are not worth a copy */
			add(f, cpu, 1);
		for (unsigned i = 0; i < runs; i++)
			add(f, (unsigned)test_between(&f->random, 0, CPUS - 1),
				(unsigned)test_between(&f->random, 1, 100));
		check(f, before);
	}
}

TEST(what_is_in_order_or_long_is_not_copied)
{
	struct fixture *f = *state;

	assert_ptr_equal(fr_regroup_join(f->g, f->data, 0), f->data);
	for (unsigned i = 0; i < 100; i++)
		add(f, 1, 10);
	assert_ptr_equal(fr_regroup_join(f->g, f->data, f->len), f->data);
	add(f, 0, 10);
	assert_ptr_equal(fr_regroup_join(f->g, f->data, f->len), f->data);
	add(f, 1, 10);
	check(f, 0);
	assert_ptr_not_equal(fr_regroup_join(f->g, f->data, f->len), f->data);

	f->len = 0;
	fr_regroup_clear(f->g);
	for (unsigned i = 0; i < 4; i++)
		add(f, i % 2, 20000);
	assert_ptr_equal(fr_regroup_join(f->g, f->data, f->len), f->data);
}

TEST(no_run_is_lost_when_there_are_too_many)
{
	struct fixture *f = *state;
	const uint8_t *joined;
	uint64_t sum = 0, word;

	for (unsigned i = 0; i < 20000; i++)
		add(f, i % 3, 2);
	joined = fr_regroup_join(f->g, f->data, f->len);
	assert_ptr_not_equal(joined, f->data);
	for (size_t at = 0; at < f->len; at += sizeof(word)) {
		memcpy(&word, joined + at, sizeof(word));
		sum += (uint32_t)word;
	}
	assert_int_equal(sum, (uint64_t)f->len / 8 * (f->len - 8) / 2);
}

/* Appends the records FIRST … FIRST + N - 1, each as a run of the CPU with the index number % CPUS. */
static void append(struct fr_history *h, uint64_t first, unsigned n)
{
	for (uint64_t i = first; i < first + n; i++) {
		_cleanup_buf_ struct fr_buf b = {0};

		test_put(&b, TEST_SAMPLES, i, 120, false);
		assert_int_equal(
			fr_history_append_from(h, (unsigned)(i % CPUS), b.data, b.len, 1, i + 1, i + 1), 0);
	}
}

struct order {
	uint64_t n, newest, turns;
	bool seen[1000];
};

static void look(void *ctx, const struct perf_event_header *record)
{
	struct order *o = ctx;
	const uint64_t n = test_check_record(record);

	assert_in_range(n, 1, 999);
	assert_false(o->seen[n]);
	o->seen[n] = true;
	o->turns += n < o->newest;
	o->newest = n;
	o->n++;
}

/* Seals the open chunk, and checks that the N records of H are there, sorted by CPU. */
static void check_frames(struct fr_history *h, uint64_t n)
{
	struct order o = {0};
	struct fr_snapshot *s;
	struct fr_frame frame;

	assert_int_equal(fr_history_seal(h), 0);
	assert_int_equal(fr_history_snapshot(h, &s), 0);
	while (fr_snapshot_next(s, &frame))
		assert_true(test_walk_section(&frame, TEST_SAMPLES, look, &o));
	fr_snapshot_free(s);
	assert_int_equal(o.n, n);
	assert_int_equal(o.turns, CPUS - 1);
}

TEST(a_frame_has_the_samples_of_each_cpu_together)
{
	struct fr_history *h = test_history(1 << 20, NULL, NULL);

	append(h, 1, 500);
	check_frames(h, 500);
	fr_history_free(h);
}

/* The order of an open chunk that was adopted is not known any more. */
TEST(an_adopted_chunk_keeps_its_records)
{
	struct fr_history *h = test_history(1 << 20, NULL, NULL), *next;
	struct fr_history_adopted adopted;

	append(h, 1, 300);
	assert_int_equal(fr_history_adopt(&(struct fr_history_config){.size_bytes = 1 << 20, .level = 1},
				 test_copy_image(h), &next, &adopted, NULL),
		0);
	fr_history_free(h);
	assert_true(adopted.in_place);
	append(next, 301, 300);
	check_frames(next, 600);
	fr_history_free(next);
}
