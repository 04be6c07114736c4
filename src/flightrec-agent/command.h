/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The command line of flightrec-agent. */

#include "base/command_line.h"

#define AGENT_PROGRAM "flightrec-agent"

struct agent_command {
	/* borrowed from argv or from the environment; NULL: not given */
	const char *config, *socket, *state;
};

extern const struct fr_command_line agent_command_line;

/* Sets C. Returns 0; 1 after --help or --version, which print their text; or -EINVAL, with a message in D. */
int agent_command_parse(struct agent_command *c, int argc, char *argv[], struct fr_diag *d);
