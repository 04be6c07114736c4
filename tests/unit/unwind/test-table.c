// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of unwind tables: each rule of real objects is compared with libdw, special rules of small objects
   are known, and damaged objects do no harm. */

#include "../unit.h"
#include "judge.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "unwind/table.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#define N_RANDOM 20000

static int open_object(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		unit_skip("there is no %s", path);
	assert_true(fd >= 0);
	return fd;
}

static int open_test_object(const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), FR_TEST_OBJECTS "/%s", name);
	return open_object(path);
}

static void read_test_object(const char *name, struct fr_unwind_table *ret)
{
	_cleanup_close_ int fd = open_test_object(name);

	assert_int_equal(fr_unwind_table_read(fd, -1, ret), 0);
}

static void judge_elf(const struct fr_unwind_table *t, Elf *elf)
{
	Dwarf_CFI *cfi = dwarf_getcfi_elf(elf);

	assert_non_null(cfi);
	assert_true(judge_table(t, cfi, N_RANDOM) > N_RANDOM);
	dwarf_cfi_end(cfi);
}

static void judge_object(int fd)
{
	uint64_t begin_ns = fr_now_ns(CLOCK_THREAD_CPUTIME_ID);
	struct fr_unwind_table t;
	Elf *elf;

	assert_int_equal(fr_unwind_table_read(fd, -1, &t), 0);
	print_message("%.1f ms, %zu rows, %u rules, %u pages: %zu bytes, %u skipped\n",
		(double)(fr_now_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns) / 1e6, t.n_rows, t.n_rules, t.n_pages,
		t.n_rows * sizeof(*t.rows) + t.n_rules * sizeof(*t.rules) +
			t.n_pages * sizeof(struct fr_unwind_page),
		t.skipped);
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	assert_non_null(elf);
	judge_elf(&t, elf);
	elf_end(elf);
	fr_unwind_table_deinit(&t);
}

static void judge_path(const char *path)
{
	_cleanup_close_ int fd = open_object(path);

	judge_object(fd);
}

/* Finds the loaded object that has the code ADDRESS. */
static Dl_info find_loaded(const void *address)
{
	Dl_info info;

	assert_true(address && dladdr(address, &info) != 0);
	return info;
}

TEST(table_of_the_c_library_is_right)
{
	judge_path(find_loaded(dlsym(RTLD_DEFAULT, "abort")).dli_fname);
}

TEST(table_of_the_dynamic_linker_is_right)
{
	judge_path(find_loaded(dlsym(RTLD_DEFAULT, "__tls_get_addr")).dli_fname);
}

TEST(table_of_hand_written_assembly_is_right)
{
	judge_path("/usr/lib/x86_64-linux-gnu/libcrypto.so.3");
}

TEST(table_of_cxx_is_right)
{
	judge_path("/usr/lib/x86_64-linux-gnu/libstdc++.so.6");
}

TEST(table_of_python_is_right)
{
	judge_path("/usr/bin/python3");
}

TEST(table_of_perl_is_right)
{
	judge_path("/usr/bin/perl");
}

TEST(table_of_a_very_large_program_is_right)
{
	judge_path("/usr/bin/node");
}

/* Returns the vDSO of this process. */
static const void *find_vdso(size_t *ret_len)
{
	const uint8_t *image =
		(const void *)getauxval(AT_SYSINFO_EHDR); /* NOLINT(performance-no-int-to-ptr) */
	const ElfW(Ehdr) *e = (const void *)image;

	if (!image)
		unit_skip("the kernel gives no vDSO");
	*ret_len = e->e_shoff + (size_t)e->e_shnum * e->e_shentsize;
	return image;
}

TEST(table_of_the_vdso_is_right)
{
	struct fr_unwind_table t;
	size_t len;
	const void *image = find_vdso(&len);
	_cleanup_free_ char *copy = malloc(len);
	Elf *elf;

	assert_int_equal(fr_unwind_table_read_image(image, len, &t), 0);
	memcpy(copy, image, len);
	elf = elf_memory(copy, len);
	judge_elf(&t, elf);
	elf_end(elf);
	fr_unwind_table_deinit(&t);
}

TEST(tables_of_small_objects_are_right)
{
	static const char *const names[] = {"plain.so", "no-header.so", "fixed.so"};

	for (size_t i = 0; i < FR_ARRAY_SIZE(names); i++) {
		_cleanup_close_ int fd = open_test_object(names[i]);

		judge_object(fd);
	}
}

