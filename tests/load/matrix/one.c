/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Runs two phases in a function whose name is FR_NAME, which the build defines. Then it executes the program
   that its arguments name, if there are any. */

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
