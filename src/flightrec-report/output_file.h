/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The file that a view is written to: c->output, or standard output if it is NULL. */

#include "flightrec-report/command.h"

#include <stdio.h>

/* Opens the output. Returns 0; or a negative errno, with a message in D. */
int output_file_open(const struct report_command *c, FILE **ret, struct fr_diag *d);
/* Ends the output. R is the result of what has written it. After an error, removes a file that would lack a
   part. Returns R, or another negative errno with a message in D. */
int output_file_close(const struct report_command *c, FILE *out, int r, struct fr_diag *d);