/* Returns the address of the function NAME in a test object. */
static uint64_t address_of(const char *object, const char *name)
{
	_cleanup_close_ int fd = open_test_object(object);
	uint64_t address = 0;
	Elf_Scn *s = NULL;
	GElf_Shdr header;
	GElf_Sym symbol;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	while ((s = elf_nextscn(elf, s))) {
		Elf_Data *data = elf_getdata(s, NULL);

		gelf_getshdr(s, &header);
		for (int i = 0; header.sh_type == SHT_SYMTAB && gelf_getsym(data, i, &symbol); i++)
			if (strcmp(elf_strptr(elf, header.sh_link, symbol.st_name), name) == 0)
				address = symbol.st_value;
	}
	elf_end(elf);
	assert_int_not_equal(address, 0);
	return address;
}

struct expected {
	const char *function;
	unsigned offset;
	struct fr_unwind_rule rule;
};
#define LOST FR_UNWIND_LOST

static void assert_rules(const char *object, const struct expected *expected, size_t n)
{
	struct fr_unwind_table t;

	read_test_object(object, &t);
	for (size_t i = 0; i < n; i++) {
		const struct expected *e = &expected[i];
		uint64_t pc = address_of(object, e->function) + e->offset;

		print_message("%s+%u\n", e->function, e->offset);
		assert_memory_equal(fr_unwind_table_find(&t, pc), &e->rule, sizeof(e->rule));
	}
	fr_unwind_table_deinit(&t);
}

TEST(rules_of_registers_are_as_written)
{
	static const struct expected expected[] = {
		{"leaf", 0, {FR_UNWIND_REGISTER, 7, -8, 8, 0, {0}}},
		{"registers", 0, {FR_UNWIND_REGISTER, 7, -8, 8, 0, {0}}},
		{"registers", 1, {FR_UNWIND_REGISTER, 7, -8, 8, 0, {LOST, LOST, -24}}},
		{"registers", 2, {FR_UNWIND_REGISTER, 7, -8, 8, 0, {LOST, LOST, -24, 0, LOST, LOST}}},
		{"registers", 3, {FR_UNWIND_REGISTER, 10, -8, 24, 0, {0, 0, -24, 0, LOST, LOST}}},
	};

	assert_rules("plain.so", expected, FR_ARRAY_SIZE(expected));
}

TEST(registers_that_are_saved_relative_to_the_stack_pointer_are_found)
{
	static const struct expected expected[] = {
		{"relative", 0, {FR_UNWIND_REGISTER, 7, -8, 64, 0, {-48, 0, LOST, LOST}}},
		{"relative", 2, {FR_UNWIND_REGISTER, 7, -8, 32, 0, {-16, 0, LOST, LOST}}},
		{"relative", 3, {FR_UNWIND_REGISTER, 7, -8, 32, 0, {0}}},
	};

	assert_rules("plain.so", expected, FR_ARRAY_SIZE(expected));
}

TEST(rules_of_expressions_are_as_written)
{
	static const struct expected expected[] = {
		{"values", 0, {FR_UNWIND_DEREFERENCE, 7, -8, 40, 8, {0}}},
		{"values", 1, {FR_UNWIND_DEREFERENCE, 6, -8, -8, 0, {0}}},
		{"values", 2, {FR_UNWIND_DEREFERENCE, 11, -8, 200, -16, {0}}},
		{"values", 3, {.kind = FR_UNWIND_NONE}},
		{"elsewhere", 0, {.kind = FR_UNWIND_NONE}},
		{"elsewhere", 1, {FR_UNWIND_REGISTER, 7, -8, 8, 0, {0}}},
		{"elsewhere", 2, {.kind = FR_UNWIND_NONE}},
	};

	assert_rules("plain.so", expected, FR_ARRAY_SIZE(expected));
}

TEST(registers_of_a_function_that_aligns_its_stack_are_found)
{
	static const struct expected expected[] = {
		{"realigned", 0,
			{FR_UNWIND_REALIGNED, 6, -8, -8, 0, {-24, FR_UNWIND_HERE, LOST, LOST, 0, 0}}},
		{"realigned", 1, {FR_UNWIND_DEREFERENCE, 6, -8, -8, 0, {0, 0, -32, 0, 0, 0}}},
	};

	assert_rules("plain.so", expected, FR_ARRAY_SIZE(expected));
}

