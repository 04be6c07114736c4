/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What the program shows on a terminal besides its output: the progress on standard error, and a pager and
   colours on standard output. Not thread-safe. */

#include "flightrec-report/command.h"

#include <stdio.h>

/* Prepares the terminal for the output of C, which goes to OUT. Call it before the recording is read, and
   before fr_pager_open(). Sets the progress of c->config. */
void screen_begin(struct report_command *c, FILE *out);
/* Whether to write colours, and how many columns a graph has. */
bool screen_has_colours(void);
unsigned screen_width(void);
/* Returns whether the output goes to a pager. Then an error of writing only means that the user has left
   it. */
bool screen_has_pager(void);
/* Removes the progress, and waits until the user leaves the pager. The output must have been flushed. */
void screen_end(void);
