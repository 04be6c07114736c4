// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/terminal.h"
#include "base/units.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t pager;

bool fr_terminal_has_colours(void)
{
	const char *forced = getenv("SYSTEMD_COLORS"), *no = getenv("NO_COLOR"), *term = getenv("TERM");

	if (forced && *forced)
		return fr_boolean_parse(forced) != 0;
	return isatty(STDOUT_FILENO) && !(no && *no) && term && strcmp(term, "dumb");
}

static const char *first_env(const char *const *names)
{
	for (; *names; names++)
		if (getenv(*names))
			return getenv(*names);
	return NULL;
}

static _Noreturn void pager_main(int fd, const char *command)
{
	dup2(fd, STDIN_FILENO);
	setenv("LESS", "FRSXMK", !getenv("LESS"));
	/* The pager must not let a user start a shell, because the user can have started this program with
	   sudo. */
	setenv("LESSSECURE", "1", 1);
	if (command)
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	execlp("less", "less", (char *)NULL);
	execlp("more", "more", (char *)NULL);
	execlp("cat", "cat", (char *)NULL);
	_exit(127);
}

void fr_pager_open(void)
{
	static const char *const variables[] = {"FLIGHTREC_PAGER", "SYSTEMD_PAGER", "PAGER", NULL};
	const char *command = first_env(variables);
	int fds[2];

	if (!isatty(STDOUT_FILENO) || (command && (!*command || !strcmp(command, "cat"))) || pipe(fds) < 0)
		return;
	fflush(NULL);
	pager = fork();
	if (pager == 0) {
		close(fds[1]);
		pager_main(fds[0], command);
	}
	close(fds[0]);
	if (pager > 0)
		dup2(fds[1], STDOUT_FILENO);
	close(fds[1]);
}

void fr_pager_close(void)
{
	fflush(stdout);
	if (pager <= 0)
		return;
	fclose(stdout);
	close(STDOUT_FILENO);
	while (waitpid(pager, NULL, 0) < 0 && errno == EINTR)
		;
	pager = 0;
}
