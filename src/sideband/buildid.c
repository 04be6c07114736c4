// SPDX-License-Identifier: GPL-2.0-or-later
#include "sideband/buildid.h"
#include "sideband/hash.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "perfdata/features.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#define PHDRS_MAX 128u
#define NOTES_MAX (16u << 10)
#define NOTE_SEGMENTS_MAX 8
#define CACHE_MAX 32768u

static int read_note_segment(int fd, uint64_t offset, uint64_t size, uint64_t align, uint8_t *ret)
{
	uint8_t notes[NOTES_MAX];
	ssize_t n;

	if (offset > INT64_MAX - NOTES_MAX)
		return 0;
	n = fr_pread_all(fd, notes, FR_MIN(size, (uint64_t)sizeof(notes)), (off_t)offset);
	if (n < 0)
		return (int)n;
	n = fr_build_id_from_notes(notes, (size_t)n, align == 8 ? 8 : 4, ret);
	return n == -ENOENT ? 0 : (int)n;
}

struct phdr_table {
	bool is_64;
	uint64_t offset;
	size_t entry, n;
};

static int parse_header(int fd, struct phdr_table *ret)
{
	union {
		uint8_t ident[EI_NIDENT];
		Elf32_Ehdr e32;
		Elf64_Ehdr e64;
	} h;
	ssize_t n = fr_pread_all(fd, &h, sizeof(h), 0);

	if (n < 0)
		return (int)n;
	if ((size_t)n < sizeof(h.e32) || memcmp(h.ident, ELFMAG, SELFMAG) != 0)
		return -ENOEXEC;
	if (h.ident[EI_DATA] != (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB))
		return -ENOEXEC;
	if (h.ident[EI_CLASS] == ELFCLASS64 && (size_t)n >= sizeof(h.e64))
		*ret = (struct phdr_table){true, h.e64.e_phoff, h.e64.e_phentsize, h.e64.e_phnum};
	else if (h.ident[EI_CLASS] == ELFCLASS32)
		*ret = (struct phdr_table){false, h.e32.e_phoff, h.e32.e_phentsize, h.e32.e_phnum};
	else
		return -ENOEXEC;
	if (ret->entry != (ret->is_64 ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr)) ||
		ret->offset > INT64_MAX / 2)
		return -ENOEXEC;
	ret->n = FR_MIN(ret->n, (size_t)PHDRS_MAX);
	return 0;
}

int fr_build_id_read(int fd, uint8_t ret[static FR_BUILD_ID_MAX])
{
	union {
		Elf64_Phdr p64[PHDRS_MAX];
		Elf32_Phdr p32[PHDRS_MAX];
	} u;
	struct phdr_table t = {0};
	int segments = 0, r = parse_header(fd, &t);
	ssize_t n;

	if (r < 0)
		return r;
	n = fr_pread_all(fd, &u, t.n * t.entry, (off_t)t.offset);
	if (n < 0)
		return (int)n;
	for (size_t i = 0; i < (size_t)n / t.entry; i++) {
#define FIELD(f) (t.is_64 ? u.p64[i].f : u.p32[i].f)
		if (FIELD(p_type) != PT_NOTE)
			continue;
		if (segments++ == NOTE_SEGMENTS_MAX)
			break;
		r = read_note_segment(fd, FIELD(p_offset), FIELD(p_filesz), FIELD(p_align), ret);
		if (r != 0)
			return r;
#undef FIELD
	}
	return 0;
}

struct cache_key {
	uint64_t dev, ino;
	uint64_t generation; /* as in struct fr_file_id */
	int64_t mtime_s, mtime_ns;
};

struct cache_entry {
	UT_hash_handle hh;
	struct cache_key key;
	int len; /* the result of fr_build_id_read() */
	uint8_t bytes[FR_BUILD_ID_MAX];
};

struct fr_build_id_cache {
	struct cache_entry *entries;
};

struct fr_build_id_cache *fr_build_id_cache_new(void)
{
	return calloc(1, sizeof(struct fr_build_id_cache));
}

struct fr_build_id_cache *fr_build_id_cache_free(struct fr_build_id_cache *c)
{
	if (c)
		FR_HASH_CLEAR(c->entries, free);
	free(c);
	return NULL;
}

static void remember(struct fr_build_id_cache *c, const struct cache_key *key, int len, const uint8_t *bytes)
{
	struct cache_entry *e =
		HASH_COUNT(c->entries) < CACHE_MAX ? FR_HASH_NEW(c->entries, key, *key) : NULL;

	if (!e)
		return;
	e->len = len;
	if (len > 0)
		memcpy(e->bytes, bytes, (size_t)len);
}

/* Reads the build-id of DIRFD/PATH. Returns the same values as fr_build_id_read(); or -ESTALE if the file is
   not a regular file, or is not the same as EXPECTED and FILE. The first open has O_PATH, so it neither waits
   for the writer of a FIFO nor has an effect on a device. Only a regular file is then opened a second time,
   for reading. */
static int read_regular(int dirfd, const char *path, int flags, const struct stat *expected,
	const struct fr_file_id *file, uint8_t *ret)
{
	_cleanup_close_ int at = openat(dirfd, path, O_PATH | O_CLOEXEC | flags);
	_cleanup_close_ int fd = -1;
	char self[64];
	struct stat st;

	if (at < 0 || fstat(at, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_dev != expected->st_dev || st.st_ino != expected->st_ino)
		return -ESTALE;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", at);
	fd = open(self, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return fr_file_has_id(fd, st.st_ino, file) ? fr_build_id_read(fd, ret) : -ESTALE;
}

bool fr_file_has_id(int fd, uint64_t ino, const struct fr_file_id *file)
{
	int generation = 0;

	if (ino != file->ino)
		return false;
	return !file->generation || ioctl(fd, FS_IOC_GETVERSION, &generation) < 0 || !generation ||
	       (uint32_t)generation == file->generation;
}

int fr_build_id_at(struct fr_build_id_cache *c, int dirfd, const char *path, bool follow,
	const struct fr_file_id *file, uint8_t ret[static FR_BUILD_ID_MAX])
{
	struct cache_key key = {0};
	struct cache_entry *e;
	struct stat st;
	int r;

	if (fstatat(dirfd, path, &st, follow ? 0 : AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (st.st_ino != file->ino)
		return -ESTALE;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	key = (struct cache_key){
		st.st_dev, st.st_ino, file->generation, st.st_mtim.tv_sec, st.st_mtim.tv_nsec};
	e = FR_HASH_FIND(c->entries, key, key);
	if (e) {
		if (e->len > 0)
			memcpy(ret, e->bytes, (size_t)e->len);
		return e->len;
	}
	r = read_regular(dirfd, path, follow ? 0 : O_NOFOLLOW, &st, file, ret);
	if (r >= 0 || r == -ENOEXEC)
		remember(c, &key, r, ret);
	return r;
}
