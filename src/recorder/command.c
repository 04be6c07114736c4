// SPDX-License-Identifier: GPL-2.0-or-later
#include "recorder/command.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#define TERM_NS (5 * FR_NSEC_PER_SEC)

static _Noreturn void child_main(int go_fd, int error_fd, char *const argv[])
{
	sigset_t none;
	char go;
	int code;

	if (read(go_fd, &go, 1) != 1)
		_exit(127);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	execvp(argv[0], argv);
	code = -errno;
	(void)!write(error_fd, &code, sizeof(code));
	_exit(127);
}

static void close_pipe(int (*fds)[2])
{
	fr_closep(&(*fds)[0]);
	fr_closep(&(*fds)[1]);
}

int fr_command_fork(struct fr_command *c, char *const argv[], struct fr_diag *d)
{
	_cleanup_(close_pipe) int go[2] = {-1, -1}, error[2] = {-1, -1};
	pid_t pid;

	if (pipe2(go, O_CLOEXEC) < 0 || pipe2(error, O_CLOEXEC) < 0)
		return fr_fail_errno(d, -errno, NULL, "cannot make a pipe");
	pid = fork();
	if (pid < 0)
		return fr_fail_errno(d, -errno, NULL, "cannot fork");
	if (pid == 0) {
		close(go[1]);
		close(error[0]);
		child_main(go[0], error[1], argv);
	}
	*c = (struct fr_command){pid, TAKE_FD(go[1]), TAKE_FD(error[0])};
	return 0;
}

int fr_command_go(struct fr_command *c, const char *name, struct fr_diag *d)
{
	int code = 0;

	(void)!write(c->go_fd, "g", 1);
	close(TAKE_FD(c->go_fd));
	/* If exec succeeds, it closes the other end of the pipe, and read() returns 0. */
	if (read(c->error_fd, &code, sizeof(code)) != sizeof(code))
		code = 0;
	close(TAKE_FD(c->error_fd));
	if (code < 0) {
		waitpid(c->pid, NULL, 0);
		c->pid = 0;
		return fr_fail_errno(d, code,
			code == -ENOENT ? "give its path, or the name of a program in $PATH"
					: "give a program that this user may run",
			"cannot run %s", name);
	}
	return 0;
}

/* Ends the command with SIGTERM. If the command still runs after TERM_NS, ends it with SIGKILL, so that the
   recorder can end. */
static void end_command(pid_t pid)
{
	const uint64_t until_ns = fr_monotonic_ns() + TERM_NS;
	const struct timespec pause = {.tv_nsec = 10 * FR_NSEC_PER_MSEC};

	kill(pid, SIGTERM);
	while (waitpid(pid, NULL, WNOHANG) == 0) {
		if (fr_monotonic_ns() > until_ns) {
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
			return;
		}
		nanosleep(&pause, NULL);
	}
}

void fr_command_deinit(struct fr_command *c)
{
	if (c->go_fd >= 0)
		close(TAKE_FD(c->go_fd));
	if (c->error_fd >= 0)
		close(TAKE_FD(c->error_fd));
	if (c->pid > 0)
		end_command(c->pid);
	c->pid = 0;
}
