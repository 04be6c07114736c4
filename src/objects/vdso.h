/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The kernel's vdso. All processes with the word size of this process have the same vdso. */

#include <stddef.h>
#include <stdint.h>

#define FR_VDSO_NAME "[vdso]"

/* Finds the vdso in the memory of this process. RET gets its address, which is valid as long as the process
   runs; RET_SIZE gets its size, and RET_ID its build-id. Returns the length of the build-id, or -ENOENT. */
int fr_vdso_find(const void **ret, size_t *ret_size, uint8_t ret_id[static 20]);
