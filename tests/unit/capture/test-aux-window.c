// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of the new bytes of an AUX area. The test writes the area itself, with both kinds of aux_head. */
#include "../unit.h"
#include "capture/aux_window.h"
#include "base/cleanup.h"

#include <stdlib.h>
#include <string.h>

#define AREA_MAX 65536

/* The writer. A byte says the position at which it was written, so that old and new bytes differ. */
struct writer {
	uint64_t size, written, now_ns;
	bool is_place; /* aux_head is a place in the area; otherwise it counts all bytes */
	struct fr_aux_window w;
	uint8_t area[AREA_MAX], out[AREA_MAX];
};

/* Where the writer comes by a second or a third time, it always writes other bytes. */
static uint8_t byte_at(uint64_t position)
{
	return (uint8_t)(position * 37 + (position >> 12) * 101 + 1);
}

static struct writer *writer_new(uint64_t size, bool is_place)
{
	struct writer *t = calloc(1, sizeof(*t));

	t->size = size;
	t->is_place = is_place;
	fr_aux_window_init(&t->w, size);
	return t;
}

static void put(struct writer *t, uint64_t n)
{
	for (; n--; t->written++)
		t->area[t->written & (t->size - 1)] = byte_at(t->written);
	t->now_ns += 10;
}

static bool look(struct writer *t)
{
	return fr_aux_window_look(
		&t->w, t->area, t->is_place ? t->written & (t->size - 1) : t->written, t->now_ns);
}

/* Takes the new bytes, and compares them with those that were written from FROM on. */
static void expect(struct writer *t, uint64_t since_ns, uint64_t from)
{
	struct fr_aux_part p = fr_aux_window_take(&t->w, since_ns, UINT64_MAX);

	assert_int_equal(p.len, t->written - from);
	assert_int_equal((p.position - from) & (t->size - 1), 0);
	fr_aux_window_copy(&t->w, t->area, &p, t->out);
	for (size_t i = 0; i < p.len; i++)
		assert_int_equal(t->out[i], byte_at(from + i));
}

TEST(area_that_was_not_written)
{
	for (int place = 0; place < 2; place++) {
		_cleanup_free_ struct writer *t = writer_new(8192, place);

		assert_false(look(t));
		expect(t, 0, 0);
		put(t, 100);
		assert_true(look(t));
		expect(t, 0, 0);
		assert_false(look(t));
		expect(t, 0, 100);
	}
}

TEST(every_number_of_bytes_around_a_wrap)
{
	for (uint64_t first = 0; first < 40; first++)
		for (uint64_t second = 0; second < 70; second++)
			for (int place = 0; place < 2; place++) {
				_cleanup_free_ struct writer *t = writer_new(32, place);

				put(t, first);
				look(t);
				expect(t, 0, first - FR_MIN(first, (uint64_t)32));
				put(t, second);
				look(t);
				expect(t, 0, first + second - FR_MIN(second, (uint64_t)32));
			}
}

TEST(positions_never_go_back)
{
	for (int place = 0; place < 2; place++) {
		_cleanup_free_ struct writer *t = writer_new(8192, place);
		uint64_t end = 0;

		for (int i = 0; i < 50; i++) {
			struct fr_aux_part p;

			put(t, 3000);
			look(t);
			p = fr_aux_window_take(&t->w, 0, UINT64_MAX);
			assert_int_equal(p.position, end);
			end = p.position + p.len;
			assert_int_equal(end, t->written);
		}
	}
}

TEST(old_bytes_are_cut_by_time)
{
	_cleanup_free_ struct writer *t = writer_new(8192, true);

	put(t, 1000); /* ends at 10 ns */
	look(t);
	put(t, 500); /* ends at 20 ns */
	look(t);
	put(t, 250); /* ends at 30 ns */
	look(t);
	expect(t, 25, 1500);
	put(t, 100);
	look(t);
	expect(t, 9, 1750);
	put(t, 100);
	look(t);
	expect(t, UINT64_MAX, 1950); /* all of it was written before */
	for (int i = 0; i < 3 * FR_AUX_MARKS; i++) {
		put(t, 1);
		look(t);
	}
	expect(t, t->now_ns - 50, t->written - 5);
}

/* A task that ran here long ago, and then other work elsewhere: the area was looked at, and stays as it is.
 */
TEST(area_of_a_cpu_that_the_task_has_left)
{
	_cleanup_free_ struct writer *t = writer_new(8192, true);

	put(t, 8192 + 100);
	look(t);
	for (int i = 0; i < 100; i++) {
		t->now_ns += 1000;
		assert_false(look(t));
	}
	expect(t, t->now_ns - 3000, t->written);
}

/* Random writes, looks and snapshots, compared with the numbers of the writer. */
TEST(random_writes_and_snapshots)
{
	srandom(1);
	for (int round = 0; round < 60; round++) {
		const uint64_t size = 4096ULL << random() % 5;
		_cleanup_free_ struct writer *t = writer_new(size, round & 1);
		uint64_t taken = 0;

		for (int i = 0; i < 300; i++) {
			const uint64_t n = (uint64_t)random() % (random() % 4 ? size / 3 : 2 * size);

			put(t, random() % 5 ? n : 0);
			look(t);
			if (random() % 2)
				continue;
			expect(t, 0, FR_MAX(taken, t->written - FR_MIN(t->written, size)));
			taken = t->written;
		}
	}
}

TEST(what_was_written_after_the_end_of_the_window_is_for_a_later_snapshot)
{
	_cleanup_free_ struct writer *t = writer_new(65536, true);
	struct fr_aux_part p;

	for (int i = 0; i < 3; i++) { /* looks at 10, 20 and 30 ns */
		put(t, 1000);
		look(t);
	}
	p = fr_aux_window_take(&t->w, 0, 15);
	assert_int_equal(p.position, 0);
	assert_int_equal(p.len, 2000);
	p = fr_aux_window_take(&t->w, 0, 10);
	assert_int_equal(p.len, 0);
	p = fr_aux_window_take(&t->w, 10, 31);
	assert_int_equal(p.position, 2000);
	assert_int_equal(p.len, 1000);
	p = fr_aux_window_take(&t->w, 40, 10); /* no time at all */
	assert_int_equal(p.len, 0);
	p = fr_aux_window_take(&t->w, 0, UINT64_MAX);
	assert_int_equal(p.len, 0);
}
