// SPDX-License-Identifier: GPL-2.0-or-later

/* The program flightrec-merge. The folder merge/ does the work. */

#include "flightrec-merge/command.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/owner.h"
#include "base/progress.h"
#include "base/service.h"
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

static void print_warning(void *ctx, const char *text)
{
	struct command *c = ctx;
	char **list;

	fr_progress_end();
	fprintf(stderr, PROGRAM ": %s\n", text);
	list = reallocarray(c->warnings, c->n_warnings + 1, sizeof(*list));
	if (!list)
		return;
	c->warnings = list;
	list[c->n_warnings] = strdup(text);
	c->n_warnings += list[c->n_warnings] != NULL;
}

static int merge(struct command *c)
{
	struct fr_merge_report report = {0};
	struct fr_diag d = {0};
	uint64_t begin = fr_monotonic_ns();
	int r;

	if (c->progress || (!c->quiet && isatty(STDERR_FILENO)))
		c->options.progress = fr_progress_draw;
	r = fr_merge(&c->options, &report, &d);
	fr_progress_end();
	/* If there are no inputs, there is nothing to do: the recorder itself may have merged the files when
	   it ended. */
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

/* Returns whether a recorder has the lock on perf.data.auxiliary in DIRECTORY. Errors are ignored here,
   because fr_merge() reports them. */
static bool is_recorded_to(const char *directory)
{
	_cleanup_close_ int fd = -1;
	char path[PATH_MAX];

	if ((size_t)snprintf(path, sizeof(path), "%s/perf.data.auxiliary", directory) >= sizeof(path))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

/* Only for --service: systemd runs this program as ExecStopPost= of the recorder's service, and sets
   $SERVICE_RESULT (systemd.exec(5)). Returns NULL if the files in DIRECTORY can be merged now: the service
   stays stopped, and no recorder writes to DIRECTORY. Otherwise returns the reason not to merge. Waits for at
   most some seconds. */
static const char *find_reason_not_to_merge(const char *directory)
{
	const char *result = getenv("SERVICE_RESULT");
	enum fr_service_job job = FR_SERVICE_NO_JOB;

	if (is_recorded_to(directory))
		return "another flightrecd records to the directory";
	/* If this call fails, for example without a system bus, only $SERVICE_RESULT is known. */
	(void)fr_service_get_job(&job);
	if (job == FR_SERVICE_RESTART)
		return "the recorder is about to be started again";
	/* If the service failed and nobody stopped it, systemd can start it again (Restart=). If the service
	   is not started again, the files stay until the next stop, or until a person merges them. */
	if (job != FR_SERVICE_STOP && result && strcmp(result, "success") != 0)
		return "the recorder failed, and Restart= may start it again";
	return NULL;
}

/* Runs the program. Returns the exit code. */
static int run(struct command *c, int argc, char *argv[])
{
	struct fr_diag d = {0};
	const char *reason;
	int r = command_parse(c, argc, argv, &d);

	if (r > 0)
		return FR_EXIT_OK;
	if (r < 0) {
		fr_diag_print(PROGRAM, &d, r);
		return FR_EXIT_USAGE;
	}
	reason = c->service ? find_reason_not_to_merge(c->options.directory) : NULL;
	if (reason) {
		fprintf(stderr, PROGRAM ": not merged: %s\n", reason);
		return FR_EXIT_OK;
	}
	if (c->service)
		(void)fr_owner_init();
	fr_file_limit_raise(); /* each input needs a descriptor */
	return merge(c);
}

int main(int argc, char *argv[])
{
	struct command c = {.options = {.warn = print_warning}};
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
