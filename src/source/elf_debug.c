// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Finds the debug file of a stripped file in the same places as gdb:
 *
 *     ROOT/.build-id/xx/yyyy.debug                by the build-id
 *     ROOT/DIR/NAME  DIR/NAME  DIR/.debug/NAME    by .gnu_debuglink, for a file in DIR
 *
 * ROOT is /usr/lib/debug: first the directory that this process sees, then the directory that the probed
 * process sees. DIR is always the directory that the probed process sees. The build-ids of both files must be
 * equal. If the stripped file has no build-id, the debug file must have the checksum of .gnu_debuglink.
 */
#include "source/elf_symbol_private.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/foreign.h"

#include <stdio.h>
#include <string.h>

#define BUILD_ID_MAX 64
#define NOTES_MAX (64u << 10)
#define CHECKED_MAX (512u << 20)

/* The identity of the debug file of a file: the build-id that both files have, or the name and checksum of
   the debug file in .gnu_debuglink. */
struct identity {
	uint8_t id[BUILD_ID_MAX];
	size_t id_len;
	char link[256]; /* "": none */
	uint32_t crc;
};

static void read_build_id_notes(Elf_Data *data, struct identity *ret)
{
	size_t at = 0, next, name_at, desc_at;
	GElf_Nhdr n;

	while ((next = gelf_getnote(data, at, &n, &name_at, &desc_at)) > 0) {
		if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == sizeof("GNU") &&
			!memcmp((char *)data->d_buf + name_at, "GNU", sizeof("GNU")) && n.n_descsz >= 2 &&
			n.n_descsz <= BUILD_ID_MAX) {
			memcpy(ret->id, (uint8_t *)data->d_buf + desc_at, n.n_descsz);
			ret->id_len = n.n_descsz;
			return;
		}
		at = next;
	}
}

static void read_build_id(Elf *elf, struct identity *ret)
{
	size_t n;

	if (elf_getphdrnum(elf, &n) < 0)
		return;
	for (size_t i = 0; i < n && ret->id_len == 0; i++) {
		Elf_Data *data;
		GElf_Phdr p;

		if (!gelf_getphdr(elf, (int)i, &p) || p.p_type != PT_NOTE || p.p_filesz > NOTES_MAX ||
			p.p_offset > INT64_MAX)
			continue;
		data = elf_getdata_rawchunk(
			elf, (int64_t)p.p_offset, p.p_filesz, p.p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
		if (data)
			read_build_id_notes(data, ret);
	}
}

/* Reads the build-id of a debug file from a section, because the segments of a debug file have no content. */
static void read_build_id_section(Elf *elf, struct identity *ret)
{
	Elf_Data *data =
		elf_section_data(elf_section_find(elf, SHT_NOTE, ".note.gnu.build-id", NULL), NOTES_MAX);

	if (data)
		read_build_id_notes(data, ret);
}

static void read_link(Elf *elf, struct identity *ret)
{
	const Elf_Data *data =
		elf_section_data(elf_section_find(elf, SHT_NULL, ".gnu_debuglink", NULL), 4096);
	size_t len = data ? strnlen(data->d_buf, data->d_size) : 0, crc_at = FR_ALIGN_UP(len + 1, 4);

	if (len == 0 || len >= sizeof(ret->link) || crc_at + sizeof(ret->crc) > data->d_size)
		return;
	if (memchr(data->d_buf, '/', len))
		return;
	memcpy(ret->link, data->d_buf, len + 1);
	memcpy(&ret->crc, (uint8_t *)data->d_buf + crc_at, sizeof(ret->crc));
}

/* Returns whether zlib's CRC-32 of the file is equal to WANTED. Computes the CRC-32 four bits at a time. */
static bool has_checksum(int fd, uint32_t wanted)
{
	uint32_t table[16], crc = UINT32_MAX;
	uint8_t block[16384];
	ssize_t n;
	off_t at = 0;

	for (uint32_t i = 0; i < FR_ARRAY_SIZE(table); i++) {
		table[i] = i;
		for (int k = 0; k < 4; k++)
			table[i] = table[i] & 1 ? table[i] >> 1 ^ 0xedb88320 : table[i] >> 1;
	}
	while ((n = fr_pread_all(fd, block, sizeof(block), at)) > 0 && at <= (off_t)CHECKED_MAX) {
		for (ssize_t i = 0; i < n; i++) {
			crc = crc >> 4 ^ table[(crc ^ block[i]) & 15];
			crc = crc >> 4 ^ table[(crc ^ block[i] >> 4) & 15];
		}
		at += n;
	}
	return n == 0 && ~crc == wanted;
}

/* Opens PATH in the root of PID (0: this process) as E's debug file. Returns false if there is no file at
   PATH, or if the file does not match WANTED or has no symbol table. */
static bool open_debug(struct fr_elf *e, const struct identity *wanted, pid_t pid, const char *path)
{
	struct identity have = {0};
	int fd = fr_foreign_open_linked(pid, path, NULL);
	Elf *elf;

	if (fd < 0)
		return false;
	elf = elf_begin_checked(fd, path, NULL);
	if (elf)
		read_build_id_section(elf, &have);
	if (elf && elf_section_find(elf, SHT_SYMTAB, NULL, NULL) &&
		(wanted->id_len ? have.id_len == wanted->id_len && !memcmp(have.id, wanted->id, have.id_len)
				: has_checksum(fd, wanted->crc))) {
		free(e->debug_path);
		e->debug_path = strdup(path);
		e->debug = elf;
		e->debug_fd = fd;
		return true;
	}
	elf_end(elf);
	close(fd);
	return false;
}

static bool open_debug_in_any_root(struct fr_elf *e, const struct identity *wanted, const char *path)
{
	return open_debug(e, wanted, 0, path) || (e->pid && open_debug(e, wanted, e->pid, path));
}

static bool find_by_build_id(struct fr_elf *e, const struct identity *wanted)
{
	char hex[2 * BUILD_ID_MAX + 1], path[4096];

	for (size_t i = 0; i < wanted->id_len; i++)
		snprintf(hex + 2 * i, 3, "%02x", wanted->id[i]);
	snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s.debug", e->debug_root, hex, hex + 2);
	e->debug_path = strdup(path);
	return open_debug_in_any_root(e, wanted, path);
}

static bool find_by_link(struct fr_elf *e, const struct identity *wanted)
{
	int dir = (int)(strrchr(e->path, '/') ? strrchr(e->path, '/') - e->path : 0);
	char path[4096];

	snprintf(path, sizeof(path), "%s%.*s/%s", e->debug_root, dir, e->path, wanted->link);
	if (!e->debug_path)
		e->debug_path = strdup(path);
	if (open_debug_in_any_root(e, wanted, path))
		return true;
	snprintf(path, sizeof(path), "%.*s/%s", dir, e->path, wanted->link);
	if (open_debug(e, wanted, e->pid, path))
		return true;
	snprintf(path, sizeof(path), "%.*s/.debug/%s", dir, e->path, wanted->link);
	return open_debug(e, wanted, e->pid, path);
}

void elf_debug_find(struct fr_elf *e)
{
	struct identity wanted = {0};

	if (e->debug_tried)
		return;
	e->debug_tried = true;
	read_build_id(e->elf, &wanted);
	read_link(e->elf, &wanted);
	if (wanted.id_len && find_by_build_id(e, &wanted))
		return;
	if (wanted.link[0])
		(void)find_by_link(e, &wanted);
}
