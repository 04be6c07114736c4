/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Uses one CPU in two functions that it makes at run time, in anonymous memory. It writes the names of the
 * functions into a perf map. With -d DIRECTORY, it writes the names into a jitdump in DIRECTORY instead, and
 * the second function replaces the first function in memory. The program changes to the second function after
 * half of its time or at a SIGTERM. It ends after all of its time or at a second SIGTERM. At its end it
 * removes the perf map or jitdump.
 */

#include "jitdump.h"
#include "load.h"

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

/* Run CODE until the time END, or until the program has received TERMS SIGTERMs since its start. */
static void burn(char *code, uint64_t end, int terms)
{
	void (*run)(uint64_t);

	memcpy(&run, &code, sizeof(run));
	while (fr_load_terms < terms && fr_load_now_ns() < end)
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

static uint64_t jitdump(char *text, uint64_t ns, const char *directory)
{
	uint64_t begin = fr_load_now_ns(), turn;
	char path[4096];
	int fd = jitdump_create(directory, MACHINE, begin, path);

	jitdump_add(fd, "frtest_jit_first", place(text), sizeof(loop), fr_load_now_ns());
	burn(text, begin + ns / 2, 1);
	turn = fr_load_now_ns();
	jitdump_add(fd, "frtest_jit_second", place(text), sizeof(loop), fr_load_now_ns());
	burn(text, begin + ns, 2);
	unlink(path);
	return turn;
}

int main(int argc, char *argv[])
{
	uint64_t ns = 1000000000ULL, turn = 0;
	char *directory = NULL, *text;

	fr_load_options(argc, argv, "frtest-jit [-t SECONDS] [-d DIRECTORY]",
		(struct fr_load_option[]){{'t', .ns = &ns}, {'d', .text = &directory}, {0}});
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