TEST(outermost_frame_and_gap_are_known)
{
	static const struct expected expected[] = {
		{"ends", 0, {.kind = FR_UNWIND_END}},
		{"ends", 3, {.kind = FR_UNWIND_END}},
		{"ends", 4, {.kind = FR_UNWIND_NONE}},
		{"elsewhere", 3, {.kind = FR_UNWIND_NONE}},
		{"elsewhere", 15, {.kind = FR_UNWIND_NONE}},
		{"after_gap", 0, {FR_UNWIND_REGISTER, 7, -8, 8, 0, {0}}},
	};

	assert_rules("plain.so", expected, FR_ARRAY_SIZE(expected));
}

/* Counts the rows of T whose rule has KIND. */
static size_t count_kind(const struct fr_unwind_table *t, enum fr_unwind_kind kind)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n_rows; i++)
		n += t->rules[t->rows[i].rule].kind == kind;
	return n;
}

TEST(c_library_has_signal_frame_and_outermost_frames)
{
	const uint8_t *code = dlsym(RTLD_DEFAULT, "abort");
	Dl_info info = find_loaded(code);
	_cleanup_close_ int fd = open_object(info.dli_fname);
	struct fr_unwind_table t;

	assert_int_equal(fr_unwind_table_read(fd, -1, &t), 0);
	assert_int_equal(count_kind(&t, FR_UNWIND_SIGNAL), 1);
	assert_true(count_kind(&t, FR_UNWIND_END) >= 2); /* clone() and clone3() */
	assert_int_equal(fr_unwind_table_find(&t, (uint64_t)(code - (const uint8_t *)info.dli_fbase))->kind,
		FR_UNWIND_REGISTER);
	fr_unwind_table_deinit(&t);
}

TEST(entry_point_of_a_program_is_an_outermost_frame)
{
	_cleanup_close_ int fd = open_object("/proc/self/exe");
	struct fr_unwind_table t;
	Elf64_Ehdr header;

	assert_int_equal(fr_pread_all(fd, &header, sizeof(header), 0), sizeof(header));
	assert_int_equal(fr_unwind_table_read(fd, -1, &t), 0);
	assert_int_equal(fr_unwind_table_find(&t, header.e_entry)->kind, FR_UNWIND_END);
	fr_unwind_table_deinit(&t);
}

TEST(compiled_function_that_aligns_its_stack_has_its_own_kind_of_rule)
{
	struct fr_unwind_table t;

	read_test_object("plain.so", &t);
	assert_true(count_kind(&t, FR_UNWIND_REALIGNED) >= 2); /* aligns() and realigned() */
	fr_unwind_table_deinit(&t);
}

TEST(plt_has_its_own_kind_of_rule)
{
	static const struct fr_unwind_rule plt = {FR_UNWIND_PLT, 7, -8, 8, 15 << 8 | 11, {0}};
	struct fr_unwind_table t;
	size_t n = 0;

	read_test_object("plain.so", &t);
	assert_int_equal(count_kind(&t, FR_UNWIND_PLT), 1);
	for (uint32_t i = 0; i < t.n_rules; i++)
		n += memcmp(&t.rules[i], &plt, sizeof(plt)) == 0;
	assert_int_equal(n, 1);
	fr_unwind_table_deinit(&t);
}

TEST(of_two_rules_for_an_address_the_one_that_begins_last_is_valid)
{
	static const struct expected expected[] = {
		{"overlaps", 0, {FR_UNWIND_REGISTER, 7, -8, 16, 0, {0}}},
		{"overlaps", 3, {FR_UNWIND_REGISTER, 7, -8, 16, 0, {0}}},
		{"overlaps", 4, {FR_UNWIND_REGISTER, 7, -8, 24, 0, {0}}},
		{"overlaps", 7, {FR_UNWIND_REGISTER, 7, -8, 24, 0, {0}}},
		{"overlaps", 8, {.kind = FR_UNWIND_NONE}},
	};

	assert_rules("overlap.so", expected, FR_ARRAY_SIZE(expected));
}

static void assert_equal_tables(const struct fr_unwind_table *a, const struct fr_unwind_table *b)
{
	assert_int_equal(a->first_page, b->first_page);
	assert_int_equal(a->n_pages, b->n_pages);
	assert_int_equal(a->n_rows, b->n_rows);
	assert_int_equal(a->n_rules, b->n_rules);
	assert_int_equal(a->skipped, b->skipped);
	assert_memory_equal(a->pages, b->pages, a->n_pages * sizeof(*a->pages));
	assert_memory_equal(a->rows, b->rows, a->n_rows * sizeof(*a->rows));
	assert_memory_equal(a->rules, b->rules, a->n_rules * sizeof(*a->rules));
}

