/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* One clock: every record, window and frame is in nanoseconds of CLOCK_MONOTONIC; wall time is for names and
 * people. */

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

/* A pair of readings of both clocks, as close together as three tries make them; what ties a file to wall
 * time. */
struct fr_clock_pair {
	uint64_t monotonic_ns;
	uint64_t realtime_ns;
};
struct fr_clock_pair fr_clock_pair_now(void);

/* The wall time (ns since the epoch) of a monotonic instant, seen through PAIR. */
uint64_t fr_clock_to_realtime(const struct fr_clock_pair *pair, uint64_t monotonic_ns);

/* "20261120T231137.123456Z" (UTC) into RET, which has room for FR_STAMP_SIZE. */
#define FR_STAMP_SIZE 32
void fr_stamp_format(uint64_t realtime_ns, char ret[static FR_STAMP_SIZE]);

/* The inverse. Returns 0, or -EINVAL where S is not such a stamp to its last character. */
int fr_stamp_parse(const char *s, uint64_t *ret_realtime_ns);

/* "2026-11-20T23:11:37.123456Z", for JSON. Same room. */
void fr_rfc3339_format(uint64_t realtime_ns, char ret[static FR_STAMP_SIZE]);

/* The boot id as 32 hex digits and a NUL. Returns 0 or a negative errno of reading /proc. */
#define FR_BOOT_ID_SIZE 33
int fr_boot_id_read(char ret[static FR_BOOT_ID_SIZE]);
