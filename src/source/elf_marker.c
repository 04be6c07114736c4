// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Finds static markers (USDT). In the code, a marker is a nop instruction, which a probe replaces.
 * <sys/sdt.h> writes a note for each marker into the section .note.stapsdt. The note's owner is "stapsdt",
 * its type is 3, and its content is:
 *
 *     u64 address of the nop, u64 address of .stapsdt.base at link time, u64 address of the semaphore or 0,
 *     provider NUL name NUL arguments NUL
 *
 * https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation. libbpf also reads these notes, but
 * cannot list the markers, and fails for some files because it parses the arguments.
 */

#include "source/elf_symbol_private.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define STAPSDT_TYPE 3
#define LABELS_MAX 4096

struct note {
	uint64_t pc, base, semaphore;
	const char *provider, *name;
};

static bool decode(const uint8_t *desc, size_t size, struct note *ret)
{
	uint64_t addresses[3];
	const char *end = (const char *)desc + size, *nul;

	if (size < sizeof(addresses))
		return false;
	memcpy(addresses, desc, sizeof(addresses));
	ret->pc = addresses[0];
	ret->base = addresses[1];
	ret->semaphore = addresses[2];
	ret->provider = (const char *)desc + sizeof(addresses);
	nul = memchr(ret->provider, '\0', (size_t)(end - ret->provider));
	if (!nul)
		return false;
	ret->name = nul + 1;
	return memchr(ret->name, '\0', (size_t)(end - ret->name)) != NULL;
}

/* Reads the next marker after *AT, and advances *AT. Returns whether there was a marker. */
static bool next_note(Elf_Data *data, size_t *at, struct note *ret)
{
	size_t next, name_at, desc_at;
	GElf_Nhdr n;

	while ((next = gelf_getnote(data, *at, &n, &name_at, &desc_at)) > 0) {
		*at = next;
		if (n.n_type == STAPSDT_TYPE && n.n_namesz == sizeof("stapsdt") &&
			!memcmp((char *)data->d_buf + name_at, "stapsdt", sizeof("stapsdt")) &&
			decode((uint8_t *)data->d_buf + desc_at, n.n_descsz, ret))
			return true;
	}
	return false;
}

/* Converts the addresses of N to offsets in the file. Returns false if the addresses are not in the file.
   BASE is the address of .stapsdt.base in this file. The tool prelink moves the code and .stapsdt.base by
   the same distance, but does not change the notes. So the distance is BASE minus the address of
   .stapsdt.base in the note. */
static bool locate(Elf *elf, uint64_t base, const struct note *n, struct fr_elf_marker *ret)
{
	uint64_t moved = base ? base - n->base : 0;

	ret->semaphore = 0;
	return elf_file_offset(elf, n->pc + moved, PF_X, &ret->offset) &&
	       (!n->semaphore || (elf_file_offset(elf, n->semaphore + moved, PF_W, &ret->semaphore) &&
					 /* perf_event_attr.config has only 32 bits for the offset of the
					    semaphore. */
					 ret->semaphore <= UINT32_MAX));
}

static int explain_missing(const struct fr_elf *e, Elf_Data *data, const char *wanted, struct fr_diag *d)
{
	struct elf_near near = {.wanted = wanted};
	char hint[300] = "it has";
	size_t at = 0, len = strlen(hint);
	struct note note;

	for (size_t i = 0; i < LABELS_MAX && next_note(data, &at, &note); i++) {
		char label[130];

		snprintf(label, sizeof(label), "%.64s:%.64s", note.provider, note.name);
		elf_near_consider(&near, label);
		if (i < 3 && len < sizeof(hint))
			len += (size_t)snprintf(
				hint + len, sizeof(hint) - len, "%s %.90s", i ? "," : "", label);
	}
	if (near.name[0])
		snprintf(hint, sizeof(hint), "did you mean %s?", near.name);
	return fr_fail(d, -ENOENT, hint, "%s has no marker %s", e->path, wanted);
}

int fr_elf_find_markers(struct fr_elf *e, const char *provider, const char *name,
	struct fr_elf_marker ret[static FR_ELF_MARKERS_MAX], struct fr_diag *d)
{
	GElf_Shdr h;
	Elf_Data *data =
		elf_section_data(elf_section_find(e->elf, SHT_NOTE, ".note.stapsdt", &h), ELF_NOTES_MAX);
	uint64_t base = elf_section_find(e->elf, SHT_NULL, ".stapsdt.base", &h) ? h.sh_addr : 0;
	char wanted[256];
	struct note note;
	size_t at = 0;
	int n = 0;

	snprintf(wanted, sizeof(wanted), "%.120s:%.120s", provider, name);
	if (!data)
		return fr_fail(d, -ENOENT,
			"build the program with markers of <sys/sdt.h>, or probe any function with Function=",
			"%s has no static markers (USDT)", e->path);
	while (next_note(data, &at, &note)) {
		if (strcmp(note.provider, provider) || strcmp(note.name, name))
			continue;
		if (n == FR_ELF_MARKERS_MAX)
			return fr_fail(d, -E2BIG, NULL, "%s has the marker %s in more than %d places",
				e->path, wanted, FR_ELF_MARKERS_MAX);
		if (!locate(e->elf, base, &note, &ret[n]))
			return fr_fail(d, -EBADMSG, NULL,
				"%s is damaged: the marker %s is not in its program", e->path, wanted);
		n++;
	}
	return n > 0 ? n : explain_missing(e, data, wanted, d);
}
