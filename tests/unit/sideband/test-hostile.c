// SPDX-License-Identifier: GPL-2.0-or-later
/* Lines of /proc/PID/maps and ELF files, both made by anybody. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "sideband/buildid.h"
#include "sideband/procmaps.h"
#include "base/cleanup.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* In a buffer of exactly its size, so that a sanitizer sees every byte read past it. */
static int parse(const char *line, struct fr_procmap *ret, char *name, size_t size)
{
	size_t len = strlen(line);
	_cleanup_free_ char *copy = malloc(len ? len : 1);
	int r;

	memcpy(copy, line, len);
	r = fr_procmap_parse(copy, len, ret);
	if (r == 0) {
		assert_true(ret->name_len < size);
		memcpy(name, ret->name, ret->name_len);
		name[ret->name_len] = '\0';
	}
	return r;
}

static void test_good_lines(void **state)
{
	struct fr_procmap m;
	char name[256];

	assert_int_equal(parse("7f0000001000-7f0000003000 r-xp 00002000 fd:1f 123456    /bin/a b (deleted)",
				 &m, name, sizeof(name)),
		0);
	assert_int_equal(m.start, 0x7f0000001000);
	assert_int_equal(m.end, 0x7f0000003000);
	assert_int_equal(m.pgoff, 0x2000);
	assert_int_equal(m.maj, 0xfd);
	assert_int_equal(m.min, 0x1f);
	assert_int_equal(m.ino, 123456);
	assert_int_equal(m.prot, PROT_READ | PROT_EXEC);
	assert_int_equal(m.flags, MAP_PRIVATE);
	assert_string_equal(name, "/bin/a b (deleted)");

	assert_int_equal(parse("0-1000 rwxs 00000000 00:00 0 ", &m, name, sizeof(name)), 0);
	assert_int_equal(m.flags, MAP_SHARED);
	assert_int_equal(m.prot, PROT_READ | PROT_WRITE | PROT_EXEC);
	assert_string_equal(name, "");

	assert_int_equal(parse("0-1000 r-xp 00000000 00:00 0 /x\\012\\012y\\01", &m, name, sizeof(name)), 0);
	assert_string_equal(name, "/x\n\ny\\01");
	assert_int_equal(parse("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]", &m, name,
				 sizeof(name)),
		0);
}

static void test_bad_lines(void **state)
{
	static const char *const lines[] = {"", "-", "1000", "1000-", "1000-2000", "1000-2000 r-x",
		"1000-2000 r-xq 0 00:00 0", "2000-1000 r-xp 0 00:00 0", "1000-1000 r-xp 0 00:00 0",
		"1000-2000 r-xp 0 00:00", "1000-2000 r-xp 0 00-00 0", "1000-2000 r-xp 0 00:00 0x1",
		"1000-2000 r-xp 0 00:00 ", "1000-11111111111111111 r-xp 0 00:00 0",
		"1000-2000 r-xp 0 00:00 99999999999999999999", "1000-2000 r-xp 0 100000000:00 1",
		"1000-2000r-xp 0 00:00 0", "G000-2000 r-xp 0 00:00 0", " 1000-2000 r-xp 0 00:00 0"};
	struct fr_procmap m;
	char name[256];

	for (size_t i = 0; i < FR_ARRAY_SIZE(lines); i++)
		assert_int_equal(parse(lines[i], &m, name, sizeof(name)), -EINVAL);
}

static void test_damaged_lines(void **state)
{
	static const char good[] = "7f0000001000-7f0000003000 r-xp 00002000 fd:1f 123456  /bin/a\\012b";

	srand(5);
	for (int i = 0; i < 200000; i++) {
		size_t len = (size_t)rand() % sizeof(good);
		_cleanup_free_ char *line = malloc(len ? len : 1);
		struct fr_procmap m;

		memcpy(line, good, len);
		for (int k = rand() % 4; k > 0 && len > 0; k--)
			line[(size_t)rand() % len] = (char)rand();
		if (fr_procmap_parse(line, len, &m) == 0) {
			assert_true(m.start < m.end);
			assert_true(m.name >= line && m.name + m.name_len <= line + len);
		}
	}
}

struct image {
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdr[2];
	Elf64_Nhdr other;
	char other_name[8], other_desc[4];
	Elf64_Nhdr note;
	char name[4];
	uint8_t id[20];
};

static struct image good_image(void)
{
	struct image i = {0};

	memcpy(i.ehdr.e_ident, ELFMAG, SELFMAG);
	i.ehdr.e_ident[EI_CLASS] = ELFCLASS64;
	i.ehdr.e_ident[EI_DATA] = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
	i.ehdr.e_phoff = offsetof(struct image, phdr);
	i.ehdr.e_phentsize = sizeof(Elf64_Phdr);
	i.ehdr.e_phnum = 2;
	i.phdr[0].p_type = PT_LOAD;
	i.phdr[1].p_type = PT_NOTE;
	i.phdr[1].p_align = 4;
	i.phdr[1].p_offset = offsetof(struct image, other);
	i.phdr[1].p_filesz = sizeof(i) - offsetof(struct image, other);
	i.other = (Elf64_Nhdr){.n_namesz = 6, .n_descsz = 4, .n_type = 1};
	memcpy(i.other_name, "Other", 6);
	i.note = (Elf64_Nhdr){.n_namesz = 4, .n_descsz = 20, .n_type = NT_GNU_BUILD_ID};
	memcpy(i.name, "GNU", 4);
	memset(i.id, 0xab, sizeof(i.id));
	return i;
}

