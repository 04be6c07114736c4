/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The command line of flightrec-report. */

#include "base/command_line.h"
#include "report/output.h"

#define REPORT_PROGRAM "flightrec-report"

enum verb { VERB_EXPLAIN, VERB_REPORT, VERB_EXPORT, VERB_BUNDLE };
enum export_format { EXPORT_FOLDED, EXPORT_PPROF, EXPORT_PERFETTO, EXPORT_SPEEDSCOPE, EXPORT_FIREFOX };

enum color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

struct report_command {
	enum verb verb;
	enum export_format format;
	struct fr_profile_config config; /* the strings are borrowed from argv, or are in the members below */
	uint32_t *pids;
	char *path;   /* of the recording, or of a folder */
	char **paths; /* of several dumps; NULL: there is only `path` */
	size_t n_paths;
	const char *machine;		/* of the dumps of a fleet, only this one; NULL: all */
	const char *shown_path;		/* the same, or that of the bundle that it is in */
	char *beside, *objects, *cache; /* folders with object files */
	char *kallsyms;
	const char *directory, *output;
	char *new_file; /* the name of an export, if the user gave none */
	enum fr_output_weight weight;
	double min_percent;
	enum fr_json_mode json;
	enum color color;
	uint64_t incident_ns; /* 0: not given */
	uint64_t debuginfod_ns;
	const char *from, *to; /* NULL: not given */
	bool html, flame, debuginfod, no_pager, quiet;
};

extern const struct fr_command_line report_command_line;

/* Sets C. Returns 0; 1 after --help or --version, which print their text; or a negative errno, with a message
   in D: -EINVAL if the command line is wrong. */
int report_command_parse(struct report_command *c, int argc, char *argv[], struct fr_diag *d);
/* Sets where object files are searched, after c->path is known. Returns 0 or -ENOMEM. */
int report_command_set_places(struct report_command *c);
void report_command_deinit(struct report_command *c);
