/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The verb `bundle`. */

#include "flightrec-report/command.h"

/* Packs the dump P into the bundle c->output: a file, which is replaced; "-", standard output; or NULL,
   NAME.tar.zst in the current directory, which must not exist. Prints the name of the file. Returns 0; or a
   negative errno, with a message in D. */
int pack(struct report_command *c, struct fr_profile *p, struct fr_diag *d);
