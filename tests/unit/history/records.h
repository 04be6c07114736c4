/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Records for tests of the ring. Each record has a number, from which its content is computed. */

#include "../unit.h"
#include "base/buf.h"
#include "history/history.h"
#include "history/layout.h"
#include "perfdata/record.h"

#include <stdbool.h>

enum test_kind { TEST_SIDEBAND, TEST_SAMPLES };

/* Returns the next number of a pseudo-random sequence. *STATE is its seed, and must not be 0. */
uint64_t test_random(uint64_t *state);
/* Returns a pseudo-random number from LOW to HIGH. */
uint64_t test_between(uint64_t *state, uint64_t low, uint64_t high);

/* Append to B a record with the number N and the time N + 1. SIZE is a multiple of 8 from TEST_RECORD_MIN to
   FR_RECORD_MAX. If NOISE is true, the bytes that fill the record cannot be compressed. */
#define TEST_RECORD_MIN 64u
void test_put(struct fr_buf *b, enum test_kind kind, uint64_t n, uint32_t size, bool noise);

/* Returns whether a record has exactly the content that test_put() gives it. Sets *RET_N to its number. Any
   thread may call this function. */
bool test_is_valid_record(const struct perf_event_header *record, uint64_t *ret_n);
/* Returns the number of a record. Fails the test if the record is not valid. */
uint64_t test_check_record(const struct perf_event_header *record);

/* Append N records, with the numbers FIRST, FIRST + 1 …, to the ring by one call of fr_history_append() or
 * fr_history_append_sideband(). Returns the result of this call. */
int test_append_run(
	struct fr_history *h, enum test_kind kind, uint64_t first, unsigned n, uint32_t size, bool noise);
int test_append(struct fr_history *h, uint64_t first, unsigned n, uint32_t size, bool noise);
int test_append_sideband(struct fr_history *h, uint64_t first, unsigned n, uint32_t size, bool noise);

/* Call FN for each record in the section KIND of the frame F. (A frame has a section of side-band and a
   section of samples.) Returns false if the section is not valid. Any thread may call this function. */
typedef void (*test_record_fn)(void *ctx, const struct perf_event_header *record);
bool test_walk_section(const struct fr_frame *f, enum test_kind kind, test_record_fn fn, void *ctx);

/* The records that a test has read. For each kind, they have the numbers first … next - 1. If with_gaps is
   false, no number between them may be missing. */
struct test_contents {
	bool with_gaps;
	uint64_t first[2], next[2], n[2];
	uint64_t frames, seq;
};
/* Each of these functions checks and counts records in a struct test_contents: one record, raw records, or
   all records of a frame, of a snapshot or of a ring. */
void test_count_record(void *contents, const struct perf_event_header *record);
void test_count_records(struct test_contents *c, const void *records, size_t len);
void test_count_frame(struct test_contents *c, const struct fr_frame *f);
void test_count_snapshot(struct test_contents *c, struct fr_snapshot *s);
struct test_contents test_read(struct fr_history *h);
struct test_contents test_read_with_gaps(struct fr_history *h);

struct fr_history *test_history(
	uint64_t size, void (*evicted)(void *ctx, const struct fr_frame *frame), void *ctx);
struct fr_history_stats test_stats(struct fr_history *h);

/* Returns a memfd with a copy of the image of H. A kill of the process at this moment would leave the same
   image. */
int test_copy_image(const struct fr_history *h);
/* Flip a bit in BROKEN, which is a copy of the valid IMAGE. The bit is in a header, in a record or in a
   section of a frame. Returns the offset of the changed byte. */
size_t test_flip_bit(uint64_t *random, const uint8_t *image, uint8_t *broken);

/* Change the size of a ring. No other thread may use the ring at this time. Returns the result of
   fr_resize_begin(). */
int test_resize(struct fr_history **h, uint64_t size, struct fr_history_adopted *ret, struct fr_diag *d);
