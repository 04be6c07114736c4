/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* flightrecctl: one command line, a table of verbs, one file for each. Single-threaded; verbs return an exit
 * code (enum fr_exit) and print what went wrong themselves. */

#include "base/command_line.h"
#include "base/diag.h"
#include "control/client.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ctl {
	enum fr_json_mode json;
	bool no_pager, no_legend, verbose, utc, no_reload;
	bool merge, no_wait, no_compression, all;
	uint64_t last_ns, from_ns, to_ns; /* 0: not given; a span, and wall times */
	uint64_t post_ns;		  /* UINT64_MAX: not given */
	struct {			  /* UINT64_MAX: not given */
		uint64_t max_use, keep_free, max_files, max_age_ns;
	} limits;
	uint64_t lines; /* 0: not given */
	const char *reason;
	const char *socket;    /* --socket, or NULL */
	const char *directory; /* --directory, or NULL */
	const char *output;    /* --output, or NULL */
	char **args;	       /* after the verb, NULL-terminated */
	size_t n_args;	       /* for a verb that passes options on: without those behind "--" */
};

struct ctl_verb {
	const char *name, *argument, *help;
	size_t least_args, most_args;
	bool pages;  /* its output goes through a pager on a terminal */
	bool passes; /* what stands behind "--" is for another program */
	int (*run)(const struct ctl *ctl);
};
const struct ctl_verb *ctl_verbs(size_t *ret_n);

int ctl_cmd_dump(const struct ctl *ctl);
int ctl_cmd_report(const struct ctl *ctl);
int ctl_cmd_script(const struct ctl *ctl);
int ctl_cmd_cancel(const struct ctl *ctl);
int ctl_cmd_status(const struct ctl *ctl);
int ctl_cmd_metrics(const struct ctl *ctl);
int ctl_cmd_list(const struct ctl *ctl);
int ctl_cmd_info(const struct ctl *ctl);
int ctl_cmd_verify_config(const struct ctl *ctl);
int ctl_cmd_vacuum(const struct ctl *ctl);
int ctl_cmd_rm(const struct ctl *ctl);
int ctl_cmd_stop(const struct ctl *ctl);
int ctl_cmd_reload(const struct ctl *ctl);
int ctl_cmd_profile(const struct ctl *ctl);
int ctl_cmd_triggers(const struct ctl *ctl);
int ctl_cmd_test_trigger(const struct ctl *ctl);
int ctl_cmd_enable(const struct ctl *ctl);
int ctl_cmd_disable(const struct ctl *ctl);
int ctl_cmd_why(const struct ctl *ctl);
int ctl_cmd_watch(const struct ctl *ctl);

extern const struct fr_command_line ctl_command_line;

/* 0 with *RET_VERB; 1: help or version was printed; -EINVAL with D. */
int ctl_parse(struct ctl *ctl, int argc, char *argv[], const struct ctl_verb **ret_verb, struct fr_diag *d);

/* Print what D says; the exit code for CODE. */
int ctl_fail(const struct fr_diag *d, int code);

/* connect.c. The client, or an exit code with everything said. *RET_CLIENT NULL then. */
int ctl_connect(const struct ctl *ctl, struct fr_client **ret_client);
/* Connect, call, disconnect. PARAMETERS is consumed. FR_EXIT_OK with *RET (may be NULL: not wanted). */
int ctl_call(const struct ctl *ctl, const char *method, cJSON *parameters, cJSON **ret);
/* Whether a recorder answers: then what concerns its directory is its business. --directory says that it is
   not. FR_EXIT_OK with *RET; else everything is said. */
int ctl_reachable(const struct ctl *ctl, bool *ret);
/* The socket and the directory that the options, the environment and the configuration give; to be freed,
 * NULL without memory. */
char *ctl_socket(const struct ctl *ctl);
char *ctl_directory(const struct ctl *ctl);

/* not_armed.c: the triggers (of NAME, or all) that the recorder could not arm, once it has tried, or does not
   get armed in a while: an array of {name, origin, what, hint}, where origin is of those that the
   configuration has. NULL: nobody answers. */
cJSON *ctl_not_armed(struct fr_client *client, const char *name);
/* Each with its reason to standard error. FR_EXIT_PARTLY where the configuration has one of them. */
int ctl_warn_not_armed(const cJSON *not_armed);

