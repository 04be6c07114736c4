/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A static function that has the same name as a static function in function.c. */
#include "function.h"
#include "load.h"

FR_LOAD_FRAME static void fr_function_static(uint64_t ms)
{
	fr_load_sleep_ms(ms);
	__asm__ volatile("");
}

FR_LOAD_FRAME void fr_function_other(uint64_t ms)
{
	fr_function_static(ms);
	__asm__ volatile("");
}
