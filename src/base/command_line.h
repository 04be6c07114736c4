/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Each program has one table of its options. getopt, --help, and the tests of the manual pages and
   completions use this table. getopt has global state, so only the main thread uses these functions. */

#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>

#define FR_OPTIONS_MAX 40

struct fr_option {
	const char *name;     /* long name, or "" */
	int value;	      /* the option's letter; if there is no letter: a number from 256 on */
	const char *argument; /* the name of the argument; "[NAME]" is optional; NULL: no argument */
	const char *help;
	const char *verb; /* the verbs that have this option, with blanks between them; NULL: all */
};

/* A heading in the output of --help. It stands before the option whose member `value` is equal to `first`.
   The groups have the order of these options. */
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
	bool is_command; /* the first word that is not an option begins a command, which has its own options
			  */
};

/* Starts a new pass over argv. */
void fr_command_line_begin(void);

/* Returns the value of the next option, and sets optarg to the argument of this option. Returns 0 after the
   last option: argv[optind] is now the first of the words that are not options. Returns -EINVAL, with a
   message in D, if the option is unknown or ambiguous, if its argument is missing, or if it has an argument
   and takes no argument. */
int fr_command_line_next(const struct fr_command_line *c, int argc, char *argv[], struct fr_diag *d);

/* Returns the option whose member `value` is equal to VALUE, or NULL. */
const struct fr_option *fr_command_line_find(const struct fr_command_line *c, int value);

/* Prints the options and their headings on standard output. */
void fr_command_line_print(const struct fr_command_line *c);

/* The argument of --json=. */
enum fr_json_mode { FR_JSON_OFF, FR_JSON_SHORT, FR_JSON_PRETTY };
/* Reads the parameter `how`, the argument of --json=. If `how` is NULL (--json without an argument), *RET is
   FR_JSON_PRETTY on a terminal, else FR_JSON_SHORT. Returns 0; or -EINVAL, with a message in D. */
int fr_json_mode_parse(const char *how, enum fr_json_mode *ret, struct fr_diag *d);
