/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * flightrecctl. Each file cmd_X.c has one verb or a few similar verbs: their entries in the table of verbs,
 * their options and their code. The other files are shared by the verbs. docs/CONTRIBUTING.md shows how to
 * add a verb.
 *
 * The program has one thread. A verb prints its own errors and returns an exit code (enum fr_exit). If there
 * is no memory, a function that returns an allocated string ends the program, unless its comment says
 * otherwise.
 */

#include "base/command_line.h"
#include "base/diag.h"
#include "base/table.h"
#include "base/units.h"
#include "control/client.h"

#include <cjson/cJSON.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- options.c: the command line --- */

#define CTL_NOT_GIVEN UINT64_MAX

/* The options that all verbs share, and the arguments. ctl_parse() sets them. */
extern struct ctl {
	enum fr_json_mode json;
	bool no_pager, no_legend, verbose, utc;
	const char *socket, *directory; /* NULL: not given */
	const char *output;		/* the same for -o, which several verbs have */
	char **args;			/* the words after the verb, ended by NULL */
	size_t n_args; /* number of arguments; further words in `args` were after "--" and are for perf */
} ctl;

/* The kind of an option. The member `to` of the option points to a variable of the type that each comment
   names. ctl_parse() first resets all these variables: to false, NULL or CTL_NOT_GIVEN. */
enum ctl_kind {
	CTL_FLAG,  /* bool */
	CTL_TEXT,  /* const char * */
	CTL_SPAN,  /* uint64_t: a duration in ns */
	CTL_TIME,  /* uint64_t: wall time in ns */
	CTL_SIZE,  /* uint64_t: bytes */
	CTL_COUNT, /* uint64_t: a number */
	CTL_JSON,  /* enum fr_json_mode */
	CTL_HELP,
	CTL_VERSION,
};

struct ctl_option {
	const char *name;
	char letter;	      /* 0: none */
	const char *argument; /* see struct fr_option */
	const char *help;
	enum ctl_kind kind;
	void *to;
	uint64_t least, most; /* bounds of a number; `most` 0: the upper bound of the kind */
};

enum ctl_group { CTL_DUMPS, CTL_TRIGGERS, CTL_RECORDER, CTL_FLEET };

struct ctl_verb {
	enum ctl_group group; /* where --help shows the verb */
	const char *name, *argument, *help;
	size_t least_args, most_args;
	const struct ctl_option *options; /* ended by an option without a name; NULL: none */
	bool pages;			  /* on a terminal, a pager shows the output of the verb */
	bool passes;			  /* the verb passes the words after "--" to perf */
	bool takes_all; /* if the verb is the first word, all other words are its arguments, also options */
	int (*run)(void);
};

/* Puts a verb into the table of verbs: CTL_VERB(ID, GROUP, NAME, ARGUMENT, HELP, other members). ID makes the
   names of the C variables unique. The linker collects the entries. */
#define CTL_VERB(id, ...)                                                                                    \
	static const struct ctl_verb verb_##id = {__VA_ARGS__};                                              \
	static const struct ctl_verb *entry_##id __attribute__((used, section("ctl_verbs"))) = &verb_##id

/* Returns all verbs, sorted by group and name. */
const struct ctl_verb *const *ctl_verbs(size_t *ret_n);
/* Returns the common options and the options of all verbs. */
const struct fr_command_line *ctl_command_line(void);
/* Parses the command line: sets `ctl` and the variables of the options. Returns 0 and sets *RET_VERB; 1 if
   the help or the version was printed; or -EINVAL, with a message in D. */
int ctl_parse(int argc, char *argv[], const struct ctl_verb **ret_verb, struct fr_diag *d);

/* Prints D. Returns the exit code for the negative errno CODE. */
int ctl_fail(const struct fr_diag *d, int code);
/* Prints D. Returns FR_EXIT_USAGE. */
int ctl_usage(const struct fr_diag *d);

/* --- connect.c: the recorder --- */

/* Connects to the recorder. On success, returns 0. On failure, sets *RET to NULL, and returns a negative
   errno of fr_client_connect(), with a message in D. */
int ctl_try_connect(struct fr_client **ret, struct fr_diag *d);
/* Does the same as ctl_try_connect(), but prints the message of a failure. Returns an exit code. */
int ctl_connect(struct fr_client **ret);
/* Connects, calls METHOD and disconnects. PARAMETERS is consumed. Prints the message of a failure. Returns an
   exit code. If the exit code is FR_EXIT_OK, *RET has the parameters of the reply, to be freed. RET may be
   NULL. */
