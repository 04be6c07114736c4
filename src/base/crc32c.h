/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* CRC-32C (Castagnoli, RFC 3720). The code uses the crc32 instruction of x86-64 processors that have it. */

#include <stddef.h>
#include <stdint.h>

/* Returns the crc of LEN bytes at DATA. CRC is 0, or the crc of the preceding bytes. Any thread may call the
   function. */
uint32_t fr_crc32c(uint32_t crc, const void *data, size_t len);

/* Returns the same value as fr_crc32c(), but does not use the crc32 instruction. */
uint32_t fr_crc32c_table(uint32_t crc, const void *data, size_t len);
