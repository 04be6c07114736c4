/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Reads times as people write them, in the forms of systemd.time(7). */

#include <stdint.h>

/*
 * Reads one of these forms:
 *
 *   now · today · yesterday · -5min · +30s · 5min ago · 30s left · @1795216297.123456
 *   2026-11-20 23:11:37.5 · 2026-11-20T23:11:37 · 2026-11-20 23:11 · 2026-11-20 · 23:11 · 23:11:37
 *
 * Dates and times of day are in local time, or in UTC if they end in " UTC" or "Z". A time of day without a
 * date is its last occurrence, today or yesterday. NOW_NS and *RET_NS are nanoseconds since the epoch.
 * Returns 0; -EINVAL for other text; or -ERANGE if the time is before the epoch, or 2^63 ns or more after it.
 * Any thread may call this function.
 */
int fr_timestamp_parse(const char *s, uint64_t now_ns, uint64_t *ret_ns);