static int read_image(const void *data, size_t len, uint8_t *ret)
{
	_cleanup_close_ int fd = memfd_create("elf", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), (ssize_t)len);
	return fr_build_id_read(fd, ret);
}

static void test_elf(void **state)
{
	struct image i = good_image();
	uint8_t id[FR_BUILD_ID_MAX];

	assert_int_equal(read_image(&i, sizeof(i), id), 20);
	assert_memory_equal(id, i.id, 20);
	i.note.n_descsz = 8;
	assert_int_equal(read_image(&i, sizeof(i), id), 8);
	i = good_image();
	i.ehdr.e_phnum = UINT16_MAX;
	i.phdr[1].p_filesz = UINT64_MAX;
	assert_int_equal(read_image(&i, sizeof(i), id), 20);
	i = good_image();
	i.note.n_descsz = UINT32_MAX;
	assert_int_equal(read_image(&i, sizeof(i), id), 0);
	i = good_image();
	i.other.n_namesz = UINT32_MAX - 3;
	assert_int_equal(read_image(&i, sizeof(i), id), 0);
	i = good_image();
	i.ehdr.e_phoff = UINT64_MAX - 8;
	assert_int_equal(read_image(&i, sizeof(i), id), -ENOEXEC);
	i = good_image();
	i.phdr[1].p_offset = UINT64_MAX - 8;
	assert_int_equal(read_image(&i, sizeof(i), id), 0);
	assert_int_equal(read_image("#!/bin/sh\n", 10, id), -ENOEXEC);
	assert_int_equal(read_image("", 0, id), -ENOEXEC);
}

static void test_damaged_elf(void **state)
{
	srand(6);
	for (int n = 0; n < 20000; n++) {
		struct image i = good_image();
		uint8_t id[FR_BUILD_ID_MAX], *p = (uint8_t *)&i;
		size_t len = rand() % 3 ? sizeof(i) : (size_t)rand() % sizeof(i);
		int r;

		for (int k = rand() % 6; k > 0; k--)
			p[(size_t)rand() % sizeof(i)] = rand() % 2 ? 0xff : (uint8_t)rand();
		r = read_image(&i, len, id);
		assert_true(r <= FR_BUILD_ID_MAX);
	}
}

static void test_files_that_are_none(void **state)
{
	char dir[] = "/tmp/fr-hostile-XXXXXX";
	struct fr_build_id_cache *c = fr_build_id_cache_new();
	uint8_t id[FR_BUILD_ID_MAX];
	struct image i = good_image();
	_cleanup_close_ int fd = -1, file = -1;
	struct stat st;

	assert_non_null(c);
	assert_non_null(mkdtemp(dir));
	fd = open(dir, O_RDONLY | O_DIRECTORY);
	assert_int_equal(mkfifoat(fd, "fifo", 0600), 0);
	assert_int_equal(fstatat(fd, "fifo", &st, 0), 0);
	assert_int_equal(
		fr_build_id_at(c, fd, "fifo", 0, &(struct fr_file_id){.ino = st.st_ino}, id), -ENOEXEC);
	assert_int_equal(
		fr_build_id_at(c, fd, "fifo", 0, &(struct fr_file_id){.ino = st.st_ino + 1}, id), -ESTALE);
	assert_int_equal(fr_build_id_at(c, fd, "missing", 0, &(struct fr_file_id){.ino = 1}, id), -ENOENT);

	file = openat(fd, "elf", O_RDWR | O_CREAT, 0600);
	assert_int_equal(write(file, &i, sizeof(i)), sizeof(i));
	assert_int_equal(fstat(file, &st), 0);
	for (int n = 0; n < 2; n++) /* the second time from the cache */
		assert_int_equal(
			fr_build_id_at(c, fd, "elf", 0, &(struct fr_file_id){.ino = st.st_ino}, id), 20);
	assert_int_equal(symlinkat("elf", fd, "link"), 0);
	assert_int_equal(
		fr_build_id_at(c, fd, "link", 0, &(struct fr_file_id){.ino = st.st_ino}, id), -ESTALE);
	assert_int_equal(fr_build_id_at(c, fd, "link", 1, &(struct fr_file_id){.ino = st.st_ino}, id), 20);
	/* Changed in place: what the cache knows is of another time. */
	i.id[0] = 0x11;
	assert_int_equal(pwrite(file, &i, sizeof(i), 0), sizeof(i));
	assert_int_equal(futimens(file, (struct timespec[2]){{1, 1}, {1, 1}}), 0);
	assert_int_equal(fr_build_id_at(c, fd, "elf", 0, &(struct fr_file_id){.ino = st.st_ino}, id), 20);
	assert_int_equal(id[0], 0x11);

	unlinkat(fd, "fifo", 0);
	unlinkat(fd, "elf", 0);
	unlinkat(fd, "link", 0);
	rmdir(dir);
	fr_build_id_cache_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good_lines),
		cmocka_unit_test(test_bad_lines),
		cmocka_unit_test(test_damaged_lines),
		cmocka_unit_test(test_elf),
		cmocka_unit_test(test_damaged_elf),
		cmocka_unit_test(test_files_that_are_none),
	};

	return cmocka_run_group_tests_name("sideband-hostile", tests, NULL, NULL);
}
