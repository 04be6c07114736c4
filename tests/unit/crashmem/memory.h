/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Crash memories for tests: files on tmpfs. The caller is a test of unit.h. */

#include "crashmem/crashmem.h"

#define MEMORY_BOOT "0123456789abcdef0123456789abcdef"

/* Makes a formatted memory of BYTES bytes. Its file has no name any more. The caller frees it. */
struct fr_crashmem *memory_new(uint64_t bytes);
