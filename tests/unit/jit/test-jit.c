// SPDX-License-Identifier: GPL-2.0-or-later

/* What is made of perf maps and jitdumps, and of files that only look like them. */

#include "jit/code.h"
#include "base/cleanup.h"
#include "sideband/buildid.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

static void parse(const char *text, struct jit_code *ret)
{
	assert_int_equal(jit_perf_map_parse(text, strlen(text), ret), 0);
}

static const char *name_of(const struct jit_code *c, size_t i)
{
	return (const char *)c->names.data + c->v[i].name;
}

static void assert_symbol(const struct jit_code *c, size_t i, uint64_t addr, uint64_t size, const char *name)
{
	assert_true(i < c->n);
	assert_int_equal(c->v[i].addr, addr);
	assert_int_equal(c->v[i].size, size);
	assert_string_equal(name_of(c, i), name);
}

static void test_perf_map(void **state)
{
	_cleanup_jit_code_ struct jit_code c = {0};

	parse("7f0020 10 second one(int, char)\n0x7f0000 0x20 first\nnot a line\n7f0040 0 empty\n"
	      "ffffffffffffffff 10 kernel\n7f0080 ffffffffffffff00 wraps\n7f0060 8 unfinished",
		&c);
	assert_int_equal(c.n, 2);
	assert_symbol(&c, 0, 0x7f0000, 0x20, "first");
	assert_symbol(&c, 1, 0x7f0020, 0x10, "second one(int, char)");
}

static void test_later_lines_win(void **state)
{
	_cleanup_jit_code_ struct jit_code same = {0}, inside = {0}, before = {0};

	parse("1000 10 old\n1000 20 new\n", &same);
	assert_int_equal(same.n, 1);
	assert_symbol(&same, 0, 0x1000, 0x20, "new");
	parse("1000 100 old\n1010 10 new\n", &inside);
	assert_int_equal(inside.n, 3);
	assert_symbol(&inside, 0, 0x1000, 0x10, "old");
	assert_symbol(&inside, 1, 0x1010, 0x10, "new");
	assert_symbol(&inside, 2, 0x1020, 0xe0, "old");
	parse("1010 20 old\n1000 18 new\n", &before);
	assert_int_equal(before.n, 2);
	assert_symbol(&before, 0, 0x1000, 0x18, "new");
	assert_symbol(&before, 1, 0x1018, 0x18, "old");
}

/* Against a plain model: of each byte, the latest line that has it. */
static void test_random_overlaps(void **state)
{
	uint64_t random = 4711;

	for (unsigned round = 0; round < 2000; round++) {
		_cleanup_jit_code_ struct jit_code c = {0};
		char text[40 * 16] = "", want[64] = "", *at = text;
		char have[64] = "";

		for (char line = 'a'; line < 'a' + 12; line++) {
			unsigned from, size;

			random = random * 6364136223846793005ULL + 1442695040888963407ULL;
			from = (random >> 33) % 48;
			size = (random >> 43) % 16;
			at += sprintf(at, "%x %x %c\n", from + 0x1000, size, line);
			memset(want + from, line, size);
		}
		parse(text, &c);
		for (size_t i = 0; i < c.n; i++) {
			assert_true(c.v[i].size > 0);
			assert_true(i == 0 || c.v[i - 1].addr + c.v[i - 1].size <= c.v[i].addr);
			memset(have + c.v[i].addr - 0x1000, name_of(&c, i)[0], c.v[i].size);
		}
		assert_memory_equal(have, want, sizeof(have));
	}
}

struct header {
	uint32_t magic, version, total_size, mach, pad, pid;
	uint64_t timestamp, flags;
};
struct load {
	uint32_t id, total_size;
	uint64_t timestamp;
	uint32_t pid, tid;
	uint64_t vma, addr, size, index;
};
struct move {
	uint32_t id, total_size;
	uint64_t timestamp;
	uint32_t pid, tid;
	uint64_t vma, old, new, size, index;
};

static void begin(struct fr_buf *b, uint64_t flags)
{
	const struct header h = {0x4A695444, 1, sizeof(h), 62, 0, 1, 1, flags};

	assert_int_equal(fr_buf_append(b, &h, sizeof(h)), 0);
}

static void add_load(struct fr_buf *b, uint64_t time, uint64_t addr, const char *name, uint64_t claims)
{
	static const uint8_t code[16] = {0xc3};
	const struct load l = {0, (uint32_t)(sizeof(l) + strlen(name) + 1 + sizeof(code)), time, 1, 1, addr,
		addr, claims, 0};

	assert_int_equal(fr_buf_append(b, &l, sizeof(l)), 0);
	assert_int_equal(fr_buf_append(b, name, strlen(name) + 1), 0);
	assert_int_equal(fr_buf_append(b, code, sizeof(code)), 0);
}

