// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of tables by offset: each address must have the rule that it had by address. */
#include "../unit.h"
#include "base/cleanup.h"
#include "unwind/offsets.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <link.h>
#include <string.h>

static const char *const libc = "/lib/x86_64-linux-gnu/libc.so.6";

static int open_object(const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		unit_skip("cannot open %s", path);
	return fd;
}

static void read_table(const char *path, struct fr_unwind_table *ret)
{
	_cleanup_close_ int fd = open_object(path);

	assert_int_equal(fr_unwind_table_read(fd, -1, ret), 0);
}

static void assert_same_rule(
	const struct fr_unwind_table *a, uint64_t address, const struct fr_unwind_table *b, uint64_t offset)
{
	const struct fr_unwind_rule *x = fr_unwind_table_find(a, address),
				    *y = fr_unwind_table_find(b, offset);

	if (memcmp(x, y, sizeof(*x)) != 0)
		fail_msg("address %#llx has another rule than offset %#llx", (unsigned long long)address,
			(unsigned long long)offset);
}

/* As BPF programs do, looks only at the rows of one page. */
static void assert_pages_begin_at_zero(const struct fr_unwind_table *t)
{
	for (uint32_t i = 0; i < t->n_pages; i++) {
		const struct fr_unwind_span *span = &t->pages[i];

		assert_true(span->first_row + (uint64_t)span->n_rows <= t->n_rows);
		if (span->n_rows)
			assert_int_equal(t->rows[span->first_row].pc, 0);
		for (uint32_t k = 1; k < span->n_rows; k++)
			assert_true(t->rows[span->first_row + k].pc > t->rows[span->first_row + k - 1].pc);
	}
}

/* Cuts libc into N segments with other offsets, and compares each address. Returns the number of rules that
   are not rule 0. */
static size_t compare(const struct fr_unwind_segment *s, size_t n)
{
	struct fr_unwind_table by_address, by_offset;
	size_t rules = 0;

	read_table(libc, &by_address);
	read_table(libc, &by_offset);
	assert_int_equal(fr_unwind_offsets_apply_segments(&by_offset, s, n), 0);
	assert_pages_begin_at_zero(&by_offset);
	for (size_t i = 0; i < n; i++)
		for (uint64_t k = 0; k < s[i].bytes; k++) {
			assert_same_rule(&by_address, s[i].address + k, &by_offset, s[i].offset + k);
			rules += fr_unwind_table_find(&by_offset, s[i].offset + k) != by_offset.rules;
		}
	for (size_t i = 0; i + 1 < n; i++)
		for (uint64_t k = s[i].offset + s[i].bytes; k < s[i + 1].offset; k++)
			assert_ptr_equal(fr_unwind_table_find(&by_offset, k), by_offset.rules);
	fr_unwind_table_deinit(&by_address);
	fr_unwind_table_deinit(&by_offset);
	return rules;
}

TEST(a_segment_with_another_offset_keeps_its_rules)
{
	assert_true(compare(&(struct fr_unwind_segment){0x26000, 0x26000, 0x150000}, 1) > 500000);
	assert_true(compare(&(struct fr_unwind_segment){0x26000, 0x25000, 0x150000}, 1) > 500000);
	assert_true(compare(&(struct fr_unwind_segment){0x30000, 0x20000, 0x140000}, 1) > 500000);
	assert_true(compare(&(struct fr_unwind_segment){0x30123, 0x20456, 0x140001}, 1) > 500000);
}

TEST(segments_with_different_distances_keep_their_rules)
{
	const struct fr_unwind_segment s[] = {
		{0x26000, 0x1000, 0x20000},
		{0x46000, 0x21000, 0x30000},
		{0x80010, 0x90010, 0x12345},
		{0xa0000, 0x200000, 0x60000},
	};

	assert_true(compare(s, FR_ARRAY_SIZE(s)) > 300000);
}

TEST(a_real_object_with_a_far_segment_is_found_by_offset)
{
	struct fr_unwind_table by_address, by_offset;
	_cleanup_close_ int fd = open_object(FR_TEST_OBJECTS "/apart.so");
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	size_t rules = 0, n = 0;
	GElf_Phdr ph;

	read_table(FR_TEST_OBJECTS "/apart.so", &by_address);
	read_table(FR_TEST_OBJECTS "/apart.so", &by_offset);
	assert_int_equal(fr_unwind_offsets_apply(&by_offset, fd), 0);
	assert_pages_begin_at_zero(&by_offset);
	assert_int_equal(elf_getphdrnum(elf, &n), 0);
	for (size_t i = 0; i < n; i++) {
		assert_non_null(gelf_getphdr(elf, (int)i, &ph));
		if (ph.p_type != PT_LOAD || !(ph.p_flags & PF_X))
			continue;
		for (uint64_t k = 0; k < ph.p_filesz; k++) {
			assert_same_rule(&by_address, ph.p_vaddr + k, &by_offset, ph.p_offset + k);
			rules += fr_unwind_table_find(&by_offset, ph.p_offset + k) != by_offset.rules;
		}
	}
	assert_true(rules > 10);
	elf_end(elf);
	fr_unwind_table_deinit(&by_address);
	fr_unwind_table_deinit(&by_offset);
}

TEST(damaged_program_headers_are_refused)
{
	struct fr_unwind_table t;
	FILE *f = tmpfile();
	Elf64_Ehdr e = {.e_phentsize = sizeof(Elf64_Phdr), .e_phnum = 2, .e_phoff = sizeof(e)};
	Elf64_Phdr ph[2] = {
		{.p_type = PT_LOAD, .p_flags = PF_X, .p_vaddr = 0, .p_offset = 0, .p_filesz = 0x2000},
		{.p_type = PT_LOAD,
			.p_flags = PF_X,
			.p_vaddr = 0x9000,
			.p_offset = 0x1000,
			.p_filesz = 0x2000}};

	assert_non_null(f);
	read_table(libc, &t);
	memcpy(e.e_ident, ELFMAG, SELFMAG);
	e.e_ident[EI_CLASS] = ELFCLASS64;
	assert_int_equal(fr_unwind_offsets_apply(&t, fileno(f)), -ENOEXEC);
	assert_int_equal(fwrite(&e, sizeof(e), 1, f), 1);
	fflush(f);
	assert_int_equal(fr_unwind_offsets_apply(&t, fileno(f)), -ENOEXEC); /* no program headers */
	assert_int_equal(fwrite(ph, sizeof(ph), 1, f), 1);
	fflush(f);
	assert_int_equal(fr_unwind_offsets_apply(&t, fileno(f)), -ENOEXEC); /* they overlap */
	ph[1].p_offset = 1ULL << 60;
	assert_int_equal(pwrite(fileno(f), ph, sizeof(ph), sizeof(e)), sizeof(ph));
	assert_int_equal(fr_unwind_offsets_apply(&t, fileno(f)), -ENOEXEC);
	ph[1].p_offset = 1ULL << 46;
	assert_int_equal(pwrite(fileno(f), ph, sizeof(ph), sizeof(e)), sizeof(ph));
	assert_int_equal(fr_unwind_offsets_apply(&t, fileno(f)), -E2BIG);
	fclose(f);
	fr_unwind_table_deinit(&t);
}
