/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "flightrec-report/command.h"

#include <stdio.h>

/* Opens the output of the command C, a file or the screen, lets SHOW write the view, and closes the output.
   Prints the name of a new file. Returns 0; or a negative errno, with a message in D. */
int write_view(struct report_command *c,
	int (*show)(struct report_command *c, void *ctx, FILE *out, struct fr_diag *d), void *ctx,
	struct fr_diag *d);
