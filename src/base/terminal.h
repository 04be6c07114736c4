/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* How programs write to a terminal: colours, and a pager. Not thread-safe. */

#include <stdbool.h>

/* Returns whether to use colours on standard output. If SYSTEMD_COLORS is set and not empty, only this
   variable decides. Otherwise, colours are used on a terminal, unless TERM is not set or "dumb", or NO_COLOR
   is set and not empty (no-color.org). */
bool fr_terminal_has_colours(void);

/* If standard output is a terminal, starts a pager, and makes standard output a pipe to it. The pager is
   $FLIGHTREC_PAGER, $SYSTEMD_PAGER or $PAGER, or else less or more. Empty or "cat" means no pager. */
void fr_pager_open(void);
/* Writes out the rest of the output. If there is a pager, waits until it ends. */
void fr_pager_close(void);
