// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of damaged objects: they have a table, or they are refused. A table is always well-formed. */

#include "../unit.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "unwind/table.h"

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

/* Finds the contents of the section NAME, to damage them more often. */
static void find_section(const struct fr_buf *image, const char *name, size_t *ret_at, size_t *ret_len)
{
	const Elf64_Ehdr *e = (const void *)image->data;
	const Elf64_Shdr *s = (const void *)(image->data + e->e_shoff);
	const char *names = (const char *)image->data + s[e->e_shstrndx].sh_offset;

	for (unsigned i = 0; i < e->e_shnum; i++)
		if (strcmp(names + s[i].sh_name, name) == 0) {
			*ret_at = s[i].sh_offset;
			*ret_len = s[i].sh_size;
			return;
		}
	fail_msg("no section %s", name);
}

/* Reads damaged copies of an object. Some of them are still good enough for a table. */
static void read_damaged(const char *object, const char *section)
{
	_cleanup_buf_ struct fr_buf image = {0}, original = {0};
	size_t at = 0, len = 1;
	unsigned good = 0;

	read_object(object, &original);
	find_section(&original, section, &at, &len);
	assert_int_equal(fr_buf_append(&image, original.data, original.len), 0);
	srandom(1);
	for (unsigned i = 0; i < RUNS; i++) {
		memcpy(image.data, original.data, original.len);
		damage(&image, at, len);
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
