/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Records for tests of the ring: each carries a number, which its content follows from. */

#include "base/buf.h"
#include "history/history.h"
#include "perfdata/record.h"

#include <stdbool.h>
#include <stdint.h>

/* A repeatable sequence of numbers; the state is not 0. */
uint64_t test_random(uint64_t *state);
/* One of LOW … HIGH. */
uint64_t test_between(uint64_t *state, uint64_t low, uint64_t high);

/* Append a sample / a side-band record numbered N (its time is N + 1) with SIZE bytes, a multiple of 8,
   within TEST_RECORD_MIN … FR_RECORD_MAX. NOISE: its filling does not compress. */
#define TEST_RECORD_MIN 64u
void test_put_sample(struct fr_buf *b, uint64_t n, uint32_t size, bool noise);
void test_put_sideband(struct fr_buf *b, uint64_t n, uint32_t size, bool noise);

/* Whether a record is one of these, with just the content that was put, and its number. Any thread. */
bool test_record_holds(const struct perf_event_header *record, uint64_t *ret_n);
/* The same for the test's own thread: fails the test where it does not hold. */
uint64_t test_check_record(const struct perf_event_header *record);

/* Append N samples numbered FIRST … in one run. Returns what append() did. */
int test_append(struct fr_history *h, uint64_t first, unsigned n, uint32_t size, bool noise);
int test_append_sideband(struct fr_history *h, uint64_t first, unsigned n, uint32_t size, bool noise);

/* A ring; the test fails where it cannot be had. */
struct fr_history *test_history(
	uint64_t size, void (*evicted)(void *ctx, const struct fr_frame *frame), void *ctx);

/* Change the size of a ring that no other thread uses meanwhile. Returns as fr_resize_begin(). */
int test_resize(struct fr_history **h, uint64_t size, struct fr_history_adopted *ret, struct fr_diag *d);
