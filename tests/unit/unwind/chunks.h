/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "bpf/unwind.h"

/* Makes an outer map as fr_unwind_chunks. Returns its descriptor. Skips the test if this process is not
   allowed to. */
int chunks_new(void);

/* Returns 64 bytes at AT, which the kernel reads from the maps; NULL if there is no such chunk. They are
   valid until the next call. */
const void *chunks_read(int fd, fr_unwind_at at);
