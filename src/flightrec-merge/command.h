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
	struct fr_merge_options options; /* its strings are those of argv */
	enum fr_json_mode json;
	bool quiet;
	bool progress;
	bool service;
	char **warnings; /* for the JSON report */
	size_t n_warnings;
};

extern const struct fr_command_line merge_command_line;

/* Fills C, whose fields without an option keep their value. Returns 0; 1 after --help or --version; or
   -EINVAL with D. */
int command_parse(struct command *c, int argc, char *argv[], struct fr_diag *d);
