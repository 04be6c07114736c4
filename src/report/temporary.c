// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/temporary.h"
#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <sys/wait.h>

#define DEFAULT "/var/tmp"
#define NAME "flightrec-XXXXXX"

struct fr_temporary {
	char path[PATH_MAX];
	int pipe; /* the end of this process closes it */
	pid_t remover;
};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)remove(path);
	return 0;
}

/* Waits for the end of the process that uses the folder, and removes the folder. Signals of a terminal and of
   a service manager end only that process. It keeps no file of that process open, so that a pipe to another
   program ends with that process. */
static _Noreturn void run_remover(const char *path, int pipe)
{
	static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
	const int null = open("/dev/null", O_RDWR);
	char byte;

	for (size_t i = 0; i < FR_ARRAY_SIZE(ignored); i++)
		signal(ignored[i], SIG_IGN);
	(void)setsid();
	if (dup2(pipe, 3) == 3)
		pipe = 3;
	for (int fd = 0; fd < 3; fd++)
		if (null < 0 || dup2(null, fd) < 0)
			close(fd);
	(void)close_range(4, UINT_MAX, 0);
	while (read(pipe, &byte, 1) < 0 && errno == EINTR)
		;
	(void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	_exit(0);
}

static int start_remover(struct fr_temporary *t)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	t->remover = fork();
	if (t->remover == 0) {
		close(ends[1]);
		run_remover(t->path, ends[0]);
	}
	close(ends[0]);
	t->pipe = ends[1];
	return t->remover < 0 ? -errno : 0;
}

/* Signals wait, because between the two steps they would leave the folder behind. */
static int make(struct fr_temporary *t)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	r = mkdtemp(t->path) ? start_remover(t) : -errno;
	if (r < 0)
		(void)rmdir(t->path);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return r;
}

int fr_temporary_new(struct fr_temporary **ret, struct fr_diag *d)
{
	const char *folder = getenv("TMPDIR");
	struct fr_temporary *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->pipe = -1;
	if (!folder || !*folder)
		folder = DEFAULT;
	if ((size_t)snprintf(t->path, sizeof(t->path), "%s/" NAME, folder) >= sizeof(t->path))
		r = -ENAMETOOLONG;
	else
		r = make(t);
	if (r < 0) {
		fr_temporary_free(t);
		return fr_fail_errno(d, r,
			"set TMPDIR to a folder that you may write to, on a disk with enough room",
			"cannot make a folder in %s", folder);
	}
	*ret = t;
	return 0;
}

struct fr_temporary *fr_temporary_free(struct fr_temporary *t)
{
	if (!t)
		return NULL;
	fr_closep(&t->pipe);
	if (t->remover > 0)
		(void)waitpid(t->remover, NULL, 0);
	free(t);
	return NULL;
}

const char *fr_temporary_path(const struct fr_temporary *t)
{
	return t->path;
}
