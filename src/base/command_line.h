/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* One table of a program's options, for getopt, for --help, and for the tests of the manual pages and
   completions. getopt has global state, so only the main thread uses these functions. */

#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>

#define FR_OPTIONS_MAX 40

struct fr_option {
	const char *name;     /* long name, or "" */
	int value;	      /* the option's letter; or a number from 256 on, if it has no letter */
	const char *argument; /* the name of the argument; "[NAME]" is optional; NULL: no argument */
	const char *help;
	const char *verb; /* the verb that has this option; NULL: all verbs */
};

/* A heading in the output of --help, before the option with the value FIRST. */
struct fr_option_group {
	int first;
	const char *heading;
};

struct fr_command_line {
	const char *program;
	const struct fr_option *options;
	size_t n; /* at most FR_OPTIONS_MAX */
	const struct fr_option_group *groups;
	size_t n_groups;
	bool is_command; /* the first word that is no option begins a command with options of its own */
};

/* Starts a new pass over argv. */
void fr_command_line_begin(void);

/* Returns the value of the next option; optarg then has its argument. Returns 0 after the last option: the
   words that are no options then begin at argv[optind]. Returns -EINVAL, with D, if the option is unknown or
   ambiguous, if its argument is missing, or if it takes no argument but has one. */
int fr_command_line_next(const struct fr_command_line *c, int argc, char *argv[], struct fr_diag *d);

/* Returns the option with VALUE, or NULL. */
const struct fr_option *fr_command_line_find(const struct fr_command_line *c, int value);

/* Prints the options and their headings on standard output. */
void fr_command_line_print(const struct fr_command_line *c);

/* The argument of --json=. */
enum fr_json_mode { FR_JSON_OFF, FR_JSON_SHORT, FR_JSON_PRETTY };
/* Reads HOW, the argument of --json=. NULL (--json without an argument) means pretty on a terminal, else
   short. Returns 0; or -EINVAL, with D. */
int fr_json_mode_parse(const char *how, enum fr_json_mode *ret, struct fr_diag *d);
