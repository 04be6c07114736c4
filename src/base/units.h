/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Reads and writes sizes, durations and other values in the form that people use. If a function fails, the
   result does not change (except for fr_cpulist_parse()). Any thread may call these functions. */

#include <stddef.h>
#include <stdint.h>

/* Reads a size: "64M", "1.5G", "4096". The suffixes B K M G T, in any letter case, are powers of 1024. "B" or
   "iB" can follow the suffixes K M G T. Returns 0; -EINVAL for other text; or -ERANGE from 2^63 on. */
int fr_size_parse(const char *s, uint64_t *ret_bytes);

/* Reads a time span of systemd.time(7): "30s", "5min 20s", "1h30m", "250ms". A number without a unit means
   seconds. Returns 0; -EINVAL for other text; or -ERANGE from 2^63 ns on. */
int fr_duration_parse(const char *s, uint64_t *ret_ns);

/* Reads yes, no, true, false, on, off, y, n, 1 or 0. Returns 1 for yes, 0 for no, or -EINVAL. */
int fr_boolean_parse(const char *s);

/* Reads S as a decimal number without a sign. Returns 0, -EINVAL, or -ERANGE from 2^64 on. */
int fr_u64_parse(const char *s, uint64_t *ret);

/* Reads a CPU list as the kernel prints it ("0-3,8") into a bit array of N_BITS. Returns the number of CPUs,
   -EINVAL, or -ERANGE if a number is not below N_BITS. After an error, the bits are undefined. */
int fr_cpulist_parse(const char *s, uint8_t *ret_bits, size_t n_bits);

/* fr_size_format() writes text like "1.5M", and fr_duration_format() text like "12.3s" or "5min 20s". Both
   return RET. */
#define FR_UNIT_SIZE 32
char *fr_size_format(uint64_t bytes, char ret[static FR_UNIT_SIZE]);
char *fr_duration_format(uint64_t ns, char ret[static FR_UNIT_SIZE]);
