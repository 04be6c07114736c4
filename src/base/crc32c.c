// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/crc32c.h"

#include <endian.h>
#include <pthread.h>
#include <string.h>

#define POLYNOMIAL 0x82f63b78u /* with its bits in reverse order */

/* Eight bytes are added at a time. tables[k][b] is what the byte B adds to the crc if K of the eight bytes
   follow B. */
static uint32_t tables[8][256];
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void make_tables(void)
{
	for (uint32_t b = 0; b < 256; b++) {
		uint32_t crc = b;

		for (int bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ POLYNOMIAL : crc >> 1;
		tables[0][b] = crc;
	}
	for (int k = 1; k < 8; k++)
		for (uint32_t b = 0; b < 256; b++)
			tables[k][b] = tables[k - 1][b] >> 8 ^ tables[0][tables[k - 1][b] & 0xff];
}

static uint32_t add_eight_bytes(uint32_t crc, const uint8_t *p)
{
	uint64_t bytes;

	memcpy(&bytes, p, 8);
	bytes = le64toh(bytes) ^ crc;
	crc = 0;
#pragma GCC unroll 8
	for (int k = 7; k >= 0; k--, bytes >>= 8)
		crc ^= tables[k][bytes & 0xff];
	return crc;
}

uint32_t fr_crc32c_table(uint32_t crc, const void *data, size_t len)
{
	const uint8_t *p = data;

	pthread_once(&tables_once, make_tables);
	crc = ~crc;
	for (; len >= 8; p += 8, len -= 8)
		crc = add_eight_bytes(crc, p);
	for (; len > 0; p++, len--)
		crc = crc >> 8 ^ tables[0][(crc ^ *p) & 0xff];
	return ~crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t crc32c_sse42(uint32_t crc, const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t wide = (uint32_t)~crc;

	for (; len >= 8; p += 8, len -= 8) {
		uint64_t v;

		memcpy(&v, p, 8);
		wide = __builtin_ia32_crc32di(wide, v);
	}
	crc = (uint32_t)wide;
	for (; len > 0; p++, len--)
		crc = __builtin_ia32_crc32qi(crc, *p);
	return ~crc;
}
#endif

uint32_t fr_crc32c(uint32_t crc, const void *data, size_t len)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("sse4.2"))
		return crc32c_sse42(crc, data, len);
#endif
	return fr_crc32c_table(crc, data, len);
}
