/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Starts processes of frtest-tiny, which end at once, as fast as it can. -n is the number of processes, and
   -j the number of processes at a time. */

#include "load.h"

#include <limits.h>
#include <sys/wait.h>

static void start(char *path)
{
	char *args[] = {path, NULL}, *env[] = {NULL};
	pid_t pid = vfork();

	if (pid < 0)
		err(EXIT_FAILURE, "vfork");
	if (pid == 0) {
		execve(path, args, env);
		_exit(127);
	}
}

static void reap(void)
{
	int status;

	if (wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
		errx(EXIT_FAILURE, "a child failed");
}

int main(int argc, char *argv[])
{
	uint64_t count = 1000, at_once = 2, running = 0;
	char path[PATH_MAX + 16];

	fr_load_options(argc, argv, "frtest-storm [-n PROCESSES] [-j AT_ONCE]",
		(struct fr_load_option[]){{'n', .count = &count}, {'j', .count = &at_once}, {0}});
	fr_load_program("frtest-tiny", path, sizeof(path));

	uint64_t begin = fr_load_now_ns();
	for (uint64_t i = 0; i < count; i++) {
		if (running == at_once) {
			reap();
			running--;
		}
		start(path);
		running++;
	}
	while (running--)
		reap();
	uint64_t took = fr_load_now_ns() - begin;

	printf("{\"pid\":%d,\"processes\":%" PRIu64 ",\"ns\":%" PRIu64 ",\"ns_per_process\":%.0f}\n",
		getpid(), count, took, (double)took / (double)count);
	return 0;
}
