/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * How to convert the times in AUX data, which are values of the processor's counter (the time stamp counter),
 * to times of records. The kernel says this only for its own clock, but all events here use CLOCK_MONOTONIC.
 * So the two clocks are read at the same moment, at the opening and at the dump.
 */

#include <linux/perf_event.h>
#include <stdint.h>

struct fr_aux_clock {
	uint64_t counter; /* 0: this program does not know how to read the counter of this architecture */
	uint64_t time_ns; /* CLOCK_MONOTONIC */
};

/* Reads both clocks. Takes less than 10 µs. */
void fr_aux_clock_read(struct fr_aux_clock *ret);
/* Sets RET to zeros, and then those members that say the conversion: cap_user_time_zero, time_shift,
   time_mult, time_zero. PAGE is the first page of a ring: it says whether the counter is stable. If it is
   not, there is no conversion. The speed of the counter is measured from FIRST to NOW. If this time is short,
   the kernel's number is taken. */
void fr_aux_clock_convert(const struct perf_event_mmap_page *page, const struct fr_aux_clock *first,
	const struct fr_aux_clock *now, struct perf_event_mmap_page *ret);
