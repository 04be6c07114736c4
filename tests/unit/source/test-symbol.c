// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of finding functions and USDT markers: in frtest-function, in stripped copies of it with and without
   a debug file, in another root directory, and in files that have no functions or markers. */

#include "../unit.h"
#include "source/elf_symbol.h"
#include "base/cleanup.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char tmp[] = "/tmp/flightrec-symbol-XXXXXX";
static char program[PATH_MAX];
static uint64_t slow_at; /* offset of fr_function_slow in the file, as frtest-function prints it */

static const char *in_tmp(const char *name)
{
	static char path[4][PATH_MAX];
	static unsigned i;
	char *ret = path[i++ % 4];

	snprintf(ret, PATH_MAX, "%s/%s", tmp, name);
	return ret;
}

/* Finds SYMBOL in the file PATH, and prints the message of a failure. */
static int look_up(const char *path, pid_t pid, const char *root, const char *symbol,
	struct fr_elf_symbol *ret, struct fr_diag *d)
{
	struct fr_elf *e = NULL;
	int r;

	memset(d, 0, sizeof(*d));
	r = fr_elf_open(path, pid, root, &e, d);
	if (r == 0)
		r = fr_elf_find_symbol(e, symbol, ret, d);
	if (r < 0) {
		print_message("  %s\n    %s\n", d->what, d->hint);
		assert_int_equal(d->code, r);
		assert_true(d->what[0]);
	}
	fr_elf_free(e);
	return r;
}

static void assert_offset(const char *path, const char *root, const char *symbol, uint64_t offset)
{
	struct fr_elf_symbol s = {0};
	struct fr_diag d;

	assert_int_equal(look_up(path, 0, root, symbol, &s, &d), 0);
	assert_int_equal(s.offset, offset);
}

static void assert_refused(const char *path, const char *symbol, int code, const char *what, const char *hint)
{
	struct fr_elf_symbol s = {0};
	struct fr_diag d;

	assert_int_equal(look_up(path, 0, in_tmp("none"), symbol, &s, &d), code);
	assert_non_null(strstr(d.what, what));
	assert_non_null(strstr(d.hint, hint));
}

TEST(offset_is_that_of_the_kernels_map)
{
	struct fr_elf_symbol s = {0};
	struct fr_diag d;

	assert_offset(program, in_tmp("none"), "fr_function_slow", slow_at);
	assert_int_equal(look_up(program, 0, in_tmp("none"), "fr_function_slow+0x4", &s, &d), 0);
	assert_int_equal(s.offset, slow_at + 4);
	assert_int_equal(s.into, 4);
}

TEST(file_name_selects_a_static_function)
{
	struct fr_elf_symbol a = {0}, b = {0};
	struct fr_diag d;

	assert_int_equal(look_up(program, 0, "/", "fr_function_static@function.c", &a, &d), 0);
	assert_int_equal(look_up(program, 0, "/", "fr_function_static@function_other.c", &b, &d), 0);
	assert_int_not_equal(a.offset, b.offset);
}

TEST(errors_say_why)
{
	static const struct {
		const char *path, *symbol;
		int code;
		const char *what, *hint;
	} cases[] = {
		{program, "fr_function_slow+0x4000", -EINVAL, "bytes long", ""},
		{program, "fr_function_slow+", -EINVAL, "not an offset", "+0x1c"},
		{program, "fr_function_static", -ENOTUNIQ, "fr_function_static@function_other.c",
			"symbol@file.c"},
		{program, "fr_function_static@elsewhere.c", -ENOENT, "of elsewhere.c", ""},
		{program, "fr_function_slwo", -ENOENT, "has no function fr_function_slwo",
			"did you mean fr_function_slow?"},
		{program, "slow", -ENOENT, "has no function slow", "did you mean fr_function_slow?"},
		{program, "clock_nanosleep", -EINVAL, "only imports clock_nanosleep", "libc.so.6"},
		{program, "clock_nanosleep@plt", -EINVAL, "is a jump", "library"},
		{program, "fr_function_semaphore", -EINVAL, "is data", ""},
		{program, "", -EINVAL, "missing", ""},
		{"relative", "x", -EINVAL, "not an absolute path", "/"},
		{"/nonexistent/x", "x", -ENOENT, "no such file: /nonexistent/x", "Pid="},
		{"/proc/version", "x", -ENOEXEC, "not an ELF file", ""},
		{"/dev/null", "x", -ENOEXEC, "not a regular file", ""},
		{"/", "x", -ENOEXEC, "not a regular file", ""},
	};

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++)
		assert_refused(cases[i].path, cases[i].symbol, cases[i].code, cases[i].what, cases[i].hint);
}

