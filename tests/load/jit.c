/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Burns one CPU in functions that it has made itself, in memory without a file. Tells their names in a perf
 * map (default), or with -d in a jitdump in DIRECTORY, and then the second function takes the first one's
 * place. Goes from the first to the second at half of its time, and to its end after it, or earlier at a
 * SIGTERM each. At the end the file is removed.
 */

#include "load.h"

#include <elf.h>
#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u
#define ROUNDS 1000000u

#if defined(__x86_64__)
#define MACHINE EM_X86_64
static const unsigned char loop[] = {0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3}; /* dec rdi; jnz; ret */
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
static const uint32_t loop[] = {0xf1000400, 0x54ffffe1, 0xd65f03c0}; /* subs x0, x0, #1; b.ne; ret */
#else
#define MACHINE EM_NONE
static const unsigned char loop[] = {0};
#endif

static char *place(char *at)
{
	if (mprotect(at, PAGE, PROT_READ | PROT_WRITE) < 0)
		err(1, "mprotect");
	memcpy(at, loop, sizeof(loop));
	if (mprotect(at, PAGE, PROT_READ | PROT_EXEC) < 0)
		err(1, "mprotect");
	__builtin___clear_cache(at, at + sizeof(loop));
	return at;
}

/* Until END, or the SIGTERM of that number. */
static void burn(char *code, uint64_t end, int told)
{
	void (*run)(uint64_t);

	memcpy(&run, &code, sizeof(run));
	while (fr_load_terms < told && fr_load_now_ns() < end)
		run(ROUNDS);
}

static void perf_map(char *text, uint64_t ns)
{
	uint64_t begin = fr_load_now_ns();
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	f = fopen(path, "we");
	if (!f)
		err(1, "%s", path);
	fprintf(f, "%lx %zx frtest_jit_one\n", (unsigned long)text, sizeof(loop));
	fprintf(f, "%lx %zx frtest_jit_two(int, char)\n", (unsigned long)(text + PAGE), sizeof(loop));
	fclose(f);
	place(text);
	place(text + PAGE);
	burn(text, begin + ns / 2, 1);
	burn(text + PAGE, begin + ns, 2);
	unlink(path);
}

struct dump_header {
	uint32_t magic, version, total_size, elf_mach, pad, pid;
	uint64_t timestamp, flags;
};

struct dump_load {
	uint32_t id, total_size;
	uint64_t timestamp;
	uint32_t pid, tid;
	uint64_t vma, code_addr, code_size, code_index;
};

static void tell(int fd, const char *name, char *code)
{
	static uint64_t index;
	uint64_t at = (uintptr_t)code;
	const struct dump_load l = {0, (uint32_t)(sizeof(l) + strlen(name) + 1 + sizeof(loop)),
		fr_load_now_ns(), (uint32_t)getpid(), (uint32_t)getpid(), at, at, sizeof(loop), index++};

	if (write(fd, &l, sizeof(l)) < 0 || write(fd, name, strlen(name) + 1) < 0 ||
		write(fd, loop, sizeof(loop)) < 0)
		err(1, "jitdump");
}

static uint64_t jitdump(char *text, uint64_t ns, const char *directory)
{
	const struct dump_header h = {
		0x4A695444, 1, sizeof(h), MACHINE, 0, (uint32_t)getpid(), fr_load_now_ns(), 0};
	uint64_t begin = fr_load_now_ns(), turn;
	char path[4096];
	void *marker;
	int fd;

	snprintf(path, sizeof(path), "%s/jit-%d.dump", directory, getpid());
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, &h, sizeof(h)) < 0)
		err(1, "%s", path);
	/* What tells a profiler of the file: an executable map of it. */
	marker = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (marker == MAP_FAILED)
		err(1, "mmap");
	tell(fd, "frtest_jit_first", place(text));
	burn(text, begin + ns / 2, 1);
	turn = fr_load_now_ns();
	tell(fd, "frtest_jit_second", place(text));
	burn(text, begin + ns, 2);
	unlink(path);
	return turn;
}

int main(int argc, char *argv[])
{
	uint64_t ns = 1000000000ULL, turn = 0;
	const char *directory = NULL;
	char *text;
	int opt;

	while ((opt = getopt(argc, argv, "t:d:")) != -1) {
		if (opt == 't')
			ns = fr_load_seconds(optarg);
		else if (opt == 'd')
			directory = optarg;
		else
			errx(2, "usage: frtest-jit [-t SECONDS] [-d DIRECTORY]");
	}
	if (MACHINE == EM_NONE)
		return 77;
	text = mmap(NULL, 4 * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (text == MAP_FAILED)
		err(1, "mmap");
	fr_load_count_terms();
	if (directory)
		turn = jitdump(text, ns, directory);
	else
		perf_map(text, ns);
	printf("{\"pid\":%d,\"turn_ns\":%" PRIu64 ",\"cpu_s\":%.3f}\n", getpid(), turn,
		(double)fr_load_cpu_ns() / 1e9);
	return 0;
}
