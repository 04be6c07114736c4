/* SPDX-License-Identifier: GPL-2.0-or-later */

/* A library with one function that burns CPU. Its name is FR_NAME, which the build defines. */

#include "phase.h"

void FR_NAME(uint64_t rounds);

FR_BURNER(FR_NAME)
