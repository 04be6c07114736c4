// SPDX-License-Identifier: GPL-2.0-or-later

/* Tests of the cut-over, the change from an old capture (opened events with their kernel rings) to a new one.
   The two captures record the same occurrences (hits), and read the clock at slightly different times. A
   cut-over keeps the record of each hit exactly once. */

#include "../unit.h"
#include "capture/cutover.h"
#include "perfdata/record.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define HITS 4000
#define HIT_NS 2000ULL /* from one hit to the next */
#define CUT_NS 10000000ULL
/* Hits before this time and after the last hit are far from the cut-over time. */
#define FIRST_NS (CUT_NS - FR_CUTOVER_WAIT_NS - FR_CUTOVER_NEAR_NS)
static_assert(HITS * HIT_NS >= 2 * (CUT_NS - FIRST_NS), "as many hits after it");

struct record {
	struct fr_sample s;
	uint64_t number;
};

static struct record make(uint64_t number, uint64_t ns, uint64_t id)
{
	struct record r = {.s = {.header = {.type = PERF_RECORD_SAMPLE, .size = sizeof(r)},
				   .id = id,
				   .pid = 1,
				   .tid = 1,
				   .time = ns},
		.number = number};

	return r;
}

/* Check a cut-over. OLD_LATE_NS and NEW_LATE_NS are the longest times from a hit until the old or the new
   capture reads the clock. If SAME_PAYLOAD is true, the records of each four hits differ only in the time. */
static void check(unsigned seed, uint64_t old_late_ns, uint64_t new_late_ns, bool same_payload)
{
	struct fr_cutover *c = fr_cutover_new();
	unsigned char kept[HITS] = {0};

	assert_non_null(c);
	fr_cutover_set_time(c, CUT_NS);
	for (int pass = 0; pass < 2; pass++) {
		srandom(seed);
		for (uint64_t i = 0; i < HITS; i++) {
			uint64_t hit = FIRST_NS + i * HIT_NS + (uint64_t)random() % HIT_NS;
			uint64_t late[2] = {(uint64_t)random(), (uint64_t)random()};
			uint64_t max_ns = pass ? new_late_ns : old_late_ns;
			struct record r = make(same_payload ? i / 4 : i,
				hit + (max_ns ? late[pass] % max_ns : 0), (uint64_t)pass + 1);

			kept[i] += fr_cutover_keeps(c, &r.s.header);
		}
		fr_cutover_begin_new(c);
	}
	if (same_payload) {
		for (size_t i = 0; i < HITS; i += 4)
			assert_int_equal(kept[i] + kept[i + 1] + kept[i + 2] + kept[i + 3], 4);
	} else {
		for (size_t i = 0; i < HITS; i++)
			assert_int_equal(kept[i], 1);
	}
	fr_cutover_free(c);
}

TEST(each_once)
{
	for (unsigned seed = 1; seed < 200; seed++) {
		check(seed, 0, 0, false);
		check(seed, HIT_NS - 100, 0, false);
		check(seed, 0, HIT_NS - 100, false);
		check(seed, FR_CUTOVER_NEAR_NS, FR_CUTOVER_NEAR_NS, false);
		check(seed, HIT_NS / 2, HIT_NS / 2, true);
	}
}

/* Check a cut-over in a row of hits whose records differ only in the time. The clock of one capture is read
   OLD_LATE_NS or NEW_LATE_NS after the hit. */
static void check_row(uint64_t shift_ns, uint64_t old_late_ns, uint64_t new_late_ns)
{
	struct fr_cutover *c = fr_cutover_new();
	unsigned kept = 0;

	assert_non_null(c);
	fr_cutover_set_time(c, CUT_NS);
	for (int pass = 0; pass < 2; pass++) {
		for (uint64_t i = 0; i < HITS; i++) {
			struct record r =
				make(1, FIRST_NS + i * HIT_NS + shift_ns + (pass ? new_late_ns : old_late_ns),
					(uint64_t)pass + 1);

			kept += fr_cutover_keeps(c, &r.s.header);
		}
		fr_cutover_begin_new(c);
	}
	assert_int_equal(kept, HITS);
	fr_cutover_free(c);
}

TEST(each_of_a_row_of_equal_records_once)
{
	for (uint64_t shift_ns = 0; shift_ns < HIT_NS; shift_ns += 20) {
		check_row(shift_ns, 0, 0);
		check_row(shift_ns, 0, HIT_NS / 3);
		check_row(shift_ns, HIT_NS / 3, 0);
	}
}

/* Records of the new capture that the old capture does not have are kept from the cut-over on, and shortly
   before it. */
TEST(without_duplicates)
{
	struct fr_cutover *c = fr_cutover_new();
	struct record r = make(1, CUT_NS, 1);

	fr_cutover_set_time(c, CUT_NS);
	assert_false(fr_cutover_keeps(c, &r.s.header));
	assert_true(fr_cutover_keeps_run(c, 1, CUT_NS - FR_CUTOVER_WAIT_NS - 1));
	assert_false(fr_cutover_keeps_run(c, 1, CUT_NS - 1));
	fr_cutover_begin_new(c);
	r = make(2, CUT_NS - 2 * FR_CUTOVER_NEAR_NS, 2);
	assert_false(fr_cutover_keeps(c, &r.s.header));
	r = make(3, CUT_NS, 2);
	assert_true(fr_cutover_keeps(c, &r.s.header));
	assert_true(fr_cutover_keeps_run(c, CUT_NS + FR_CUTOVER_NEAR_NS, CUT_NS * 2));
	assert_false(fr_cutover_keeps_run(c, CUT_NS, CUT_NS * 2));
	fr_cutover_free(c);
}
