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
	struct fr_merge_options options; /* strings of argv */
	enum fr_json_mode json;
	bool quiet;
	bool progress;
	bool service;
	char **warnings; /* kept for JSON */
	size_t n_warnings;
};

extern const struct fr_command_line merge_command_line;

/* Into C, which is all zeros. 0; 1: help or version was printed; -EINVAL with D. */
int command_parse(struct command *c, int argc, char *argv[], struct fr_diag *d);
