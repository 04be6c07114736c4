// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/program.h"
#include "base/cleanup.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <string.h>

int fr_program_exec(const char *program, char *const argv[], const char *hint, struct fr_diag *d)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - strlen(program) - 1);
	int r;

	signal(SIGPIPE, SIG_DFL);
	path[FR_MAX(n, (ssize_t)0)] = '\0';
	if (strrchr(path, '/')) {
		strcpy(strrchr(path, '/') + 1, program);
		execv(path, argv);
	}
	execvp(program, argv);
	r = -errno;
	return fr_fail_errno(d, r, hint, "cannot start %s", program);
}
