// SPDX-License-Identifier: GPL-2.0-or-later
/* Verbs that open a dump in perf. */
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

/* Replaces this process by perf, so that perf has the terminal, and the shell gets the exit code of perf. The
   parameter `more` has the options for perf, ended by NULL. Returns only on failure: a negative errno, with a
   message in D. */
static int exec_perf(const char *verb, const char *path, char *const *more, struct fr_diag *d)
{
	_cleanup_free_ char *objects = ctl_dump_objects(path), *symbols = ctl_dump_symbols(path);
	_cleanup_free_ const char **argv = NULL;
	size_t n = 0, n_more = 0;
	int r;

	while (more[n_more])
		n_more++;
	argv = calloc(n_more + 10, sizeof(char *));
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
	if (symbols) {
		argv[n++] = "--kallsyms";
		argv[n++] = symbols;
	}
	memcpy(argv + n, more, n_more * sizeof(char *));
	signal(SIGPIPE, SIG_DFL);
	execvp("perf", (char *const *)argv);
	r = -errno;
	if (r == -ENOENT)
		return fr_fail(d, r,
			"install perf: the package is linux-perf in Debian, linux-tools-generic in Ubuntu, "
			"and perf "
			"elsewhere",
			"cannot open %s: perf is not installed", path);
	return fr_fail_errno(
		d, r, "see `command -v perf` for the program that was tried", "cannot start perf");
}

static int open_in_perf(const char *verb)
{
	_cleanup_free_ char *path = NULL;
	struct fr_diag diag = {0};
	int r = ctl_dump_find(&path, &diag);

	if (r == 0)
		r = exec_perf(verb, path, ctl.args + ctl.n_args, &diag);
	return ctl_fail(&diag, r);
}

static int run_perf(void)
{
	return open_in_perf("report");
}

static int run_script(void)
{
	return open_in_perf("script");
}

CTL_VERB(perf, CTL_DUMPS, "perf", "[FILE|latest] [-- OPTIONS]", "open a dump in perf report", .most_args = 1,
	.passes = true, .run = run_perf);

CTL_VERB(script, CTL_DUMPS, "script", "[FILE|latest] [-- OPTIONS]", "open a dump in perf script",
	.most_args = 1, .passes = true, .run = run_script);
