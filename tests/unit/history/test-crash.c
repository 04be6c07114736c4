// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Tests of a ring in memory that survives a crash of the machine. The model of the machine has a memory and a
 * cache: a store changes the cache. A cache line reaches the memory when the ring writes it back, or at any
 * earlier time. After a crash, only the memory is left. It must have all records up to the last commit, in
 * order and undamaged.
 */

#include "ring_process.h"
#include "base/clock.h"
#include "history/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LINE 64u
#define SIZE_MAX_BYTES (4u << 20)

static struct {
	uint8_t *cache, *memory, *crashed; /* `crashed`: the memory at the time of the crash */
	size_t bytes;
	uint64_t random;
	uint64_t crash_in; /* number of calls of write_back() until the crash; 0: no crash */
	struct progress *p;
	uint64_t kept[2]; /* the records with smaller numbers must survive the crash */
	uint64_t done[2]; /* records that were appended at the time of the crash */
	uint64_t evicted[2];
	bool has_crashed;
} machine;

static void copy_lines(uint8_t *to, size_t from, size_t end, unsigned one_of)
{
	for (size_t at = from / LINE * LINE; at < end; at += LINE)
		if (test_random(&machine.random) % one_of == 0)
			memcpy(to + at, machine.cache + at, LINE);
}

/* Sets machine.crashed to the memory after a crash at this moment: some lines of the cache have reached it.
 */
static void crash(size_t from, size_t end)
{
	memcpy(machine.crashed, machine.memory, machine.bytes);
	copy_lines(machine.crashed, 0, machine.bytes, (unsigned)test_between(&machine.random, 2, 1000));
	copy_lines(machine.crashed, from, end, 2);
	for (int k = 0; k < 2; k++) {
		machine.done[k] = machine.p->started[k];
		machine.evicted[k] = machine.p->evicted[k];
	}
	machine.has_crashed = true;
}

static void write_back(const void *p, size_t len)
{
	const size_t from = (size_t)((const uint8_t *)p - machine.cache);

	assert_true(from + len <= machine.bytes);
	if (machine.crash_in && --machine.crash_in == 0)
		crash(from, from + len);
	copy_lines(machine.memory, from, from + len, 1);
}

static struct fr_history_config config(uint8_t *at, struct progress *p)
{
	return (struct fr_history_config){.memory = {at, machine.bytes, write_back},
		.level = 1,
		.evicted = p ? on_evicted : NULL,
		.ctx = p};
}

/* Notes that all records so far are committed. */
static void note_commit(void)
{
	if (machine.has_crashed)
		return;
	for (int k = 0; k < 2; k++)
		machine.kept[k] = machine.p->done[k];
}

static void step(struct fr_history *h)
{
	switch (test_random(&machine.random) % 64) {
	case 0:
		assert_int_equal(fr_history_seal(h), 0);
		note_commit();
		break;
	case 1 ... 8:
		assert_int_equal(append_run(h, machine.p, TEST_SIDEBAND, &machine.random), 0);
		break;
	case 9 ... 12:
		fr_history_end_round(h);
		note_commit();
		fr_history_begin_round(h, fr_monotonic_ns());
		break;
	default:
		assert_int_equal(append_run(h, machine.p, TEST_SAMPLES, &machine.random), 0);
	}
}

/* Adopts the ring in machine.crashed, and compares it with what must be there. */
static void check_crashed(void)
{
	struct fr_history_config c = config(machine.crashed, NULL);
	struct fr_history_adopted adopted;
	struct test_contents contents;
	struct fr_history *h;
	struct fr_diag d = {0};

	c.crashed = true;
	c.rescue = test_random(&machine.random) % 2;
	machine.cache = machine.crashed; /* for write_back() */
	assert_int_equal(fr_history_adopt(&c, -1, &h, &adopted, &d), 0);
	contents = read_all(h);
	expect_described(&contents, &adopted, h);
	for (int k = 0; k < 2; k++) {
		assert_true(contents.n[k] || machine.kept[k] <= machine.evicted[k]);
		if (!contents.n[k])
			continue;
		assert_true(contents.next[k] >= machine.kept[k] && contents.next[k] <= machine.done[k]);
		assert_true(contents.first[k] <= machine.evicted[k]);
	}
	fr_history_free(h);
}

static void run_until_crash(size_t bytes, uint64_t crash_in)
{
	struct fr_history_config c;
	struct fr_history *h;
	uint8_t *cache;

	machine.bytes = bytes;
	machine.p = progress_new();
	cache = machine.cache = calloc(1, bytes);
	machine.memory = calloc(1, bytes);
	machine.crashed = calloc(1, bytes);
	machine.crash_in = 0;
	machine.has_crashed = false;
	memset(machine.kept, 0, sizeof(machine.kept));
	c = config(machine.cache, machine.p);
	assert_int_equal(fr_history_new(&c, &h, NULL), 0);
	assert_int_equal(fr_history_fd(h), -1);
	machine.crash_in = crash_in;
	while (!machine.has_crashed) {
		step(h);
		if (test_random(&machine.random) % 4096 == 0)
			crash(0, 0);
	}
	check_crashed();
	fr_history_free(h);
	free(cache);
	free(machine.memory);
	free(machine.crashed);
	progress_free(machine.p);
}

