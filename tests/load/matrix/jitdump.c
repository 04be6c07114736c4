/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Writes a jitdump, DIRECTORY/jit-PID.dump, as a compiler of run-time code does (perf's
 * Documentation/jitdump-specification.txt). The program maps the file once as executable, so that recorders
 * notice it. The file describes one function in anonymous memory. The program runs this function.
 */

#include "phase.h"
#include "../jitdump.h"

#define CODE_BYTES 256
#define NAME "frtest_jitdumped"

FR_BURNER(frtest_jitdump_template)

int main(int argc, char *argv[])
{
	char path[4096];

	if (argc != 2)
		errx(2, "usage: jitdump DIRECTORY");
	fr_phase_rounds(1);
	int fd = jitdump_create(argv[1], EM_X86_64, fr_phase_now_ns(), path);
	uint8_t *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		err(EXIT_FAILURE, "mmap");
	memcpy(p, (const void *)(uintptr_t)frtest_jitdump_template, CODE_BYTES);
	if (mprotect(p, 4096, PROT_READ | PROT_EXEC) < 0)
		err(EXIT_FAILURE, "mprotect");
	jitdump_add(fd, NAME, p, CODE_BYTES, fr_phase_now_ns());
	fr_phase((fr_burner)(uintptr_t)p, NAME);
	fr_phase((fr_burner)(uintptr_t)p, NAME);
	fr_phase_hold();
	return EXIT_SUCCESS;
}
