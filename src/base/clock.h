/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Times of records, windows and frames are nanoseconds of CLOCK_MONOTONIC. Wall time is for file names and
   for people. Any thread may call these functions. */

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define FR_NSEC_PER_SEC 1000000000ULL
#define FR_NSEC_PER_MSEC 1000000ULL
#define FR_NSEC_PER_USEC 1000ULL

uint64_t fr_now_ns(clockid_t clock);

static inline uint64_t fr_monotonic_ns(void)
{
	return fr_now_ns(CLOCK_MONOTONIC);
}

/* The monotonic time and the wall time of one moment. fr_clock_pair_now() reads both clocks three times, and
   returns the most exact pair. */
struct fr_clock_pair {
	uint64_t monotonic_ns;
	uint64_t realtime_ns;
};
struct fr_clock_pair fr_clock_pair_now(void);

/* Returns the wall time (nanoseconds since the epoch) of a monotonic time. PAIR has the monotonic time and
   the wall time of a moment. */
uint64_t fr_clock_to_realtime(const struct fr_clock_pair *pair, uint64_t monotonic_ns);

/* Writes "20261120T231137.123456Z" (UTC), as in file names. */
#define FR_STAMP_SIZE 32
void fr_stamp_format(uint64_t realtime_ns, char ret[static FR_STAMP_SIZE]);

/* Reads a text in the form that fr_stamp_format() writes. Returns 0, or -EINVAL if S has another form. */
int fr_stamp_parse(const char *s, uint64_t *ret_realtime_ns);

/* Writes "2026-11-20T23:11:37.123456Z", for JSON. */
void fr_rfc3339_format(uint64_t realtime_ns, char ret[static FR_STAMP_SIZE]);

/* Reads the id of the current boot, as 32 hexadecimal digits. Returns 0 or a negative errno. */
#define FR_BOOT_ID_SIZE 33
int fr_boot_id_read(char ret[static FR_BOOT_ID_SIZE]);
