// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrec-report/pack.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/progress.h"
#include "base/units.h"
#include "report/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#define SUFFIX ".tar.zst"

static bool has_bar;

/* SIGINT, SIGTERM and SIGHUP are blocked while there is a temporary file. */
static void get_interruptions(sigset_t *ret)
{
	sigemptyset(ret);
	sigaddset(ret, SIGINT);
	sigaddset(ret, SIGTERM);
	sigaddset(ret, SIGHUP);
}

static bool go_on(uint64_t done, uint64_t total)
{
	sigset_t stop, pending;

	if (has_bar)
		fr_progress_draw(NULL, done, total);
	get_interruptions(&stop);
	return sigpending(&pending) < 0 || sigandset(&pending, &pending, &stop) < 0 ||
	       sigisemptyset(&pending);
}

/* Makes the name of the bundle of the dump PATH. */
static int find_name(const char *path, char **ret, struct fr_diag *d)
{
	const char *slash = strrchr(path, '/');

	if (asprintf(ret, "%s" SUFFIX, slash ? slash + 1 : path) < 0)
		return -ENOMEM;
	if (faccessat(AT_FDCWD, *ret, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return fr_fail(d, -EEXIST, "remove it, or name a file by -o, which is replaced",
			"there is already a file %s", *ret);
	return 0;
}

/* Writes the bundle under another name, so that the file NAME appears as a whole. */
static int write_file(struct fr_bundle_plan *plan, const char *path, struct fr_diag *d)
{
	_cleanup_free_ char *copy = strdup(path);
	_cleanup_close_ int folder = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char tmp[NAME_MAX + 1];
	_cleanup_close_ int fd = folder < 0 ? -errno : fr_tmp_create(folder, name, 0600, tmp, sizeof(tmp));
	int r;

	if (fd < 0)
		return fr_fail_errno(d, fd, "name a file in a folder that you may write to, by -o",
			"cannot create %s", path);
	r = fr_bundle_write(plan, fd, go_on, d);
	if (r == 0 && (fsync(fd) < 0 || renameat(folder, tmp, folder, name) < 0))
		r = fr_fail_errno(d, -errno, NULL, "cannot write %s", path);
	if (r < 0)
		(void)unlinkat(folder, tmp, 0);
	return r;
}

static int write_file_unless_stopped(struct fr_bundle_plan *plan, const char *path, struct fr_diag *d)
{
	sigset_t stop, before;
	int r;

	get_interruptions(&stop);
	sigprocmask(SIG_BLOCK, &stop, &before);
	r = write_file(plan, path, d);
	fr_progress_end();
	sigprocmask(SIG_SETMASK, &before, NULL); /* a pending signal ends this process here */
	return r;
}

/* A pipe, a device or standard output gets the bundle directly. */
static int write_stream(struct fr_bundle_plan *plan, int fd, const char *name, struct fr_diag *d)
{
	if (fd < 0)
		return fr_fail_errno(d, -errno, NULL, "cannot open %s", name);
	if (isatty(fd))
		return fr_fail(d, -EINVAL, "name a file, or pipe it to another program",
			"--output: a bundle cannot be shown on a terminal");
	return fr_bundle_write(plan, fd, NULL, d);
}

static int write_output(struct fr_bundle_plan *plan, const char *path, struct fr_diag *d)
{
	_cleanup_close_ int fd = -1;
	struct stat st;

	if (strcmp(path, "-") == 0)
		return write_stream(plan, STDOUT_FILENO, "standard output", d);
	if (stat(path, &st) < 0 || S_ISREG(st.st_mode))
		return write_file_unless_stopped(plan, path, d);
	fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	return write_stream(plan, fd, path, d);
}

static void warn_missing(size_t n, const char *how, const char *paths, const char *hint)
{
	if (n > 0)
		fprintf(stderr,
			REPORT_PROGRAM ": warning: %zu object file%s %s: %s\n"
				       "  %s functions have no names in the bundle; %s\n",
			n, n == 1 ? " was" : "s were", how, paths, n == 1 ? "its" : "their", hint);
}

static void print_result(const struct fr_bundle_plan *plan, const char *path, bool quiet)
{
	struct fr_bundle_stats stats;
	char size[FR_UNIT_SIZE];

	fr_bundle_plan_stats(plan, &stats);
	warn_missing(
		stats.n_missing, "not found", stats.missing, "--symbols and --debuginfod search more places");
	warn_missing(
		stats.n_left_out, "too large", stats.left_out, "--pid and --comm pack only what these need");
	if (!quiet)
		fprintf(stderr, REPORT_PROGRAM ": %zu files with %s are in the bundle\n", stats.n_members,
			fr_size_format(stats.bytes, size));
	if (strcmp(path, "-") != 0)
		printf("%s\n", path);
}

int pack(struct report_command *c, struct fr_profile *p, struct fr_diag *d)
{
	_cleanup_free_ char *name = NULL;
	struct fr_bundle_plan *plan = NULL;
	const char *path = c->output;
	int r = path ? 0 : find_name(c->path, &name, d);

	has_bar = !c->quiet && isatty(STDERR_FILENO);
	if (has_bar)
		c->config.progress = fr_progress_draw;
	if (r == 0)
		r = fr_bundle_plan(p, &c->config, &plan, d);
	fr_progress_end();
	if (!path)
		path = name;
	if (r == 0)
		r = write_output(plan, path, d);
	if (r == 0)
		print_result(plan, path, c->quiet);
	fr_bundle_plan_free(plan);
	return r;
}