int ctl_call(const char *method, cJSON *parameters, cJSON **ret);
/* Calls METHOD, and prints the member of the reply at PATH, or the whole reply if PATH is "". With --json,
   prints it as JSON, otherwise by the function print(). Returns an exit code. */
int ctl_call_and_print(
	const char *method, cJSON *parameters, const char *path, void (*print)(const cJSON *o));
/* Adds the member NAME with the number VALUE / UNIT, rounded down, to O. If VALUE is CTL_NOT_GIVEN, does
   nothing. */
void ctl_add_number(cJSON *o, const char *name, uint64_t value, uint64_t unit);
/* Returns the status of the recorder, to be freed; NULL if there is no answer within 5 s. */
cJSON *ctl_status(void);
/* Sets *RET to true if a recorder can be reached, and to false if no recorder runs or if --directory is
   given. Returns FR_EXIT_OK; or, if it cannot be found out whether a recorder runs, prints why and returns
   another exit code. */
int ctl_reachable(bool *ret);
/* Returns the directory of the recorder, to be freed: from --directory, or else from the running recorder, or
   else from the configuration. Returns NULL if there is no memory. */
char *ctl_directory(void);

/* --- not_armed.c --- */

/* Waits until the recorder has tried to arm the trigger NAME (NULL: all triggers), for up to 5 s. Returns an
   array, to be freed, with an item for each trigger (or for NAME) that could not be armed or is still being
   armed. The array has no disabled triggers. The items are {name, origin, what, hint}. Only a trigger of the
   configuration has `origin`. Returns NULL if the recorder does not answer. */
cJSON *ctl_not_armed(struct fr_client *client, const char *name);
/* Prints each trigger in NOT_ARMED to standard error. Returns FR_EXIT_PARTLY if at least one of these
   triggers is from the configuration; otherwise FR_EXIT_OK. */
int ctl_warn_not_armed(const cJSON *not_armed);

/* --- cmd_cancel.c, cmd_reload.c: used by other verbs --- */

/* Prints a line for each dump that waits. DUMPS is the member "dumps" of the status. */
void ctl_print_waiting(const cJSON *dumps);
int ctl_reload(void);

/* --- program.c --- */

/* Replaces this process by PROGRAM, which is beside flightrecctl, or else in $PATH. Returns only on failure:
   a negative errno, with a message in D, which has HINT. */
int ctl_exec(const char *program, char *const argv[], const char *hint, struct fr_diag *d);

/* --- output.c --- */

