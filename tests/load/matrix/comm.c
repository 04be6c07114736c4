/* SPDX-License-Identifier: GPL-2.0-or-later */

/* A process whose name has blanks, brackets, control characters, and bytes that are not UTF-8. */

#include "phase.h"

#include <sys/prctl.h>

FR_BURNER(frtest_comm)

int main(void)
{
	fr_phase(frtest_comm, "frtest_comm");
	prctl(PR_SET_NAME, "a) R (b 1 \x01\xff\"");
	fr_phase(frtest_comm, "frtest_comm");
	prctl(PR_SET_NAME, "17/17 [000] 1.2:");
	fr_phase(frtest_comm, "frtest_comm");
	return EXIT_SUCCESS;
}