TEST(a_crash_at_any_moment_loses_only_what_was_not_committed)
{
	machine.random = 20261125;
	for (unsigned i = 0; i < 60; i++)
		run_until_crash(
			test_between(&machine.random, FR_HISTORY_SIZE_MIN / 4096, SIZE_MAX_BYTES / 4096) *
				4096,
			test_between(&machine.random, 1, i % 3 ? 3000 : 60));
}

/* Fills a ring in memory, which the caller frees with its memory (machine.cache). */
static struct fr_history *full_ring(size_t bytes)
{
	struct fr_history_config c;
	struct fr_history *h;

	machine.bytes = bytes;
	machine.p = progress_new();
	machine.cache = calloc(1, bytes);
	machine.memory = calloc(1, bytes);
	machine.crash_in = 0;
	c = config(machine.cache, machine.p);
	assert_int_equal(fr_history_new(&c, &h, NULL), 0);
	while (machine.p->evicted[TEST_SAMPLES] < 1000)
		step(h);
	return h;
}

static void free_ring(struct fr_history *h)
{
	fr_history_free(h);
	free(machine.cache);
	free(machine.memory);
	progress_free(machine.p);
}

TEST(the_next_process_continues_the_ring_in_its_memory)
{
	struct fr_history_config c;
	struct fr_history_adopted adopted;
	struct test_contents before, after;
	struct fr_history *h;

	machine.random = 5;
	h = full_ring(2 << 20);
	before = read_all(h);
	fr_history_free(h);
	c = config(machine.cache, machine.p);
	assert_int_equal(fr_history_adopt(&c, -1, &h, &adopted, NULL), 0);
	assert_true(adopted.in_place);
	after = read_all(h);
	assert_memory_equal(before.next, after.next, sizeof(before.next));
	assert_true(after.first[TEST_SAMPLES] <= before.first[TEST_SAMPLES]);
	assert_memory_equal(machine.cache, machine.memory, machine.bytes);
	for (unsigned i = 0; i < 1000; i++)
		step(h);
	free_ring(h);
}

/* While a dump is written, its frames are pinned, and new frames go into the reserve. */
TEST(a_rescue_takes_the_frames_in_the_reserve_over)
{
	struct fr_history_config c;
	struct fr_history_adopted adopted;
	struct fr_snapshot *pins;
	struct fr_history *h;
	uint64_t oldest, evicted;

	machine.random = 6;
	h = full_ring(8 << 20);
	assert_int_equal(fr_history_snapshot(h, &pins), 0);
	evicted = machine.p->evicted[TEST_SAMPLES];
	oldest = fr_history_oldest_seq(h);
	while (fr_arena_used(&h->arena) + h->arena.reserve / 2 < h->arena.bytes)
		step(h);
	assert_int_equal(machine.p->evicted[TEST_SAMPLES], evicted);
	fr_history_end_round(h);
	fr_snapshot_free(pins);
	fr_history_free(h);
	c = config(machine.cache, machine.p);
	c.crashed = c.rescue = true;
	c.min_seq = oldest;
	assert_int_equal(fr_history_adopt(&c, -1, &h, &adopted, NULL), 0);
	assert_int_equal(fr_history_oldest_seq(h), oldest);
	assert_int_equal(fr_history_seal(h), 0); /* there is room, or the oldest frames are evicted */
	assert_int_equal(read_all(h).next[TEST_SAMPLES], machine.p->done[TEST_SAMPLES]);
	free_ring(h);
}

TEST(a_memfd_can_move_into_the_memory)
{
	struct progress *p = progress_new();
	uint64_t random = 7;
	struct fr_history *old = ring_with_records(2 << 20, 800, p, &random), *h;
	struct fr_history_config c;
	struct fr_history_adopted adopted;
	struct test_contents before = read_all(old), after;

	machine.bytes = 2 << 20;
	machine.cache = calloc(1, machine.bytes);
	machine.memory = calloc(1, machine.bytes);
	c = config(machine.cache, NULL);
	assert_int_equal(fr_history_adopt(&c, test_copy_image(old), &h, &adopted, NULL), 0);
	assert_false(adopted.in_place);
	after = read_all(h);
	assert_memory_equal(before.next, after.next, sizeof(before.next));
	assert_memory_equal(machine.cache, machine.memory, machine.bytes);
	fr_history_free(h);
	fr_history_free(old);
	free(machine.cache);
	free(machine.memory);
	progress_free(p);
}

TEST(foreign_memory_is_refused)
{
	struct fr_history_config c;
	struct fr_history_adopted adopted;
	struct fr_history *h, *none = NULL;
	struct fr_diag d = {0};

	machine.random = 8;
	h = full_ring(1 << 20);
	fr_history_free(h);
	c = config(machine.cache, NULL);
	c.crashed = true;
	machine.cache[20] ^= 1; /* image_bytes */
	assert_int_equal(fr_history_adopt(&c, -1, &none, &adopted, &d), -EBADMSG);
	assert_null(none);
	memset(machine.cache, 0, machine.bytes);
	assert_int_equal(fr_history_adopt(&c, -1, &none, &adopted, &d), -EBADMSG);
	free_ring(NULL);
}

TEST(the_size_of_a_memory_cannot_change)
{
	struct fr_resize *z = NULL;
	struct fr_history *h;
	struct fr_diag d = {0};

	machine.random = 9;
	h = full_ring(1 << 20);
	assert_int_equal(fr_resize_begin(h, 2 << 20, &z, &d), -ENOTSUP);
	free_ring(h);
}
