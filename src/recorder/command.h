/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The command that is recorded in non-daemon use: forked early, so that its pid can be opened, and let go
 * late. */

#include "base/diag.h"

#include <sys/types.h>

struct fr_command {
	pid_t pid; /* 0: none, or it has ended */
	int go_fd; /* closing it without a word ends the child */
	int error_fd;
};

int fr_command_fork(struct fr_command *c, char *const argv[], struct fr_diag *d);
/* Have it exec. 0; the negative errno of exec with D, and then the child has been reaped. */
int fr_command_go(struct fr_command *c, const char *name, struct fr_diag *d);
/* Ends a command that still runs: what was recorded for it alone has an end then, as with perf record. */
void fr_command_deinit(struct fr_command *c);
