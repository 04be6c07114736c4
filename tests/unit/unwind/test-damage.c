// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of damaged objects: they have a table, or they are refused. A table is always well-formed. */

#include "../unit.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "unwind/table.h"
#include "unwind/table_build.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#define RUNS 20000

static void read_object(const char *name, struct fr_buf *ret)
{
	char path[512];

	snprintf(path, sizeof(path), FR_TEST_OBJECTS "/%s", name);
	assert_int_equal(fr_read_file(AT_FDCWD, path, 1 << 20, ret), 0);
}

/* Checks all that a reader of a table relies on. */
static void assert_well_formed(const struct fr_unwind_table *t)
{
	size_t n_rows = 0;

	assert_true(t->n_rules >= 1 && t->n_rules <= FR_UNWIND_RULES_MAX);
	assert_int_equal(t->rules[0].kind, FR_UNWIND_NONE);
	for (uint32_t i = 0; i < t->n_rules; i++)
		assert_true(t->rules[i].kind <= FR_UNWIND_SIGNAL && t->rules[i].reg < 16);
	for (uint32_t i = 0; i < t->n_pages; i++) {
		const struct fr_unwind_row *rows = t->rows + t->pages[i].first_row;

		assert_int_equal(t->pages[i].first_row, n_rows);
		n_rows += t->pages[i].n_rows;
		for (uint32_t j = 0; j < t->pages[i].n_rows; j++) {
			assert_true(j == 0 ? rows[j].pc == 0 : rows[j].pc > rows[j - 1].pc);
			assert_true(rows[j].rule < t->n_rules);
		}
	}
	assert_true(n_rows > 0);
	assert_int_equal(n_rows, t->n_rows);
}

static bool read_image(const struct fr_buf *image, size_t len)
{
	struct fr_unwind_table t;
	int r = fr_unwind_table_read_image(image->data, len, &t);

	assert_true(r == 0 || r == 1 || r == -ENOEXEC || r == -E2BIG);
	if (r != 0)
		return false;
	assert_well_formed(&t);
	fr_unwind_table_deinit(&t);
	return true;
}

/* Changes up to 8 bytes of IMAGE, half of the time in the part from AT on. */
static void damage(struct fr_buf *image, size_t at, size_t len)
{
	for (long n = random() % 8; n >= 0; n--) {
		size_t where = random() & 1 ? at + (size_t)random() % len : (size_t)random() % image->len;

		image->data[where] =
			random() & 1 ? (uint8_t)random() : (uint8_t)(image->data[where] ^ 1 << random() % 8);
	}
}

/* Finds the header of the section NAME. */
static Elf64_Shdr *find_section(struct fr_buf *image, const char *name)
{
	const Elf64_Ehdr *e = (const void *)image->data;
	Elf64_Shdr *s = (void *)(image->data + e->e_shoff);
	const char *names = (const char *)image->data + s[e->e_shstrndx].sh_offset;

	for (unsigned i = 0; i < e->e_shnum; i++)
		if (strcmp(names + s[i].sh_name, name) == 0)
			return &s[i];
	fail_msg("no section %s", name);
	return NULL;
}

/* Reads damaged copies of an object. Some of them are still good enough for a table. */
static void read_damaged(const char *object, const char *section)
{
	_cleanup_buf_ struct fr_buf image = {0}, original = {0};
	const Elf64_Shdr *part;
	unsigned good = 0;

	read_object(object, &original);
	part = find_section(&original, section);
	assert_int_equal(fr_buf_append(&image, original.data, original.len), 0);
	srandom(1);
	for (unsigned i = 0; i < RUNS; i++) {
		memcpy(image.data, original.data, original.len);
		damage(&image, part->sh_offset, part->sh_size);
		good += read_image(&image, image.len);
	}
	print_message("%s: %u of %u have a table\n", object, good, RUNS);
	assert_true(good > 0 && good < RUNS);
}

TEST(damaged_objects_do_no_harm)
{
	read_damaged("plain.so", ".eh_frame");
	read_damaged("debug-frame.so", ".debug_frame");
	read_damaged("compressed.so", ".debug_frame");
}

TEST(damaged_headers_do_no_harm)
{
	_cleanup_buf_ struct fr_buf image = {0}, original = {0};

	read_object("plain.so", &original);
	assert_int_equal(fr_buf_append(&image, original.data, original.len), 0);
	srandom(2);
	for (unsigned i = 0; i < RUNS; i++) {
		size_t sections = ((const Elf64_Ehdr *)original.data)->e_shoff;

		memcpy(image.data, original.data, original.len);
		if (i & 1)
			damage(&image, 0, 0x300);
		else
			damage(&image, sections, original.len - sections);
		read_image(&image, image.len);
	}
}

