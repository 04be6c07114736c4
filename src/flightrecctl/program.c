// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecctl/ctl.h"
#include "base/program.h"

#include <stdlib.h>

int ctl_exec(const char *program, char *const argv[], const char *hint, struct fr_diag *d)
{
	if (ctl.no_pager)
		setenv("FLIGHTREC_PAGER", "cat", 1);
	return fr_program_exec(program, argv, hint, d);
}
