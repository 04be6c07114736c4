/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * A compiler's jitdump (perf's Documentation/jitdump-specification.txt) in the directory of argument 1:
 * jit-PID.dump, mapped once executable as the mark for recorders, with one function in anonymous memory.
 */

#include "phase.h"

#include <err.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CODE_BYTES 256
#define NAME "frtest_jitdumped"

struct header {
	uint32_t magic, version, total_size, elf_mach, pad1, pid;
	uint64_t timestamp, flags;
};

struct code_load {
	uint32_t id, total_size;
	uint64_t timestamp;
	uint32_t pid, tid;
	uint64_t vma, code_addr, code_size, code_index;
};

FR_BURNER(frtest_jitdump_template)

static FILE *open_dump(const char *directory)
{
	struct header h = {.magic = 0x4A695444,
		.version = 1,
		.total_size = sizeof(h),
		.elf_mach = EM_X86_64,
		.pid = (uint32_t)getpid(),
		.timestamp = fr_phase_now_ns()};
	char path[256];

	snprintf(path, sizeof(path), "%s/jit-%d.dump", directory, getpid());
	FILE *f = fopen(path, "w+xe");
	if (!f || fwrite(&h, sizeof(h), 1, f) != 1 || fflush(f) != 0)
		err(EXIT_FAILURE, "%s", path);
	void *mark =
		mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(f), 0);
	if (mark == MAP_FAILED)
		err(EXIT_FAILURE, "mmap of %s", path);
	return f;
}

static void dump_code(FILE *f, const void *code)
{
	struct code_load r = {.id = 0,
		.total_size = sizeof(r) + sizeof(NAME) + CODE_BYTES,
		.timestamp = fr_phase_now_ns(),
		.pid = (uint32_t)getpid(),
		.tid = (uint32_t)syscall(SYS_gettid),
		.vma = (uintptr_t)code,
		.code_addr = (uintptr_t)code,
		.code_size = CODE_BYTES,
		.code_index = 1};

	if (fwrite(&r, sizeof(r), 1, f) != 1 || fwrite(NAME, sizeof(NAME), 1, f) != 1 ||
		fwrite(code, CODE_BYTES, 1, f) != 1 || fflush(f) != 0)
		err(EXIT_FAILURE, "jitdump");
}

int main(int argc, char *argv[])
{
	if (argc != 2)
		errx(2, "usage: jitdump DIRECTORY");
	fr_phase_rounds(1);
	FILE *f = open_dump(argv[1]);
	uint8_t *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		err(EXIT_FAILURE, "mmap");
	memcpy(p, (const void *)(uintptr_t)frtest_jitdump_template, CODE_BYTES);
	if (mprotect(p, 4096, PROT_READ | PROT_EXEC) < 0)
		err(EXIT_FAILURE, "mprotect");
	dump_code(f, p);
	fr_phase((fr_burner)(uintptr_t)p, NAME);
	fr_phase((fr_burner)(uintptr_t)p, NAME);
	fr_phase_hold();
	fclose(f);
	return EXIT_SUCCESS;
}
