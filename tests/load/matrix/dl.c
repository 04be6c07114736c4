/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Loads a library A, then a library B, then A again. Each time it calls dlopen(), runs the library's function
   as a phase, and calls dlclose(). The arguments are A, which has the function frtest_lib_a, and B, which has
   the function frtest_lib_b. Prints the note "same-address": 1 if the loader has put both functions at the
   same address. */

#include "phase.h"

#include <dlfcn.h>

static uintptr_t run_in(const char *path, const char *symbol)
{
	void *lib = dlopen(path, RTLD_NOW);

	if (!lib)
		errx(EXIT_FAILURE, "%s", dlerror());
	fr_burner burn = (fr_burner)(uintptr_t)dlsym(lib, symbol);
	fr_phase(burn, symbol);
	dlclose(lib);
	return (uintptr_t)burn;
}

int main(int argc, char *argv[])
{
	if (argc != 3)
		errx(2, "usage: dl LIBRARY_A LIBRARY_B");
	fr_phase_rounds(1);
	uintptr_t a = run_in(argv[1], "frtest_lib_a"), b = run_in(argv[2], "frtest_lib_b");
	fr_phase_note("same-address", a == b);
	run_in(argv[1], "frtest_lib_a");
	return EXIT_SUCCESS;
}
