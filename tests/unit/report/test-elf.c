// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of symbols and inlined functions in ELF files: those of this program itself. */
#include "../unit.h"
#include "report/elf.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile int sink;

static inline __attribute__((always_inline)) void innermost_inlined(int n)
{
	for (int i = 0; i < n; i++)
		sink += i;
}

static inline __attribute__((always_inline)) void middle_inlined(int n)
{
	sink++;
	innermost_inlined(n);
}

__attribute__((noinline, noclone)) static void outer_function(int n)
{
	sink--;
	middle_inlined(n);
	sink--;
}

static struct fr_elf *open_self(void)
{
	struct fr_elf *e;

	assert_int_equal(
		fr_elf_open(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "/proc/self/exe", NULL, NULL, &e),
		0);
	return e;
}

TEST(the_functions_of_this_program_have_their_names)
{
	struct fr_symbols s = {0};
	struct fr_elf *e = open_self();
	bool found = false, plt = false;

	outer_function(3);
	assert_int_equal(fr_elf_add_symbols(e, &s), 0);
	fr_symbols_finish(&s, false);
	for (size_t i = 0; i < s.n; i++) {
		const char *name = fr_symbols_name(&s, &s.v[i]);

		found |= strcmp(name, "outer_function") == 0;
		plt |= strlen(name) > 4 && strcmp(name + strlen(name) - 4, "@plt") == 0;
		assert_true(s.v[i].start < s.v[i].end);
		assert_true(i == 0 || s.v[i - 1].start < s.v[i].start);
	}
	assert_true(found);
	(void)plt; /* a program that is linked with -z now has none */
	fr_symbols_deinit(&s);
	fr_elf_free(e);
}

/* The C library calls its own strlen() by such an entry: the code is chosen when the program starts. */
TEST(functions_that_choose_their_code_have_an_entry_with_their_name)
{
	struct fr_symbols s = {0};
	struct fr_elf *e;
	Dl_info info;
	bool found = false;

	assert_true(dladdr((void *)(uintptr_t)gnu_get_libc_version, &info) != 0);
	assert_int_equal(
		fr_elf_open(open(info.dli_fname, O_RDONLY | O_CLOEXEC), info.dli_fname, NULL, NULL, &e), 0);
	assert_int_equal(fr_elf_add_symbols(e, &s), 0);
	fr_symbols_finish(&s, false);
	for (size_t i = 0; i < s.n; i++) {
		const char *name = fr_symbols_name(&s, &s.v[i]);

		assert_string_not_equal(name, "@plt");
		found |= strncmp(name, "strlen@", 7) == 0 && strstr(name, "@plt");
	}
	assert_true(found);
	fr_symbols_deinit(&s);
	fr_elf_free(e);
}

TEST(inlined_functions_are_found)
{
	struct fr_symbols s = {0};
	struct fr_elf *e = open_self();
	const char *names[4];
	bool both = false, one = false;

	assert_int_equal(fr_elf_add_symbols(e, &s), 0);
	fr_symbols_finish(&s, false);
	for (size_t i = 0; i < s.n; i++) {
		if (strcmp(fr_symbols_name(&s, &s.v[i]), "outer_function") != 0)
			continue;
		for (uint64_t at = s.v[i].start; at < s.v[i].end; at++) {
			const int n = fr_elf_find_inlined(e, at, names, 4);

			assert_true(n >= 0 && n <= 2);
			if (n > 0)
				assert_string_equal(names[0], "middle_inlined");
			if (n > 1)
				assert_string_equal(names[1], "innermost_inlined");
			both |= n == 2;
			one |= n == 1;
		}
	}
	assert_true(both && one);
	assert_int_equal(fr_elf_find_inlined(e, UINT64_MAX, names, 4), 0);
	fr_symbols_deinit(&s);
	fr_elf_free(e);
}

static int file_of(const void *data, size_t len)
{
	const int fd = memfd_create("elf", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), (ssize_t)len);
	return fd;
}

TEST(damaged_files_are_refused_or_read)
{
	const int self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const size_t size = (size_t)lseek(self, 0, SEEK_END);
	uint8_t *bytes = malloc(size), *copy = malloc(size);
	struct fr_elf *e;

	assert_int_equal(pread(self, bytes, size, 0), (ssize_t)size);
	assert_int_equal(fr_elf_open(file_of("", 0), "empty", NULL, NULL, &e), -EBADMSG);
	assert_int_equal(fr_elf_open(file_of("#!/bin/sh\n", 10), "script", NULL, NULL, &e), -EBADMSG);
	srand(2);
	for (unsigned turn = 0; turn < 300; turn++) {
		struct fr_symbols s = {0};
		const char *names[4];
		size_t len = turn % 3 ? size : (size_t)rand() % size;

		memcpy(copy, bytes, size);
		for (unsigned i = 0; i < 20; i++) /* half of them in the headers */
			copy[(size_t)rand() % (i % 2 ? 1024 : size)] = (uint8_t)rand();
		if (fr_elf_open(file_of(copy, len), "damaged", NULL, NULL, &e) < 0)
			continue;
		(void)fr_elf_add_symbols(e, &s);
		fr_symbols_finish(&s, false);
		for (size_t i = 0; i < s.n && i < 200; i++)
			(void)fr_elf_find_inlined(e, s.v[i].start, names, 4);
		fr_symbols_deinit(&s);
		fr_elf_free(e);
	}
	free(bytes);
	free(copy);
	close(self);
}