TEST(truncated_objects_do_no_harm)
{
	_cleanup_buf_ struct fr_buf whole = {0};

	read_object("plain.so", &whole);
	for (size_t len = 0; len < whole.len; len++) {
		/* A copy of its own, so that a sanitizer sees a read behind the end. */
		_cleanup_buf_ struct fr_buf image = {0};

		assert_int_equal(fr_buf_append(&image, whole.data, len), 0);
		read_image(&image, len);
	}
	assert_true(read_image(&whole, whole.len));
}

/* The file can also be truncated in the moment when it is read. */
TEST(truncated_files_do_no_harm)
{
	_cleanup_buf_ struct fr_buf whole = {0};
	_cleanup_close_ int fd = memfd_create("object", MFD_CLOEXEC);
	struct fr_unwind_table t;

	read_object("plain.so", &whole);
	assert_int_equal(fr_write_all(fd, whole.data, whole.len), 0);
	assert_int_equal(fr_unwind_table_read(fd, -1, &t), 0);
	fr_unwind_table_deinit(&t);
	for (off_t len = (off_t)whole.len - 1; len >= 0; len -= 7) {
		int r;

		assert_int_equal(ftruncate(fd, len), 0);
		r = fr_unwind_table_read(fd, -1, &t);
		assert_true(r == 0 || r == 1 || r == -ENOEXEC);
		if (r == 0)
			fr_unwind_table_deinit(&t);
	}
}

/* Reads plain.so from a sparse file of 64 GiB in which the section NAME has 32 GiB. */
static int read_sparse(const char *name)
{
	_cleanup_close_ int fd = memfd_create("object", MFD_CLOEXEC);
	_cleanup_buf_ struct fr_buf image = {0};
	uint64_t begin_ns = fr_now_ns(CLOCK_THREAD_CPUTIME_ID);
	struct fr_unwind_table t;
	int r;

	read_object("plain.so", &image);
	find_section(&image, name)->sh_size = 32ULL << 30;
	assert_int_equal(fr_write_all(fd, image.data, image.len), 0);
	assert_int_equal(ftruncate(fd, 64LL << 30), 0);
	r = fr_unwind_table_read(fd, -1, &t);
	assert_true(fr_now_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns < 1000000000);
	if (r == 0)
		fr_unwind_table_deinit(&t);
	return r;
}

TEST(huge_sections_are_not_read)
{
	assert_int_equal(read_sparse(".eh_frame"), -E2BIG);
	assert_int_equal(read_sparse(".shstrtab"), 0); /* found without names */
	assert_int_equal(read_sparse(".text"), 0);
}

/* Appends a section .eh_frame with one function, and N rows that all have rules of their own. */
static void append_rows(struct fr_buf *b, uint32_t n)
{
	static const uint8_t cie[] = {
		20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, 0, 0x0c, 7, 8, 0x90, 1, 0, 0};

	assert_int_equal(fr_buf_append(b, cie, sizeof(cie)), 0);
	assert_int_equal(fr_buf_append_u32(b, 4 + 8 + 8 + 1 + 5 * n), 0);
	assert_int_equal(fr_buf_append_u32(b, (uint32_t)b->len), 0);
	assert_int_equal(fr_buf_append_u64(b, 0x10000), 0);
	assert_int_equal(fr_buf_append_u64(b, n), 0);
	assert_int_equal(fr_buf_append_zero(b, 1), 0);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t offset = 16 + i;
		/* DW_CFA_def_cfa_offset, DW_CFA_advance_loc */
		uint8_t program[] = {0x0e, (uint8_t)(0x80 | offset), (uint8_t)(0x80 | offset >> 7),
			(uint8_t)(offset >> 14), 0x41};

		assert_int_equal(fr_buf_append(b, program, sizeof(program)), 0);
	}
}

TEST(rules_that_are_too_many_are_skipped)
{
	static const struct cfi_range code = {0, 1 << 20};
	const uint32_t n = 40000;
	_cleanup_buf_ struct fr_buf b = {0};
	struct cfi_section s = {0};
	struct cfi_entries e;
	struct fr_unwind_table t;

	append_rows(&b, n);
	s.data = b.data;
	s.len = b.len;
	assert_int_equal(cfi_scan(&s, &code, 1, &e), 0);
	assert_int_equal(unwind_table_build(&e, &t), 0);
	assert_well_formed(&t);
	assert_int_equal(t.n_rules, FR_UNWIND_RULES_MAX);
	assert_int_equal(t.skipped, n - (FR_UNWIND_RULES_MAX - 1));
	for (uint32_t i = 0; i < n; i++) {
		const struct fr_unwind_rule *rule = fr_unwind_table_find(&t, 0x10000 + i);

		if (i < FR_UNWIND_RULES_MAX - 1)
			assert_int_equal(rule->cfa_offset, 16 + i);
		else
			assert_int_equal(rule->kind, FR_UNWIND_NONE);
	}
	fr_unwind_table_deinit(&t);
	cfi_entries_deinit(&e);
}
