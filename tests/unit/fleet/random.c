// SPDX-License-Identifier: GPL-2.0-or-later
#include "random.h"

#include <string.h>

static uint64_t state = 0x9e3779b97f4a7c15;

/* xorshift64* */
uint64_t random_u64(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * 0x2545f4914f6cdd1d;
}

uint64_t random_up_to(uint64_t most)
{
	return most == UINT64_MAX ? random_u64() : random_u64() % (most + 1);
}

uint64_t random_magnitude(void)
{
	return random_u64() >> random_up_to(63);
}

void random_text(char *ret, size_t n, const char *set)
{
	const size_t most = strlen(set) - 1;

	for (size_t i = 0; i < n; i++)
		ret[i] = set[random_up_to(most)];
	ret[n] = '\0';
}
