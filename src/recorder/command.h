/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The command of "flightrecd -- COMMAND". The process of the command is forked early, because the events are
   opened for its pid. The process executes the command after recording has begun. Only the main thread calls
   these functions. */

#include "base/diag.h"

#include <sys/types.h>

struct fr_command {
	pid_t pid;    /* 0: there is no process */
	int go_fd;    /* a write to this pipe lets the child run the command; a close without a write
			 ends the child */
	int error_fd; /* if exec fails, the child writes the error to this pipe */
};

/* Forks the child, which then waits for fr_command_go(). Returns 0; or a negative errno, with a message in
   D. */
int fr_command_fork(struct fr_command *c, char *const argv[], struct fr_diag *d);
/* Lets the child run the command. NAME is the name of the command, for messages. Returns 0; or the negative
   errno of exec, with a message in D. On an error, the child has ended and has been reaped. */
int fr_command_go(struct fr_command *c, const char *name, struct fr_diag *d);
/* If the command still runs, ends it, as perf record does, and waits for its end. The command gets SIGTERM.
   If it still runs 5 s later, it gets SIGKILL. */
void fr_command_deinit(struct fr_command *c);
