// SPDX-License-Identifier: GPL-2.0-or-later
/* The verb that starts flightrec-fleet, which has its own options. It is a program of another package, so
   that flightrecctl needs no libraries for the network. */
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"

#include <errno.h>
#include <string.h>

#define PROGRAM "flightrec-fleet"

static int run(void)
{
	_cleanup_free_ char **argv = calloc(ctl.n_args + 2, sizeof(char *));
	struct fr_diag diag = {0};

	if (!argv)
		return ctl_fail(&diag, -ENOMEM);
	argv[0] = (char[]){PROGRAM};
	memcpy(argv + 1, ctl.args, ctl.n_args * sizeof(char *));
	return ctl_fail(
		&diag, ctl_exec(PROGRAM, argv,
			       "install the package flightrec-agent: apt install flightrec-agent", &diag));
}

CTL_VERB(fleet, CTL_FLEET, "fleet", "VERB [OPTIONS]", "ask all machines of the fleet at once",
	.most_args = SIZE_MAX, .takes_all = true, .run = run);
