/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#define FR_DECIMAL_SIZE 11 /* with its NUL */

/* Writes VALUE in decimal digits. */
static __always_inline void fr_decimal(char ret[FR_DECIMAL_SIZE], __u32 value)
{
	char digits[FR_DECIMAL_SIZE];
	int first = FR_DECIMAL_SIZE - 1;

	digits[first] = '\0';
#pragma unroll
	for (int i = FR_DECIMAL_SIZE - 2; i >= 0; i--) {
		digits[i] = '0' + value % 10;
		if (value)
			first = i;
		value /= 10;
	}
	if (first == FR_DECIMAL_SIZE - 1)
		first--;
#pragma unroll
	for (int i = 0; i < FR_DECIMAL_SIZE; i++) {
		int from = first + i;

		ret[i] = from < FR_DECIMAL_SIZE ? digits[from & 15] : '\0';
	}
}
