// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of reading the build-ids of ELF files. Any user can have made the file, so it can be hostile. */

#include "../unit.h"
#include "sideband/buildid.h"
#include "base/cleanup.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

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

TEST(wrong_values_in_headers_are_refused)
{
#define FIELD(f) offsetof(struct image, f), sizeof(((struct image *)0)->f)
	static const struct {
		size_t at, size;
		uint64_t value;
		int result;
	} cases[] = {{0, 0, 0, 20}, {FIELD(note.n_descsz), 8, 8}, {FIELD(ehdr.e_phnum), UINT16_MAX, 20},
		{FIELD(phdr[1].p_filesz), UINT64_MAX, 20}, {FIELD(note.n_descsz), UINT32_MAX, 0},
		{FIELD(other.n_namesz), UINT32_MAX - 3, 0}, {FIELD(ehdr.e_phoff), UINT64_MAX - 8, -ENOEXEC},
		{FIELD(phdr[1].p_offset), UINT64_MAX - 8, 0}};
	uint8_t id[FR_BUILD_ID_MAX];

	for (size_t n = 0; n < FR_ARRAY_SIZE(cases); n++) {
		struct image i = good_image();

		/* The copy of the value is right on a little-endian machine. */
		memcpy((char *)&i + cases[n].at, &cases[n].value, cases[n].size);
		assert_int_equal(read_image(&i, sizeof(i), id), cases[n].result);
		if (cases[n].result > 0)
			assert_memory_equal(id, i.id, cases[n].result);
	}
	assert_int_equal(read_image("#!/bin/sh\n", 10, id), -ENOEXEC);
	assert_int_equal(read_image("", 0, id), -ENOEXEC);
}

TEST(damaged_file_is_read_within_bounds)
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

static int read_id_at(
	struct fr_build_id_cache *c, int dirfd, const char *path, bool follow, ino_t ino, uint8_t *ret)
{
	return fr_build_id_at(c, dirfd, path, follow, &(struct fr_file_id){.ino = ino}, ret);
}

TEST(only_the_expected_regular_file_is_read)
{
	char dir[] = "/tmp/fr-build-id-XXXXXX";
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
	assert_int_equal(read_id_at(c, fd, "fifo", false, st.st_ino, id), -ENOEXEC);
	assert_int_equal(read_id_at(c, fd, "fifo", false, st.st_ino + 1, id), -ESTALE);
	assert_int_equal(read_id_at(c, fd, "missing", false, 1, id), -ENOENT);

	file = openat(fd, "elf", O_RDWR | O_CREAT, 0600);
	assert_int_equal(write(file, &i, sizeof(i)), sizeof(i));
	assert_int_equal(fstat(file, &st), 0);
	for (int n = 0; n < 2; n++) /* the second time, the build-id comes from the cache */
		assert_int_equal(read_id_at(c, fd, "elf", false, st.st_ino, id), 20);
	assert_int_equal(symlinkat("elf", fd, "link"), 0);
	assert_int_equal(read_id_at(c, fd, "link", false, st.st_ino, id), -ESTALE);
	assert_int_equal(read_id_at(c, fd, "link", true, st.st_ino, id), 20);
	/* After the content of the file has changed, the cache must not return the old build-id. */
	i.id[0] = 0x11;
	assert_int_equal(pwrite(file, &i, sizeof(i), 0), sizeof(i));
	assert_int_equal(futimens(file, (struct timespec[2]){{1, 1}, {1, 1}}), 0);
	assert_int_equal(read_id_at(c, fd, "elf", false, st.st_ino, id), 20);
	assert_int_equal(id[0], 0x11);

	unlinkat(fd, "fifo", 0);
	unlinkat(fd, "elf", 0);
	unlinkat(fd, "link", 0);
	rmdir(dir);
	fr_build_id_cache_free(c);
}
