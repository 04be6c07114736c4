/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * Runs code at unusual places. Usage: text HOW [LIBRARY]. With the first three values of HOW, the program
 * maps the whole file LIBRARY by mmap() and runs the function frtest_lib_a of LIBRARY.
 *
 *   copied    map the library as executable
 *   mprotect  map the library as readable, then make it executable by mprotect()
 *   memfd     map a copy of the library in a memfd, as executable
 *   anon      run code in anonymous memory
 *   huge      the same as anon, in memory for which huge pages are requested
 *   perfmap   the same as anon, and name the code in /tmp/perf-PID.map
 */

#include "phase.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#define CODE_MAX 4096
#define HUGE (2UL << 20)

/* The code of this function is position-independent and shorter than CODE_MAX. */
FR_BURNER(frtest_text_template)

static off_t offset_of(const char *path, const char *symbol, size_t *ret_size)
{
	void *lib = dlopen(path, RTLD_NOW);
	Dl_info info;
	struct stat st;

	if (!lib || !dladdr(dlsym(lib, symbol), &info) || stat(path, &st) < 0)
		errx(EXIT_FAILURE, "%s has no %s", path, symbol);

	const Elf64_Ehdr *elf = info.dli_fbase;
	const Elf64_Phdr *ph = (const void *)((const char *)info.dli_fbase + elf->e_phoff);
	uint64_t value = (uintptr_t)info.dli_saddr - (uintptr_t)info.dli_fbase;
	off_t offset = -1;
	for (int i = 0; i < elf->e_phnum; i++) {
		if (ph[i].p_type == PT_LOAD && value >= ph[i].p_vaddr &&
			value < ph[i].p_vaddr + ph[i].p_filesz)
			offset = (off_t)(value - ph[i].p_vaddr + ph[i].p_offset);
	}
	if (offset < 0)
		errx(EXIT_FAILURE, "%s is not in %s", symbol, path);
	*ret_size = (size_t)st.st_size;
	dlclose(lib);
	return offset;
}

static int file_of(const char *how, const char *path, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		err(EXIT_FAILURE, "%s", path);
	if (strcmp(how, "memfd") != 0)
		return fd;
	int memfd = memfd_create("frtest-text", MFD_CLOEXEC);
	if (memfd < 0 || sendfile(memfd, fd, NULL, size) != (ssize_t)size)
		err(EXIT_FAILURE, "memfd");
	close(fd);
	return memfd;
}

static void run_mapped(const char *how, const char *path)
{
	size_t size;
	off_t offset = offset_of(path, "frtest_lib_a", &size);
	int fd = file_of(how, path, size);
	bool late = strcmp(how, "mprotect") == 0;
	uint8_t *p = mmap(NULL, size, late ? PROT_READ : PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	if (p == MAP_FAILED || (late && mprotect(p, size, PROT_READ | PROT_EXEC) < 0))
		err(EXIT_FAILURE, "mmap of %s", path);
	close(fd);
	fr_phase((fr_burner)(uintptr_t)(p + offset), "frtest_lib_a");
	fr_phase((fr_burner)(uintptr_t)(p + offset), "frtest_lib_a");
	munmap(p, size);
}

static void write_map(const void *code)
{
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	FILE *f = fopen(path, "wxe");
	if (!f || fprintf(f, "%lx %x frtest_jitted\n", (unsigned long)(uintptr_t)code, CODE_MAX) < 0 ||
		fclose(f) != 0)
		err(EXIT_FAILURE, "%s", path);
}

static void run_anonymous(const char *how)
{
	bool huge = strcmp(how, "huge") == 0, jit = strcmp(how, "perfmap") == 0;
	uint8_t *p = mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		err(EXIT_FAILURE, "mmap");
	p = (uint8_t *)(((uintptr_t)p + HUGE - 1) & ~(HUGE - 1));
	if (huge && madvise(p, HUGE, MADV_HUGEPAGE) < 0)
		warn("madvise");
	memcpy(p, (const void *)(uintptr_t)frtest_text_template, CODE_MAX);
	if (mprotect(p, HUGE, PROT_READ | PROT_EXEC) < 0)
		err(EXIT_FAILURE, "mprotect");
	if (jit)
		write_map(p);
	/* perf looks for the names of anonymous code in /tmp/perf-PID.map, and shows the name of this file as
	 * the name of the object. */
	for (int i = 0; i < 2; i++)
		fr_phase((fr_burner)(uintptr_t)p,
			jit ? "frtest_jitted" : "dso:/tmp/perf-,dso://anon,dso:[anon");
}

int main(int argc, char *argv[])
{
	fr_phase_rounds(1);
	if (argc == 2)
		run_anonymous(argv[1]);
	else if (argc == 3)
		run_mapped(argv[1], argv[2]);
	else
		errx(2, "usage: text copied|mprotect|memfd LIBRARY | anon|huge|perfmap");
	fr_phase_hold();
	return EXIT_SUCCESS;
}
