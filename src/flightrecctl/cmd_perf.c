// SPDX-License-Identifier: GPL-2.0-or-later
/* A dump in stock perf. */
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static int not_started(const char *path, struct fr_diag *d)
{
	const int r = -errno;

	if (r == -ENOENT)
		return fr_fail(d, r,
			"install it: linux-perf of Debian, linux-tools-generic of Ubuntu, perf of others",
			"perf is not installed, and opens %s", path);
	return fr_fail_errno(d, r, "look at what `command -v perf` finds", "cannot start perf");
}

/* perf takes our place, so its exit code is ours, and the terminal is its own. */
static int run_perf(const char *verb, const char *path, char *const *more, struct fr_diag *d)
{
	_cleanup_free_ char *objects = ctl_dump_objects(path);
	_cleanup_free_ const char **argv = NULL;
	size_t n = 0, n_more = 0;

	while (more[n_more])
		n_more++;
	argv = calloc(n_more + 8, sizeof(*argv));
	if (!argv)
		return -ENOMEM;
	argv[n++] = "perf";
	if (objects) {
		argv[n++] = "--buildid-dir";
		argv[n++] = objects;
	}
	argv[n++] = verb;
	argv[n++] = "-i";
	argv[n++] = path;
	memcpy(argv + n, more, n_more * sizeof(*argv));
	signal(SIGPIPE, SIG_DFL);
	execvp("perf", (char *const *)argv);
	return not_started(path, d);
}

static int open_in_perf(const struct ctl *ctl, const char *verb)
{
	_cleanup_free_ char *path = NULL;
	struct fr_diag diag = {0};
	int r = ctl_dump_find(ctl, &path, &diag);

	if (r == 0)
		r = run_perf(verb, path, ctl->args + ctl->n_args, &diag);
	return ctl_fail(&diag, r);
}

int ctl_cmd_report(const struct ctl *ctl)
{
	return open_in_perf(ctl, "report");
}

int ctl_cmd_script(const struct ctl *ctl)
{
	return open_in_perf(ctl, "script");
}
