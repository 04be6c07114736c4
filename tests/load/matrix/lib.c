/* SPDX-License-Identifier: GPL-2.0-or-later */

/* A library with one function that burns. The compiler gets its name as FR_NAME. */

#include "phase.h"

void FR_NAME(uint64_t rounds);

FR_BURNER(FR_NAME)