TEST(files_of_other_machines_are_refused)
{
	static const char *const what[] = {"32-bit", "another architecture", "not a program"};
	const char *path = in_tmp("foreign");

	for (size_t i = 0; i < FR_ARRAY_SIZE(what); i++) {
		_cleanup_fclose_ FILE *in = fopen(program, "re");
		Elf64_Ehdr h;
		FILE *out = fopen(path, "we");

		assert_int_equal(fread(&h, sizeof(h), 1, in), 1);
		if (i == 0)
			h.e_ident[EI_CLASS] = ELFCLASS32;
		else if (i == 1)
			h.e_machine = EM_S390;
		else
			h.e_type = ET_REL;
		assert_int_equal(fwrite(&h, sizeof(h), 1, out), 1);
		fclose(out);
		assert_refused(path, "x", -ENOEXEC, what[i], "");
	}
}

/* The C library has versions of symbols, and IFUNCs. */
TEST(default_version_in_a_library)
{
	char path[PATH_MAX] = "", line[PATH_MAX + 128];
	struct fr_elf_symbol s = {0};
	struct fr_diag d;
	FILE *f = fopen("/proc/self/maps", "re");

	while (fgets(line, sizeof(line), f))
		if (strstr(line, "/libc.so.6"))
			sscanf(strchr(line, '/'), "%[^\n]", path);
	fclose(f);
	if (!path[0])
		unit_skip("no libc.so.6 is mapped");
	assert_int_equal(look_up(path, 0, FR_ELF_DEBUG_ROOT, "clock_nanosleep", &s, &d), 0);
	/* This function has two versions, and one of them is the default. */
	assert_int_equal(look_up(path, 0, FR_ELF_DEBUG_ROOT, "pthread_cond_wait", &s, &d), 0);
	assert_int_equal(look_up(path, 0, FR_ELF_DEBUG_ROOT, "strlen", &s, &d), -EINVAL);
	assert_non_null(strstr(d.what, "IFUNC"));
}

TEST(debug_file_of_a_stripped_file)
{
	char id[128] = "", path[PATH_MAX + 64];
	const char *root = in_tmp("debug");
	FILE *f;

	assert_int_equal(
		unit_shell("cd %s && objcopy --strip-all %s stripped && objcopy --only-keep-debug %s "
			   "symbols && objcopy --strip-all --add-gnu-debuglink=symbols %s linked",
			tmp, program, program, program),
		0);
	assert_refused(in_tmp("stripped"), "fr_function_slow", -ENOENT, "is stripped", ".build-id/");
	snprintf(path, sizeof(path), "readelf -n %s | sed -n 's/.*Build ID: //p'", program);
	f = popen(path, "re");
	assert_non_null(fgets(id, sizeof(id), f));
	pclose(f);
	assert_int_equal(unit_shell("cd %s && mkdir -p debug/.build-id/%.2s && cp symbols "
				    "debug/.build-id/%.2s/%.*s.debug",
				 tmp, id, id, (int)strcspn(id + 2, "\n"), id + 2),
		0);
	assert_offset(in_tmp("stripped"), root, "fr_function_slow", slow_at);
	/* The debug file is in the same directory as the file, and has the name that .gnu_debuglink says. */
	assert_offset(in_tmp("linked"), in_tmp("none"), "fr_function_slow", slow_at);
	assert_int_equal(unit_shell("cd %s && mkdir .debug && mv symbols .debug/", tmp), 0);
	assert_offset(in_tmp("linked"), in_tmp("none"), "fr_function_slow", slow_at);
	/* A debug file of another build is not used. */
	assert_int_equal(unit_shell("cd %s && cp /proc/%d/exe .debug/symbols", tmp, (int)getpid()), 0);
	assert_refused(in_tmp("linked"), "fr_function_slow", -ENOENT, "is stripped", "");
	/* If the files have no build-id, the checksum in .gnu_debuglink must match. */
	assert_int_equal(
		unit_shell("cd %s && rm -r .debug && objcopy --remove-section=.note.gnu.build-id %s a && "
			   "objcopy --only-keep-debug a symbols && objcopy --strip-all "
			   "--add-gnu-debuglink=symbols a linked",
			tmp, program),
		0);
	assert_offset(in_tmp("linked"), in_tmp("none"), "fr_function_slow", slow_at);
	assert_int_equal(unit_shell("printf x >>%s", in_tmp("symbols")), 0);
	assert_refused(in_tmp("linked"), "fr_function_slow", -ENOENT, "is stripped", "");
}