static void test_jitdump(void **state)
{
	const struct move m = {1, sizeof(m), 30, 1, 1, 0, 0x1000, 0x2000, 16, 0};
	_cleanup_jit_code_ struct jit_code c = {0};
	struct fr_buf b = {0};

	begin(&b, 0);
	add_load(&b, 20, 0x1000, "second", 16);
	add_load(&b, 10, 0x1000, "first", 16);
	add_load(&b, 15, 0x1000, "longer than its record", 17);
	assert_int_equal(fr_buf_append(&b, &m, sizeof(m)), 0);
	assert_int_equal(fr_buf_append_zero(&b, 64), 0);
	assert_int_equal(jit_dump_parse(&b, &c), 0);
	assert_null(b.data);
	assert_int_equal(c.n, 3);
	assert_false(c.cut);
	assert_symbol(&c, 0, 0x1000, 16, "first");
	assert_symbol(&c, 1, 0x1000, 16, "second");
	assert_symbol(&c, 2, 0x2000, 16, "first");
	assert_int_equal(c.v[2].time_ns, 30);
}

static void test_jitdump_with_times_of_another_clock(void **state)
{
	_cleanup_jit_code_ struct jit_code c = {0};
	struct fr_buf b = {0};

	begin(&b, 1);
	add_load(&b, 99, 0x1000, "first", 16);
	add_load(&b, 98, 0x1000, "second", 16);
	assert_int_equal(jit_dump_parse(&b, &c), 0);
	assert_int_equal(c.v[0].time_ns, 0);
	assert_symbol(&c, 1, 0x1000, 16, "second");
}

/* Cut at each byte, and with each byte of its first records changed. */
static void test_hostile_jitdumps(void **state)
{
	_cleanup_buf_ struct fr_buf whole = {0};

	begin(&whole, 0);
	add_load(&whole, 10, 0x1000, "first", 16);
	add_load(&whole, 20, 0x2000, "second", 16);
	for (size_t i = 0; i < 2 * whole.len; i++) {
		_cleanup_jit_code_ struct jit_code c = {0};
		struct fr_buf b = {0};
		int r;

		assert_int_equal(fr_buf_append(&b, whole.data, i < whole.len ? i : whole.len), 0);
		if (i >= whole.len)
			b.data[i - whole.len] ^= 0xff;
		r = jit_dump_parse(&b, &c);
		assert_true(r == 0 || r == -EBADMSG);
		assert_true(c.n <= 2);
		for (size_t k = 0; k < c.n; k++)
			assert_true(c.v[k].code + c.v[k].size <= c.file.len);
		fr_buf_deinit(&b);
	}
}

/* libelf reads the object, and each symbol stands where its map record will say. */
static void check_object(const struct fr_buf *b, const struct jit_code *c, const uint8_t *id)
{
	int fd = memfd_create("object", MFD_CLOEXEC);
	uint8_t have[FR_BUILD_ID_MAX];
	Elf_Scn *section = NULL;
	size_t found = 0;
	Elf *elf;

	assert_int_equal(write(fd, b->data, b->len), b->len);
	assert_int_equal(fr_build_id_read(fd, have), JIT_BUILD_ID_SIZE);
	assert_memory_equal(have, id, JIT_BUILD_ID_SIZE);
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	assert_non_null(elf);
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr h;
		GElf_Sym s;

		assert_non_null(gelf_getshdr(section, &h));
		if (h.sh_type == SHT_PROGBITS || h.sh_type == SHT_NOBITS)
			assert_int_equal(h.sh_addr, h.sh_offset);
		if (h.sh_type != SHT_SYMTAB)
			continue;
		for (; found < c->n; found++) {
			assert_non_null(gelf_getsym(elf_getdata(section, NULL), (int)found + 1, &s));
			assert_int_equal(s.st_value, c->v[found].offset);
			assert_int_equal(s.st_size, c->v[found].size);
			assert_string_equal(elf_strptr(elf, h.sh_link, s.st_name), name_of(c, found));
		}
	}
	assert_int_equal(found, c->n);
	elf_end(elf);
	close(fd);
}

static void test_objects(void **state)
{
	_cleanup_jit_code_ struct jit_code map = {0}, dump = {0};
	_cleanup_buf_ struct fr_buf a = {0}, b = {0};
	uint8_t id_a[JIT_BUILD_ID_SIZE], id_b[JIT_BUILD_ID_SIZE];
	struct fr_buf file = {0};
	uint64_t base;

	/* Far apart: the object does not become as large as that. */
	parse("7f0000001010 10 low\n7fff00000000 20 high\n", &map);
	assert_int_equal(jit_object_make(&map, &a, &base, id_a), 0);
	assert_int_equal(base, 0x7f0000001000);
	assert_int_equal(map.v[0].offset, 0x1010);
	assert_true(a.len < 4096);
	check_object(&a, &map, id_a);

	begin(&file, 0);
	add_load(&file, 10, 0x1000, "first", 16);
	add_load(&file, 20, 0x1000, "second", 3);
	assert_int_equal(jit_dump_parse(&file, &dump), 0);
	assert_int_equal(jit_object_make(&dump, &b, &base, id_b), 0);
	assert_int_equal(b.data[dump.v[1].offset], 0xc3);
	check_object(&b, &dump, id_b);
	assert_memory_not_equal(id_a, id_b, JIT_BUILD_ID_SIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_perf_map),
		cmocka_unit_test(test_later_lines_win),
		cmocka_unit_test(test_random_overlaps),
		cmocka_unit_test(test_jitdump),
		cmocka_unit_test(test_jitdump_with_times_of_another_clock),
		cmocka_unit_test(test_hostile_jitdumps),
		cmocka_unit_test(test_objects),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
