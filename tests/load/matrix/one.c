/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Runs two phases in a function whose name is FR_NAME, which the compiler gets by -D. If there are arguments,
   it then executes them as a command. */

#include "phase.h"

#define STRING_(X) #X
#define STRING(X) STRING_(X)

FR_BURNER(FR_NAME)

int main(int argc, char *argv[])
{
	fr_phase_stop();
	fr_phase(FR_NAME, STRING(FR_NAME));
	fr_phase(FR_NAME, STRING(FR_NAME));
	if (argc < 2)
		return EXIT_SUCCESS;
	execv(argv[1], argv + 1);
	err(EXIT_FAILURE, "%s", argv[1]);
}
