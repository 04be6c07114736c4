/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Two libraries, one after the other, at the same address: dlopen, burn in it, dlclose; three times.
 * Arguments: both, with the functions frtest_lib_a and frtest_lib_b. Notes "same-address" as 1 where the
 * loader did as hoped. */

#include "phase.h"

#include <dlfcn.h>
#include <err.h>
#include <stdlib.h>

static uintptr_t use(const char *path, const char *symbol)
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
	uintptr_t a = use(argv[1], "frtest_lib_a"), b = use(argv[2], "frtest_lib_b");
	fr_phase_note("same-address", a == b);
	use(argv[1], "frtest_lib_a");
	return EXIT_SUCCESS;
}
