// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecctl/ctl.h"

#include <signal.h>
#include <stdio.h>

int main(int argc, char *argv[])
{
	const struct ctl_verb *verb;
	struct fr_diag diag = {0};
	struct ctl ctl = {0};
	int code, r = ctl_parse(&ctl, argc, argv, &verb, &diag);

	if (r < 0) {
		fr_diag_print("flightrecctl", &diag, r);
		return FR_EXIT_USAGE;
	}
	if (r > 0)
		return FR_EXIT_OK;
	/* A pager that is left early, or head(1), is no failure of ours. */
	signal(SIGPIPE, SIG_IGN);
	if (verb->pages)
		ctl_pager_open(&ctl);
	code = verb->run(&ctl);
	ctl_pager_close();
	return code;
}
