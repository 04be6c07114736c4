/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * A fork() without an exec. The parent loads LIBRARY, forks, and unloads LIBRARY. The child still has
 * LIBRARY, and runs its function frtest_lib_a. If the argument PROGRAM is given, the child then executes
 * PROGRAM.
 */

#include "phase.h"

#include <dlfcn.h>
#include <sys/wait.h>

FR_BURNER(frtest_fork_parent)

static void child(fr_burner burn, char **next)
{
	fr_phase(burn, "frtest_lib_a");
	fr_phase(burn, "frtest_lib_a");
	if (!*next)
		_exit(EXIT_SUCCESS);
	execv(*next, next);
	err(EXIT_FAILURE, "%s", *next);
}

int main(int argc, char *argv[])
{
	int status;

	if (argc < 2)
		errx(2, "usage: fork LIBRARY [PROGRAM]");
	fr_phase_rounds(1);
	void *lib = dlopen(argv[1], RTLD_NOW);
	if (!lib)
		errx(EXIT_FAILURE, "%s", dlerror());
	fr_burner burn = (fr_burner)(uintptr_t)dlsym(lib, "frtest_lib_a");

	pid_t pid = fork();
	if (pid < 0)
		err(EXIT_FAILURE, "fork");
	if (pid == 0)
		child(burn, argv + 2);
	dlclose(lib);
	fr_phase(frtest_fork_parent, "frtest_fork_parent");
	if (waitpid(pid, &status, 0) != pid || status)
		errx(EXIT_FAILURE, "the child failed");
	return EXIT_SUCCESS;
}
