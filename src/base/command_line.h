/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The options of a program from one table: for getopt, for --help, and for the tests of manuals and
   completions. Main thread (getopt). */

#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>

#define FR_OPTIONS_MAX 40

struct fr_option {
	const char *name;     /* the long one; "": it has a letter only */
	int value;	      /* its letter, or a number of the program's own from 256 on */
	const char *argument; /* what the help calls it; "[SO]": may be left out; NULL: takes none */
	const char *help;
	const char *verb; /* that it is for; NULL: any, and programs without verbs */
};

/* A heading of the help, before the option of that value. */
struct fr_option_group {
	int first;
	const char *heading;
};

struct fr_command_line {
	const char *program;
	const struct fr_option *options;
	size_t n;			      /* at most FR_OPTIONS_MAX */
	const struct fr_option_group *groups; /* that of the first option, too */
	size_t n_groups;
	bool is_command; /* words are a command and its own options: only what is before them is ours */
};

/* Before the first fr_command_line_next(), as often as argv is gone through. */
void fr_command_line_begin(void);

/* The value of the next option, whose argument is optarg; 0: no more, words begin at argv[optind]; -EINVAL
   with D: it is none of ours, or lacks its argument. */
int fr_command_line_next(const struct fr_command_line *c, int argc, char *argv[], struct fr_diag *d);

/* The option of that VALUE, or NULL. */
const struct fr_option *fr_command_line_find(const struct fr_command_line *c, int value);

/* A line each below their headings, to standard output. */
void fr_command_line_print(const struct fr_command_line *c);

/* What --json= takes. */
enum fr_json_mode { FR_JSON_OFF, FR_JSON_SHORT, FR_JSON_PRETTY };
/* HOW may be NULL, of --json alone: pretty on a terminal, else short. 0, or -EINVAL with D. */
int fr_json_mode_parse(const char *how, enum fr_json_mode *ret, struct fr_diag *d);
