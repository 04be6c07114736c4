/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Gives the same pid to several processes, one after the other, by clone3() with set_tid. The first processes
 * execute the programs in the arguments. The last process is a child of this program that does not call exec.
 * Exit code 77: the kernel does not let this user choose a pid.
 */

#include "phase.h"

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define EXIT_SKIP 77

FR_BURNER(frtest_reuse_forked)

/* Does the same as fork(), but the child gets PID, or any pid if PID is 0. Tries again while another process
   has PID, because the kernel may not yet have freed the pid. */
static pid_t fork_as(pid_t pid)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD, .set_tid = pid ? (uintptr_t)&pid : 0, .set_tid_size = pid ? 1 : 0};
	pid_t r = -1;

	for (int i = 0; i < 200 && r < 0; i++) {
		r = (pid_t)syscall(SYS_clone3, &args, sizeof(args));
		if (r < 0 && errno != EEXIST)
			break;
		if (r < 0)
			usleep(1000);
	}
	if (r < 0 && (errno == EPERM || errno == ENOSYS)) {
		warn("clone3 with set_tid");
		exit(EXIT_SKIP);
	}
	if (r < 0)
		err(EXIT_FAILURE, "clone3 as %d", pid);
	return r;
}

static void reap(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || status)
		errx(EXIT_FAILURE, "child %d failed", pid);
}

int main(int argc, char *argv[])
{
	pid_t pid = 0;

	fr_phase_rounds(1);
	for (int i = 1; i < argc; i++) {
		pid_t child = fork_as(pid);

		if (child == 0) {
			char *args[] = {argv[i], NULL};

			execv(argv[i], args);
			err(EXIT_FAILURE, "%s", argv[i]);
		}
		pid = child;
		reap(pid);
	}
	if (fork_as(pid) == 0) {
		fr_phase(frtest_reuse_forked, "frtest_reuse_forked");
		_exit(EXIT_SUCCESS);
	}
	reap(pid);
	fr_phase_note("reused", (uint64_t)pid);
	return EXIT_SUCCESS;
}
