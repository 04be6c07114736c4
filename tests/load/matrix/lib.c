/* SPDX-License-Identifier: GPL-2.0-or-later */

/* A library with one function that uses a CPU. The name of the function is FR_NAME, which the compiler gets
   by -D. */

#include "phase.h"

void FR_NAME(uint64_t rounds);

FR_BURNER(FR_NAME)
