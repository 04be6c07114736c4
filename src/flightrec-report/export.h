/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The verb export of flightrec-report. */

#include "flightrec-report/command.h"

#include <stdio.h>

/* Sets filter.event of C to the event that a view of one event shows, if the user has not chosen one: that of
   CPU time, or else the first one. Says on standard error which other events there are. */
void export_choose_event(struct report_command *c, const struct fr_profile *p);

/* If standard output is a terminal and the format is not for people, sets C->output to the name of a new file
   in the current directory. Returns 1 if it has; 0; or a negative errno, with a message in D: -EEXIST if
   there is such a file. */
int export_choose_file(struct report_command *c, struct fr_diag *d);

/* Writes the samples of P, in the format of C. Returns 0; or a negative errno, with a message in D. */
int export_write(struct report_command *c, struct fr_profile *p, FILE *out, struct fr_diag *d);
