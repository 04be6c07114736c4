/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The command line of flightrec-merge. */

#include "base/command_line.h"
#include "base/diag.h"
#include "merge/merge.h"

#include <stdbool.h>
#include <stddef.h>

#define PROGRAM "flightrec-merge"

struct command {
	struct fr_merge_options options; /* the strings are borrowed from argv */
	enum fr_json_mode json;
	bool quiet;
	bool progress;
	bool service;
	char **warnings; /* for the JSON report */
	size_t n_warnings;
};

extern const struct fr_command_line merge_command_line;

/* Sets the members of C for which there is an option or an argument. The other members keep their values.
   Returns 0; 1 after --help or --version, which print their text; or -EINVAL, with a message in D. */
int command_parse(struct command *c, int argc, char *argv[], struct fr_diag *d);
