/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Declarations for the two files of frtest-function (function.c and function_other.c). */

#include <stdint.h>

extern volatile unsigned short fr_function_semaphore;

void fr_function_mark_begin(void);
/* Calls the static function of function_other.c. */
void fr_function_other(uint64_t ms);
