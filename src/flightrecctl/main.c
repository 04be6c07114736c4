// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecctl/ctl.h"

#include <signal.h>

int main(int argc, char *argv[])
{
	const struct ctl_verb *verb;
	struct fr_diag diag = {0};
	int code, r = ctl_parse(argc, argv, &verb, &diag);

	if (r < 0)
		return ctl_usage(&diag);
	if (r > 0)
		return FR_EXIT_OK;
	/* A write to a closed pipe must not end the program: a user can leave the pager early, or pipe the
	   output to head(1). */
	signal(SIGPIPE, SIG_IGN);
	if (verb->pages)
		ctl_pager_open();
	code = verb->run();
	ctl_pager_close();
	return code;
}