/* output.c */
void ctl_pager_open(const struct ctl *ctl);
void ctl_pager_close(void); /* waits for it */
enum ctl_colour { CTL_NORMAL, CTL_BOLD, CTL_GREEN, CTL_YELLOW, CTL_RED };
const char *ctl_colour(enum ctl_colour c); /* an escape sequence, or "" where there are no colours */
void ctl_print_json(const struct ctl *ctl, const cJSON *json);
/* "     LABEL: text", with control characters made harmless. */
void ctl_field(const char *label, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void ctl_clean(char *s);
/* An RFC 3339 time as the options say, in local time or UTC: "2026-11-20 23:11:37", EXACT: with microseconds;
   "-" where it is none. RET has FR_UNIT_SIZE bytes. */
const char *ctl_time(const struct ctl *ctl, const char *rfc3339, bool exact, char *ret);
/* Members that may be missing, at a path like "ring.size". */
const cJSON *ctl_get(const cJSON *json, const char *path);
double ctl_number(const cJSON *json, const char *path);	     /* 0 */
const char *ctl_string(const cJSON *json, const char *path); /* "" */

/* causes.c: what stands in a cause, or was counted of them, for people. Strings are to be freed, NULL without
   memory. */
/* The value at PATH, in the unit that stands as UNIT ("ns", "bytes" …); RET has FR_CAUSE_VALUE_SIZE bytes.
   "-" where there is none. */
const char *ctl_value(const cJSON *json, const char *path, const char *unit, char *ret);
char *ctl_cause_what(const cJSON *cause); /* "run-queue latency: 23.1ms ≥ 20ms" */
char *ctl_cause_who(const cJSON *cause);  /* "mysqld[1234]", or "-" */
/* "12: 10 cool-down, 2 rate-limit" of an object of numbers; "0" where there was none. */
char *ctl_suppressed(const cJSON *reasons);

/* cmd_cancel.c: a line for each dump that waits, of the "dumps" of a status. */
void ctl_print_waiting(const struct ctl *ctl, const cJSON *dumps);

/* copy.c: a copy of a dump at PATH, "-": to standard output. 0 or a negative errno with D. */
/* Whether that could be, before the dump is made. */
int ctl_copy_check(const char *path, struct fr_diag *d);
/* Whole or not at all, readable by the caller alone; an older file of that name is replaced. */
int ctl_copy(const char *dump, const char *path, struct fr_diag *d);

/* table.c */
struct ctl_table;
/* COLUMNS: headings separated by '|', with a '>' in front where the column is aligned to the right. */
struct ctl_table *ctl_table_new(const char *columns);
void ctl_table_cell(struct ctl_table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
size_t ctl_table_rows(const struct ctl_table *t);
/* Prints without blanks at line ends; frees. */
void ctl_table_print(struct ctl_table *t, bool legend);

/* dumps.c: what stands beside the dumps, read without the daemon. */
/* An array of the JSON of each dump and merged file in DIRECTORY, oldest first, each with "path". 0 or a
   negative errno with D. */
int ctl_dumps_read(const char *directory, cJSON **ret, struct fr_diag *d);
/* The JSON beside PATH, if there is one, with "path", and "bytes" as the file is. */
int ctl_dump_read(const char *path, cJSON **ret, struct fr_diag *d);
/* The path that the verb's first argument means, to be freed: a name in the recorder's directory, or else in
   this one; a path; "latest", as without an argument: the newest. It is there, readable and a perf.data; else
   a negative errno with D. */
int ctl_dump_find(const struct ctl *ctl, char **ret, struct fr_diag *d);
/* Where the recorder's copies of object files are, for perf --buildid-dir; NULL: there are none. To be freed.
 */
char *ctl_dump_objects(const char *path);
bool ctl_dump_is_merged(const cJSON *dump);
/* For people. RET has FR_UNIT_SIZE bytes. */
const char *ctl_dump_time(const struct ctl *ctl, const cJSON *dump, char *ret);
const char *ctl_dump_window(const cJSON *dump, char *ret);
char *ctl_dump_cause(const cJSON *dump); /* to be freed */