void ctl_pager_open(void);
/* Writes out the rest of the output. If there is a pager, waits until it ends. */
void ctl_pager_close(void);
enum ctl_colour { CTL_NORMAL, CTL_BOLD, CTL_GREEN, CTL_YELLOW, CTL_RED };
/* Returns an escape sequence, or "" without colours. */
const char *ctl_colour(enum ctl_colour c);
/* Prints a table of base/table.h, and frees it. LEGEND: with the headings. */
void ctl_table_print(struct fr_table *t, bool legend);
void ctl_print_json(const cJSON *json);
/* Prints the line "     LABEL: text". Control characters become '?'. */
void ctl_field(const char *label, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Prints the line "     LABEL: TEXT", unless TEXT is empty. */
void ctl_text_field(const char *label, const char *text);
void ctl_replace_control_characters(char *s);
/* ctl_format() and ctl_vformat() return a string, to be freed. */
char *ctl_format(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *ctl_vformat(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));

/* The next three functions return the member of JSON at a path like "ring.size". ctl_get() returns it as
   JSON, or NULL if there is no such member; ctl_number() as a number, or 0; ctl_string() as a string, or
   "". */
const cJSON *ctl_get(const cJSON *json, const char *path);
double ctl_number(const cJSON *json, const char *path);
const char *ctl_string(const cJSON *json, const char *path);

/* The next five macros format the member at PATH for people. The member is a number of bytes (ctl_size), a
   duration in seconds (ctl_seconds) or in ns (ctl_ns), or a time as in RFC 3339 (ctl_time; ctl_exact_time
   also shows the microseconds). Times are shown in local time, or with --utc in UTC; a missing time is "-".
   The text is valid until the end of the block that uses the macro. */
#define ctl_size(json, path) ctl_format_size(json, path, (char[FR_UNIT_SIZE]){0})
#define ctl_seconds(json, path) ctl_format_duration(json, path, 1e9, (char[FR_UNIT_SIZE]){0})
#define ctl_ns(json, path) ctl_format_duration(json, path, 1, (char[FR_UNIT_SIZE]){0})
#define ctl_time(json, path) ctl_format_time(ctl_string(json, path), false, (char[FR_UNIT_SIZE]){0})
#define ctl_exact_time(json, path) ctl_format_time(ctl_string(json, path), true, (char[FR_UNIT_SIZE]){0})
const char *ctl_format_size(const cJSON *json, const char *path, char ret[static FR_UNIT_SIZE]);
const char *ctl_format_duration(
	const cJSON *json, const char *path, double unit_ns, char ret[static FR_UNIT_SIZE]);
const char *ctl_format_time(const char *rfc3339, bool exact, char ret[static FR_UNIT_SIZE]);
/* Returns whether the member at PATH is a number from 0 to 2^63. */
bool ctl_is_countable(const cJSON *json, const char *path);

/* --- causes.c: causes, and counts of decisions --- */

/* The caller frees the texts that the next four functions return. ctl_value() formats the value at PATH,
   whose unit is UNIT ("ns", "bytes" …); it returns "-" if there is no value. */
char *ctl_value(const cJSON *json, const char *path, const char *unit);
char *ctl_describe_cause(const cJSON *cause);	/* "run-queue latency: 23.1ms ≥ 20ms" */
char *ctl_describe_process(const cJSON *cause); /* "mysqld[1234]", or "-" */
/* REASONS is an object with a number for each reason. Returns the sum and the numbers that are not 0: "12: 10
   cool-down, 2 rate-limit"; or "0" if all numbers are 0. */
char *ctl_describe_suppressed(const cJSON *reasons);
/* Returns advice about the cause of loss NAME, or "" if NAME is unknown. */
const char *ctl_explain_loss(const char *name);
/* Does the same for the result of unwinding a stack ("no-table"). */
const char *ctl_explain_walk(const char *name);

/* --- copy.c: copies a dump to PATH; "-": to standard output --- */

/* Checks, before there is a dump, that a copy can be written to PATH. Returns 0; or a negative errno, with a
   message in D. */
int ctl_copy_check(const char *path, struct fr_diag *d);
/* Copies the file DUMP to PATH, as a whole or not at all. Only the user of this process can read the copy.
   The copy replaces an older file. Returns 0; or a negative errno, with a message in D. */
int ctl_copy(const char *dump, const char *path, struct fr_diag *d);

/* --- dumps.c: the files in the recorder's directory, read without the recorder --- */

/* Sets *RET to an array with an object for each dump and each merged file in DIRECTORY, oldest first. Each
   object is made by ctl_dump_read(). If a sidecar (the JSON file beside a dump) cannot be read, the object
   has only the facts about the file. Returns 0; or a negative errno, with a message in D. */
int ctl_dumps_read(const char *directory, cJSON **ret, struct fr_diag *d);
/* Sets *RET to the sidecar of the file PATH, or to an empty object if the file has no sidecar. Sets these
   facts about the file in *RET: "path"; "bytes", the size; and, if the sidecar has no "time", the
   modification time as "time". Returns 0; or a negative errno, with a message in D. */
int ctl_dump_read(const char *path, cJSON **ret, struct fr_diag *d);
/* Sets *RET to the path, to be freed, of the file that the first argument of the verb names. The argument is
   a path, a name in the recorder's directory or in the current directory, or "latest", which is the default.
   Returns 0 if the file is a readable perf.data; otherwise a negative errno, with a message in D. */
int ctl_dump_find(char **ret, struct fr_diag *d);
/* Returns the directory beside PATH that has copies of object files (for perf --buildid-dir), to be freed;
   NULL if there is no such directory. */
char *ctl_dump_objects(const char *path);
/* Returns the file beside PATH with the symbols of the kernel that crashed (for perf --kallsyms), to be
   freed; NULL if there is no such file. */
char *ctl_dump_symbols(const char *path);
bool ctl_dump_is_merged(const cJSON *dump);
/* ctl_dump_time() and ctl_dump_window() format the time and the window of a dump for people. The text is
   valid until the end of the block that uses the macro. */
#define ctl_dump_time(dump) ctl_format_dump_time(dump, (char[FR_UNIT_SIZE]){0})
#define ctl_dump_window(dump) ctl_format_dump_window(dump, (char[FR_UNIT_SIZE]){0})
const char *ctl_format_dump_time(const cJSON *dump, char ret[static FR_UNIT_SIZE]);
const char *ctl_format_dump_window(const cJSON *dump, char ret[static FR_UNIT_SIZE]);
char *ctl_dump_cause(const cJSON *dump); /* to be freed */
