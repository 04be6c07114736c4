// SPDX-License-Identifier: GPL-2.0-or-later
#include "history/crc32c.h"

#include <pthread.h>
#include <string.h>

#define POLYNOMIAL 0x82f63b78u /* reflected */

/* tables[k][b]: the effect of byte B on the crc if K more bytes follow it in a step of eight. */
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

static uint32_t eight_bytes(uint32_t crc, const uint8_t *p)
{
	uint32_t low =
		crc ^ ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);

	return tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^ tables[5][low >> 16 & 0xff] ^
	       tables[4][low >> 24] ^ tables[3][p[4]] ^ tables[2][p[5]] ^ tables[1][p[6]] ^ tables[0][p[7]];
}

uint32_t fr_crc32c_table(uint32_t crc, const void *data, size_t len)
{
	const uint8_t *p = data;

	pthread_once(&tables_once, make_tables);
	crc = ~crc;
	for (; len >= 8; p += 8, len -= 8)
		crc = eight_bytes(crc, p);
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

uint32_t fr_crc32c(uint32_t crc, const void *data, size_t len)
{
	return __builtin_cpu_supports("sse4.2") ? crc32c_sse42(crc, data, len)
						: fr_crc32c_table(crc, data, len);
}
#else
uint32_t fr_crc32c(uint32_t crc, const void *data, size_t len)
{
	return fr_crc32c_table(crc, data, len);
}
#endif
