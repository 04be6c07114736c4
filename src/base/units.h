/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Sizes and durations as people write them, both ways. */

#include <stddef.h>
#include <stdint.h>

/* "64M", "1.5G", "4096", "512K"; suffixes B K M G T, base 1024, any case, with or without "iB"/"B".
   Returns 0; -EINVAL for what is no size; -ERANGE past 2^63. */
int fr_size_parse(const char *s, uint64_t *ret_bytes);

/* systemd.time(7) spans: "30s", "5min 20s", "1h30m", "250ms", "2", a bare number is seconds.
   us ms s sec m min h hr d w. Returns 0, -EINVAL, -ERANGE. */
int fr_duration_parse(const char *s, uint64_t *ret_ns);

/* "yes no true false on off 1 0". Returns 0 or 1, or -EINVAL. */
int fr_boolean_parse(const char *s);

/* An unsigned whole number, all of S. Returns 0, -EINVAL, -ERANGE. */
int fr_u64_parse(const char *s, uint64_t *ret);

/* A CPU list as the kernel prints it ("0-3,8"): a bit array of N_BITS in RET (caller's, zeroed here).
   Returns the number of CPUs named, -EINVAL, or -ERANGE where a number is ≥ N_BITS. */
int fr_cpulist_parse(const char *s, uint8_t *ret_bits, size_t n_bits);

/* "1.5M", "64.0M", "12.3s", "5min 20s": at most FR_UNIT_SIZE bytes with the NUL. They return RET. */
#define FR_UNIT_SIZE 32
char *fr_size_format(uint64_t bytes, char ret[static FR_UNIT_SIZE]);
char *fr_duration_format(uint64_t ns, char ret[static FR_UNIT_SIZE]);
