/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Records for tests of the ring. The content of each record follows from its number. */

#include "base/buf.h"
#include "history/history.h"
#include "history/layout.h"
#include "perfdata/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum test_kind { TEST_SIDEBAND, TEST_SAMPLES };

/* A repeatable sequence of numbers; the state is not 0. */
uint64_t test_random(uint64_t *state);
/* A number from LOW to HIGH. */
uint64_t test_between(uint64_t *state, uint64_t low, uint64_t high);

/* Append a record numbered N (its time is N + 1) of SIZE bytes, a multiple of 8, from TEST_RECORD_MIN to
   FR_RECORD_MAX. NOISE: its filling does not compress. */
#define TEST_RECORD_MIN 64u
void test_put(struct fr_buf *b, enum test_kind kind, uint64_t n, uint32_t size, bool noise);

/* A record of the test has exactly the content that was put, and the number *RET_N. Any thread. */
bool test_is_valid_record(const struct perf_event_header *record, uint64_t *ret_n);
/* The number of a record; fails the test if it is not valid. */
uint64_t test_check_record(const struct perf_event_header *record);

/* Append N records numbered FIRST … in one run. Returns as fr_history_append(). */
int test_append_run(
	struct fr_history *h, enum test_kind kind, uint64_t first, unsigned n, uint32_t size, bool noise);
int test_append(struct fr_history *h, uint64_t first, unsigned n, uint32_t size, bool noise);
int test_append_sideband(struct fr_history *h, uint64_t first, unsigned n, uint32_t size, bool noise);

/* Call FN for each record of a section of F. False: the section is not valid. Any thread. */
typedef void (*test_record_fn)(void *ctx, const struct perf_event_header *record);
bool test_walk_section(const struct fr_frame *f, enum test_kind kind, test_record_fn fn, void *ctx);

/* Records that were read: numbers FIRST … NEXT - 1 of each kind, consecutive unless there may be gaps. */
struct test_contents {
	bool with_gaps;
	uint64_t first[2], next[2], n[2];
	uint64_t frames, seq;
};
/* Check a record, a frame, all frames of a snapshot, or all of a ring, and count its records. */
void test_count_record(void *contents, const struct perf_event_header *record);
void test_count_frame(struct test_contents *c, const struct fr_frame *f);
void test_count_snapshot(struct test_contents *c, struct fr_snapshot *s);
struct test_contents test_read(struct fr_history *h);
struct test_contents test_read_with_gaps(struct fr_history *h);

struct fr_history *test_history(
	uint64_t size, void (*evicted)(void *ctx, const struct fr_frame *frame), void *ctx);
struct fr_history_stats test_stats(struct fr_history *h);

/* A memfd with a copy of H's image: what a kill at this moment would leave. */
int test_copy_image(const struct fr_history *h);
/* Flip a bit in a place that matters: a header, a record, a section. IMAGE is whole, BROKEN is a copy.
   Returns the offset. */
size_t test_flip_bit(uint64_t *random, const uint8_t *image, uint8_t *broken);

/* Change the size of a ring that no other thread uses meanwhile. Returns as fr_resize_begin(). */
int test_resize(struct fr_history **h, uint64_t size, struct fr_history_adopted *ret, struct fr_diag *d);