/* Judges the table of an object that has .debug_frame only, in the object itself or in DEBUG. */
static void judge_debug_frame(const char *object, const char *debug)
{
	_cleanup_close_ int fd = open_test_object(object), debug_fd = debug ? open_test_object(debug) : -1;
	struct fr_unwind_table t;
	Dwarf *dwarf;

	if (debug)
		assert_int_equal(fr_unwind_table_read(fd, -1, &t), 1);
	assert_int_equal(fr_unwind_table_read(fd, debug_fd, &t), 0);
	dwarf = dwarf_begin(debug ? debug_fd : fd, DWARF_C_READ);
	assert_non_null(dwarf);
	assert_true(t.n_rows > 30);
	assert_true(judge_table(&t, dwarf_getcfi(dwarf), N_RANDOM) > N_RANDOM);
	dwarf_end(dwarf);
	fr_unwind_table_deinit(&t);
}

TEST(debug_frame_is_read_if_there_is_no_eh_frame)
{
	judge_debug_frame("debug-frame.so", NULL);
	judge_debug_frame("compressed.so", NULL);
	judge_debug_frame("stripped.so", "stripped.so.debug");
}

TEST(image_is_not_changed)
{
	_cleanup_buf_ struct fr_buf image = {0}, copy = {0};
	struct fr_unwind_table file, t;

	read_test_object("compressed.so", &file);
	assert_int_equal(fr_read_file(AT_FDCWD, FR_TEST_OBJECTS "/compressed.so", 1 << 20, &image), 0);
	assert_int_equal(fr_buf_append(&copy, image.data, image.len), 0);
	assert_int_equal(fr_unwind_table_read_image(image.data, image.len, &t), 0);
	assert_memory_equal(image.data, copy.data, copy.len);
	assert_equal_tables(&t, &file);
	fr_unwind_table_deinit(&t);
	fr_unwind_table_deinit(&file);
}

/* Returns a new memfd with the content of a test object, without section headers. */
static int copy_without_sections(const char *object)
{
	_cleanup_close_ int fd = open_test_object(object);
	_cleanup_buf_ struct fr_buf b = {0};
	int copy = memfd_create("object", MFD_CLOEXEC);
	char path[32];
	Elf64_Ehdr *header;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(fr_read_file(AT_FDCWD, path, 1 << 20, &b), 0);
	header = (Elf64_Ehdr *)b.data;
	header->e_shoff = 0;
	header->e_shnum = 0;
	header->e_shstrndx = 0;
	assert_true(copy >= 0);
	assert_int_equal(fr_write_all(copy, b.data, b.len), 0);
	return copy;
}

TEST(object_without_section_headers_has_the_same_table)
{
	_cleanup_close_ int fd = copy_without_sections("plain.so");
	_cleanup_close_ int no_header = copy_without_sections("no-header.so");
	struct fr_unwind_table a, b;

	read_test_object("plain.so", &a);
	assert_int_equal(fr_unwind_table_read(fd, -1, &b), 0);
	assert_equal_tables(&a, &b);
	assert_int_equal(fr_unwind_table_read(no_header, -1, &b), 1);
	fr_unwind_table_deinit(&a);
	fr_unwind_table_deinit(&b);
}

TEST(objects_without_a_table_are_told_apart)
{
	static const struct {
		const char *object;
		int expected;
	} cases[] = {{"bare.so", 1}, {"far.so", -E2BIG}, {"relocatable.o", -ENOEXEC}, {"stripped.so", 1},
		{"../../../CMakeCache.txt", -ENOEXEC}};
	struct fr_unwind_table t;

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		_cleanup_close_ int fd = open_test_object(cases[i].object);

		print_message("%s\n", cases[i].object);
		assert_int_equal(fr_unwind_table_read(fd, -1, &t), cases[i].expected);
	}
	assert_int_equal(fr_unwind_table_read_image("ELF", 3, &t), -ENOEXEC);
}

TEST(damaged_debug_file_is_the_same_as_none)
{
	_cleanup_close_ int fd = open_test_object("stripped.so");
	_cleanup_close_ int debug_fd = open_test_object("../../../CMakeCache.txt");
	struct fr_unwind_table t;

	assert_int_equal(fr_unwind_table_read(fd, debug_fd, &t), 1);
}
