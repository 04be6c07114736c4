/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A progress bar on standard error, for programs that work for a long time. Not thread-safe. */

#include <stdint.h>

/* Draws the bar, at most ten times a second. CTX is not used, so that this function can be given to code that
   reports its progress. */
void fr_progress_draw(void *ctx, uint64_t done_bytes, uint64_t total_bytes);
/* Removes the bar from the terminal, if there is one. */
void fr_progress_end(void);
