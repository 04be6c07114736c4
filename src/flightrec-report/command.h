/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The command line of flightrec-report. */

#include "base/command_line.h"
#include "report/profile.h"

#define PROGRAM "flightrec-report"

enum verb { VERB_EXPLAIN, VERB_REPORT, VERB_EXPORT };
enum export_format { EXPORT_FOLDED, EXPORT_PPROF, EXPORT_PERFETTO, EXPORT_SPEEDSCOPE, EXPORT_FIREFOX };

struct command {
	enum verb verb;
	enum export_format format;
	struct fr_profile_config config; /* the strings are borrowed from argv, or are in the members below */
	uint32_t *pids;
	char *path;			/* of the recording */
	char *beside, *objects, *cache; /* folders with object files */
	const char *directory, *output;
	double min_percent;
	enum fr_json_mode json;
	uint64_t incident_ns; /* 0: not given */
	const char *from, *to; /* NULL: not given */
	bool html, flame, debuginfod, quiet;
};

extern const struct fr_command_line report_command_line;

/* Sets C. Returns 0; 1 after --help or --version, which print their text; or a negative errno, with a message in D:
   -EINVAL if the command line is wrong. */
int command_parse(struct command *c, int argc, char *argv[], struct fr_diag *d);
void command_deinit(struct command *c);
