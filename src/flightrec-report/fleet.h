/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The views of the dumps of many machines: a folder of `flightrecctl fleet get`, or several dumps. */

#include "flightrec-report/command.h"
#include "report/fleet_folder.h"

#include <stdio.h>

/* Returns whether the command line names a folder, several dumps, or a machine. */
bool fleet_is_meant(const struct report_command *c);
/* Shows the dumps. If C has a machine, sets c->path to its dump, and calls RUN, which shows one dump. Returns
   0; or a negative errno, with a message in D. */
int fleet_run(
	struct report_command *c, int (*run)(struct report_command *c, struct fr_diag *d), struct fr_diag *d);

/* fleet_views.c: shows all machines of F, one after the other. The machines whose dump cannot be read become
   machines without a dump. Returns as fleet_run(). */
int fleet_show(struct report_command *c, void *folder, FILE *out, struct fr_diag *d);
