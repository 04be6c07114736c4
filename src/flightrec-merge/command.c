// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrec-merge/command.h"
#include "base/cleanup.h"
#include "base/units.h"

#include <errno.h>
#include <getopt.h> /* optarg, optind */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define STATE_DIRECTORY "/var/lib/flightrec"

/* Options without a short form. */
enum {
	OPT_KEEP = 256,
	OPT_DRY_RUN,
	OPT_PROGRESS,
	OPT_BLOCK_SIZE,
	OPT_QUEUE_DEPTH,
	OPT_JSON,
	OPT_SERVICE,
	OPT_VERSION
};

static const struct fr_option options[] = {
	{"output", 'o', "FILE",
		"write to FILE, by default perf.data in the directory; an older file is renamed", NULL},
	{"keep", OPT_KEEP, NULL, "do not remove the inputs", NULL},
	{"dry-run", OPT_DRY_RUN, NULL, "read the inputs and report; write and remove nothing", NULL},
	{"progress", OPT_PROGRESS, NULL, "show a progress bar also if standard error is not a terminal",
		NULL},
	{"compression-level", 'z', "[LEVEL]", "write compressed records: zstd, 1 to 22 (1)", NULL},
	{"block-size", OPT_BLOCK_SIZE, "SIZE", "bytes of one write: a power of two from 64K to 16M (1M)",
		NULL},
	{"queue-depth", OPT_QUEUE_DEPTH, "N", "writes in flight, 1 to 64 (8)", NULL},
	{"json", OPT_JSON, "[HOW]", "report as JSON: pretty, short or off", NULL},
	{"service", OPT_SERVICE, NULL,
		"for ExecStopPost=: merge only if the service stays stopped and nothing records there", NULL},
	{"quiet", 'q', NULL, "print only errors and warnings", NULL},
	{"help", 'h', NULL, "print this, and exit", NULL},
	{"version", OPT_VERSION, NULL, "print the version, and exit", NULL},
};

const struct fr_command_line merge_command_line = {
	.program = PROGRAM, .options = options, .n = FR_ARRAY_SIZE(options)};

static void print_help(void)
{
	printf(PROGRAM
		" [OPTIONS] [DIRECTORY | FILE...]\n"
		"\n"
		"Merges perf.data.auxiliary and all perf.data.sample.* of a directory, or the named files,\n"
		"into one perf.data. It is sorted by time and has each record once. The inputs are removed\n"
		"when it is durable. The default is " STATE_DIRECTORY " if that exists, else the current\n"
		"directory.\n"
		"\n"
		"Options:\n");
	fr_command_line_print(&merge_command_line);
	printf("\nExamples:\n"
	       "  " PROGRAM " --keep " STATE_DIRECTORY " -o /tmp/perf.data   merge all files, and keep them\n"
	       "  " PROGRAM
	       " --keep -o plain perf.data.sample.TIME          write a dump with plain records\n");
	printf("\nExit codes: 0 merged, 1 error, 2 usage, 3 merged but an input was damaged or unusable (a\n"
	       "line for each says what was lost), 5 permission, 6 no space.\n");
}

/* Returns the number in the text S, which has to be from 1 to MAX; or -EINVAL, with a message in D. EXAMPLE
   is the option with a valid number, for the hint. */
static int parse_number(const char *s, const char *option, int max, const char *example, struct fr_diag *d)
{
	char hint[64];
	uint64_t n;

	if (fr_u64_parse(s, &n) == 0 && n >= 1 && n <= (uint64_t)max)
		return (int)n;
	snprintf(hint, sizeof(hint), "write it as %s", example);
	return fr_fail(d, -EINVAL, hint, "%s: '%s' is not a number from 1 to %d", option, s, max);
}

static int parse_block_size(const char *s, size_t *ret, struct fr_diag *d)
{
	uint64_t size;

	if (fr_size_parse(s, &size) < 0 || size < FR_WRITER_BLOCK_MIN || size > FR_WRITER_BLOCK_MAX ||
		(size & (size - 1)))
		return fr_fail(d, -EINVAL, "write it as --block-size=1M",
			"--block-size: '%s' is not a power of two from 64K to 16M", s);
	*ret = (size_t)size;
	return 0;
}

static int apply_option(struct command *c, int option, struct fr_diag *d)
{
	int r;

	switch (option) {
	case 'o':
		c->options.output = optarg;
		return 0;
	case OPT_KEEP:
		c->options.keep = true;
		return 0;
	case OPT_DRY_RUN:
		c->options.dry_run = true;
		return 0;
	case OPT_PROGRESS:
		c->progress = true;
		return 0;
	case 'z':
		r = optarg ? parse_number(optarg, "--compression-level", 22, "-z or -z3", d) : 1;
		c->options.compress = true;
		c->options.level = r;
		return FR_MIN(r, 0);
	case OPT_BLOCK_SIZE:
		return parse_block_size(optarg, &c->options.writer.block_bytes, d);
	case OPT_QUEUE_DEPTH:
		r = parse_number(optarg, "--queue-depth", FR_WRITER_DEPTH_MAX, "--queue-depth=8", d);
		c->options.writer.depth = (unsigned)r;
		return FR_MIN(r, 0);
	case OPT_JSON:
		return fr_json_mode_parse(optarg, &c->json, d);
	case OPT_SERVICE:
		c->service = true;
		return 0;
	case 'q':
		c->quiet = true;
		return 0;
	case 'h':
		print_help();
		return 1;
	default: /* OPT_VERSION */
		printf(PROGRAM " " FR_VERSION "\n");
		return 1;
	}
}

/* Sets the inputs from the N words after the options: one directory, or files. If N is 0, uses the default
   directory. */
static int parse_inputs(struct command *c, int n, char *words[], struct fr_diag *d)
{
	struct stat st;

	if (n == 0) {
		bool there = stat(STATE_DIRECTORY, &st) == 0 && S_ISDIR(st.st_mode);

		c->options.directory = there ? STATE_DIRECTORY : ".";
		return 0;
	}
	if (stat(words[0], &st) == 0 && S_ISDIR(st.st_mode)) {
		if (n > 1)
			return fr_fail(d, -EINVAL, "name the files in it: DIRECTORY/perf.data.sample.*",
				"give one directory, or only files: %s is a directory", words[0]);
		c->options.directory = words[0];
		return 0;
	}
	c->options.files = (const char *const *)words;
	c->options.n_files = (size_t)n;
	return 0;
}

static int check_service(const struct command *c, struct fr_diag *d)
{
	if (c->service && !c->options.directory)
		return fr_fail(d, -EINVAL, "name a directory, or leave --service out",
			"--service merges a directory, not single files");
	if (c->service && !getenv("SERVICE_RESULT"))
		return fr_fail(d, -EINVAL, "leave --service out to merge by hand",
			"--service is for ExecStopPost= of a service, and SERVICE_RESULT is not set");
	return 0;
}

int command_parse(struct command *c, int argc, char *argv[], struct fr_diag *d)
{
	int option, r = 0;

	fr_command_line_begin();
	while (r == 0 && (option = fr_command_line_next(&merge_command_line, argc, argv, d)) != 0)
		r = option < 0 ? option : apply_option(c, option, d);
	if (r == 0)
		r = parse_inputs(c, argc - optind, argv + optind, d);
	return r == 0 ? check_service(c, d) : r;
}
