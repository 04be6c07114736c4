/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Random numbers that are the same in each run. */

#include <stddef.h>
#include <stdint.h>

uint64_t random_u64(void);
/* A number from 0 to MOST. */
uint64_t random_up_to(uint64_t most);
/* A number of any order of magnitude. */
uint64_t random_magnitude(void);
/* Writes N characters of SET and a NUL. */
void random_text(char *ret, size_t n, const char *set);