TEST(markers)
{
	struct fr_elf_marker m[FR_ELF_MARKERS_MAX];
	struct fr_elf *e = NULL;
	struct fr_diag d = {0};

	assert_int_equal(fr_elf_open(program, 0, "/", &e, &d), 0);
	assert_int_equal(fr_elf_find_markers(e, "frtest", "begin", m, &d), 1);
	assert_true(m[0].offset && m[0].semaphore && m[0].semaphore != m[0].offset);
	assert_int_equal(fr_elf_find_markers(e, "frtest", "bgin", m, &d), -ENOENT);
	assert_non_null(strstr(d.hint, "did you mean frtest:begin"));
	memset(&d, 0, sizeof(d));
	assert_int_equal(fr_elf_find_markers(e, "nothing", "alike", m, &d), -ENOENT);
	assert_non_null(strstr(d.hint, "it has frtest:begin, frtest:end"));
	assert_false(fr_elf_is_go(e));
	fr_elf_free(e);
	memset(&d, 0, sizeof(d));
	assert_int_equal(fr_elf_open("/proc/self/fd/../exe", 0, "/", &e, &d), -ELOOP);
	memset(&d, 0, sizeof(d));
	assert_int_equal(fr_elf_open(in_tmp("unmarked"), 0, "/", &e, &d), 0);
	assert_int_equal(fr_elf_find_markers(e, "frtest", "begin", m, &d), -ENOENT);
	assert_non_null(strstr(d.what, "no static markers"));
	fr_elf_free(e);
}

/* A path, and a symbolic link at its end, are resolved in the root directory of the process. */
TEST(path_in_another_root)
{
	struct fr_elf_symbol s = {0};
	struct fr_diag d;
	int ready[2], r;
	pid_t child;

	if (geteuid() != 0)
		unit_skip("chroot() needs root");
	assert_int_equal(unit_shell("cd %s && mkdir -p root/opt && cp %s root/opt/real && ln -s /opt/real "
				    "root/opt/link && ln -s ../../../../../../etc/passwd root/opt/out",
				 tmp, program),
		0);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	child = fork();
	if (child == 0) {
		if (chroot(in_tmp("root")) < 0 || write(ready[1], "x", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &d, 1), 1);
	close(ready[0]);
	close(ready[1]);
	r = look_up("/opt/link", child, "/", "fr_function_slow", &s, &d);
	assert_int_equal(look_up("/opt/out", child, "/", "x", &s, &d), -ENOENT);
	assert_non_null(strstr(d.what, "in the root of process"));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(r, 0);
	assert_int_equal(s.offset, slow_at);
	assert_int_equal(look_up("/opt/link", child, "/", "x", &s, &d), -ESRCH);
}

/* If a byte of the headers of the file is changed, the file is refused, or the result is a valid offset. */
TEST(damaged_files_do_no_harm)
{
	_cleanup_free_ uint8_t *all = NULL;
	struct fr_elf_symbol s = {0};
	struct stat st;
	int fd = open(program, O_RDONLY | O_CLOEXEC);

	assert_int_equal(fstat(fd, &st), 0);
	all = malloc((size_t)st.st_size);
	assert_int_equal(read(fd, all, (size_t)st.st_size), st.st_size);
	close(fd);
	for (size_t i = 0; i < 1200; i++) {
		size_t at = i < 600 ? i : (size_t)((Elf64_Ehdr *)all)->e_shoff + (i - 600) * 3;
		struct fr_elf *e = NULL;
		uint8_t was;

		if (at >= (size_t)st.st_size)
			break;
		was = all[at];
		all[at] ^= i % 2 ? 0xff : 0x81;
		fd = memfd_create("damaged", MFD_CLOEXEC);
		assert_int_equal(write(fd, all, (size_t)st.st_size), st.st_size);
		all[at] = was;
		if (fr_elf_open_fd(fd, "/damaged", 0, "/nonexistent", &e, NULL) == 0 &&
			fr_elf_find_symbol(e, "fr_function_slow", &s, NULL) == 0)
			assert_true(s.offset <= INT64_MAX);
		fr_elf_free(e);
	}
}

static int set_up(void **state)
{
	char line[256], command[PATH_MAX + 64];
	const char *offset;
	FILE *f;
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);

	if (n < 0 || !mkdtemp(tmp))
		return -1;
	program[n] = '\0';
	snprintf(strrchr(program, '/'), 32, "/frtest-function");
	snprintf(command, sizeof(command), "echo | %s", program);
	f = popen(command, "re");
	if (!f || !fgets(line, sizeof(line), f) || pclose(f) != 0)
		return -1;
	offset = strstr(line, "\"offset\": ");
	slow_at = offset ? strtoull(offset + 10, NULL, 10) : 0;
	if (!slow_at)
		return -1;
	return unit_shell("objcopy --remove-section=.note.stapsdt %s %s", program, in_tmp("unmarked"));
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	return remove(path);
}

static int tear_down(void **state)
{
	return nftw(tmp, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

GROUP_FIXTURE(set_up, tear_down)
