/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* CRC-32C (Castagnoli, RFC 3720), by the crc32 instruction if this is an x86-64 processor that has it. */

#include <stddef.h>
#include <stdint.h>

/* Returns the crc of LEN bytes at DATA. CRC is 0, or the crc of the preceding bytes. Any thread. */
uint32_t fr_crc32c(uint32_t crc, const void *data, size_t len);

/* Returns the same as fr_crc32c(), but does not use the crc32 instruction. */
uint32_t fr_crc32c_table(uint32_t crc, const void *data, size_t len);
