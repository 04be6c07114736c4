/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Moments as people write them, after systemd.time(7). */

#include <stdint.h>

/*
 * S as nanoseconds since the epoch, seen from NOW (the same):
 *
 *   now · today · yesterday · -5min · +30s · 5min ago · 30s left · @1795216297.123456
 *   2026-11-20 23:11:37.5 · 2026-11-20T23:11:37 · 2026-11-20 23:11 · 2026-11-20 · 23:11 · 23:11:37
 *
 * in local time, or in UTC where " UTC" or "Z" follows. A time of day alone is the last such moment: what has
 * yet to come today was yesterday. 0; -EINVAL: no such form; -ERANGE: before the epoch or past 2^63 ns.
 */
int fr_timestamp_parse(const char *s, uint64_t now_ns, uint64_t *ret_ns);
