/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The command of "flightrecd -- COMMAND". It is forked early, because its pid is needed to open the events,
   and it runs when recording has begun. Main thread. */

#include "base/diag.h"

#include <sys/types.h>

struct fr_command {
	pid_t pid; /* 0: none, or it has ended */
	int go_fd; /* closing it without a write ends the child */
	int error_fd;
};

int fr_command_fork(struct fr_command *c, char *const argv[], struct fr_diag *d);
/* Run it. 0; the negative errno of exec with D, and then the child has been reaped. */
int fr_command_go(struct fr_command *c, const char *name, struct fr_diag *d);
/* End the command if it still runs, as perf record does. */
void fr_command_deinit(struct fr_command *c);
