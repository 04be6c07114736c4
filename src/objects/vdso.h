/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The kernel's vdso: that of this process is that of every one of its word size. */

#include <stddef.h>
#include <stdint.h>

#define FR_VDSO_NAME "[vdso]"

/* Its bytes as they are mapped, and its build-id, whose length is returned, or -ENOENT. */
int fr_vdso_find(const void **ret, size_t *ret_size, uint8_t ret_id[static 20]);
