/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Starts processes of frtest-child, one after the other, for a time (-t) or N times (-n). */

#include "load.h"

#include <limits.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

static pid_t run_child(char *path, char *ms)
{
	char *args[] = {path, ms, NULL};
	int status;
	pid_t pid;

	if (posix_spawn(&pid, path, NULL, NULL, args, environ) != 0)
		errx(EXIT_FAILURE, "cannot start %s", path);
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 0)
		errx(EXIT_FAILURE, "%s failed", path);
	return pid;
}

int main(int argc, char *argv[])
{
	char path[PATH_MAX + 16], twenty[] = "20", *ms = twenty;
	uint64_t count = UINT64_MAX, ns = 1000000000000000ULL;

	fr_load_options(argc, argv, "frtest-spawn [-n CHILDREN | -t SECONDS] [-m MS_EACH]",
		(struct fr_load_option[]){{'n', .count = &count}, {'t', .ns = &ns}, {'m', .text = &ms}, {0}});
	fr_load_program("frtest-child", path, sizeof(path));

	uint64_t end = fr_load_now_ns() + ns;
	printf("{\"pid\":%d,\"children\":[", getpid());
	for (uint64_t i = 0; i < count && fr_load_now_ns() < end; i++)
		printf("%s%d", i ? "," : "", run_child(path, ms));
	printf("]}\n");
	return 0;
}
