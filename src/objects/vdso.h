/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The kernel's vdso. It is the same in every process with this word size. */

#include <stddef.h>
#include <stdint.h>

#define FR_VDSO_NAME "[vdso]"

/* Find the vdso in the memory of this process. RET points to it; it stays there as long as the process runs.
   Returns the length of its build-id, or -ENOENT. */
int fr_vdso_find(const void **ret, size_t *ret_size, uint8_t ret_id[static 20]);
