// SPDX-License-Identifier: GPL-2.0-or-later

/* flightrec-merge: merge/ as a program. */

#include "flightrec-merge/command.h"
#include "base/clock.h"
#include "base/owner.h"
#include "report.h"
#include "service.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void warn(void *ctx, const char *text)
{
	struct command *c = ctx;
	char **list;

	report_progress_end();
	fprintf(stderr, PROGRAM ": %s\n", text);
	list = reallocarray(c->warnings, c->n_warnings + 1, sizeof(*list));
	if (!list)
		return;
	c->warnings = list;
	list[c->n_warnings] = strdup(text);
	c->n_warnings += list[c->n_warnings] != NULL;
}

/* One descriptor for each input: as many as we may have. */
static void raise_file_limit(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) == 0) {
		l.rlim_cur = l.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &l);
	}
}

static int merge(struct command *c)
{
	struct fr_merge_report report = {0};
	struct fr_diag d = {0};
	uint64_t begin = fr_monotonic_ns();
	int r;

	if (c->progress || (!c->quiet && isatty(STDERR_FILENO)))
		c->options.progress = report_progress;
	r = fr_merge(&c->options, &report, &d);
	report_progress_end();
	/* A recorder that was asked to stop and merge has left nothing to do. */
	if (c->service && r == -ENOENT)
		return FR_EXIT_OK;
	if (r < 0) {
		fr_diag_print(PROGRAM, &d, r);
		return fr_exit_code(r);
	}
	if (c->json != FR_JSON_OFF)
		(void)report_json(
			c->json, &c->options, &report, fr_monotonic_ns() - begin, c->warnings, c->n_warnings);
	else if (!c->quiet)
		report_text(&c->options, &report, fr_monotonic_ns() - begin);
	return r == 1 ? FR_EXIT_SALVAGED : FR_EXIT_OK;
}

/* The exit code. */
static int run(struct command *c, int argc, char *argv[])
{
	struct fr_diag d = {0};
	const char *why_not;
	int r = command_parse(c, argc, argv, &d);

	if (r > 0)
		return FR_EXIT_OK;
	if (r < 0) {
		fr_diag_print(PROGRAM, &d, r);
		return FR_EXIT_USAGE;
	}
	why_not = c->service ? service_why_not(c->options.directory) : NULL;
	if (why_not) {
		fprintf(stderr, PROGRAM ": not merged: %s\n", why_not);
		return FR_EXIT_OK;
	}
	if (c->service)
		(void)fr_owner_init();
	raise_file_limit();
	return merge(c);
}

int main(int argc, char *argv[])
{
	struct command c = {.options = {.warn = warn}};
	int r;

	c.options.ctx = &c;
	r = run(&c, argc, argv);
	for (size_t i = 0; i < c.n_warnings; i++)
		free(c.warnings[i]);
	free(c.warnings);
	if (fflush(stdout) != 0 && r == FR_EXIT_OK)
		r = FR_EXIT_ERROR;
	return r;
}
