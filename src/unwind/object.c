// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind/object.h"
#include "unwind/machine.h"
#include "base/cleanup.h"
#include "base/file.h"

#include <dwarf.h>
#include <errno.h>
#include <gelf.h>
#include <sys/stat.h>

/* The largest known sections have about 40 MiB. */
#define SECTION_MAX (64u << 20)
#define NAMES_MAX (1u << 20)

/* libelf allocates memory for the number of sections and segments before it looks whether the file has so
   many. Both numbers can be huge if the fields of the header have the values that mean "see section 0". */
static int check_header(const Elf64_Ehdr *e)
{
	if (memcmp(e->e_ident, ELFMAG, SELFMAG) != 0 || e->e_ident[EI_CLASS] != ELFCLASS64 ||
		e->e_ident[EI_DATA] !=
			(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB))
		return -ENOEXEC;
	if (e->e_machine != CFI_ELF_MACHINE || (e->e_type != ET_EXEC && e->e_type != ET_DYN))
		return -ENOEXEC;
	if (e->e_phnum == PN_XNUM || (e->e_shnum == 0 && e->e_shoff != 0))
		return -ENOEXEC;
	return 0;
}

static int read_segments(struct unwind_object *o)
{
	GElf_Phdr p;
	size_t n;

	if (elf_kind(o->elf) != ELF_K_ELF || elf_getphdrnum(o->elf, &n) != 0)
		return -ENOEXEC;
	for (int i = 0; (size_t)i < n && o->n_ranges < UNWIND_RANGES_MAX; i++) {
		struct cfi_range *range = &o->ranges[o->n_ranges];

		if (!gelf_getphdr(o->elf, i, &p))
			return -ENOEXEC;
		if (p.p_type != PT_LOAD || !(p.p_flags & PF_X))
			continue;
		range->begin = p.p_vaddr;
		if (!__builtin_add_overflow(p.p_vaddr, p.p_memsz, &range->end))
			o->n_ranges++;
	}
	return 0;
}

/* Takes ELF and IMAGE. */
static int begin(Elf *elf, void *image, struct unwind_object *ret)
{
	struct unwind_object o = {.elf = elf, .image = image};
	int r = elf ? read_segments(&o) : -ENOEXEC;

	if (r < 0)
		unwind_object_close(&o);
	else
		*ret = o;
	return r;
}

int unwind_object_open(int fd, struct unwind_object *ret)
{
	Elf64_Ehdr header;
	struct stat st;
	ssize_t n;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOEXEC;
	n = fr_pread_all(fd, &header, sizeof(header), 0);
	if (n < 0)
		return (int)n;
	r = n == sizeof(header) ? check_header(&header) : -ENOEXEC;
	if (r < 0)
		return r;
	elf_version(EV_CURRENT);
	return begin(elf_begin(fd, ELF_C_READ, NULL), NULL, ret);
}

int unwind_object_open_image(const void *image, size_t len, struct unwind_object *ret)
{
	Elf64_Ehdr header;
	char *copy;
	int r;

	if (len < sizeof(header))
		return -ENOEXEC;
	memcpy(&header, image, sizeof(header));
	r = check_header(&header);
	if (r < 0)
		return r;
	/* libelf writes to the image when it decompresses a section. */
	copy = malloc(len);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, image, len);
	elf_version(EV_CURRENT);
	return begin(elf_memory(copy, len), copy, ret);
}

void unwind_object_close(struct unwind_object *o)
{
	elf_end(o->elf);
	free(o->image);
	*o = (struct unwind_object){0};
}

/* Finds the section with the names of all sections. libelf reads the whole section, so its size is checked.
 */
static bool find_names(const struct unwind_object *o, size_t *ret)
{
	GElf_Shdr header;
	Elf_Scn *s;

	if (elf_getshdrstrndx(o->elf, ret) != 0)
		return false;
	s = elf_getscn(o->elf, *ret);
	return s && gelf_getshdr(s, &header) && header.sh_size <= NAMES_MAX;
}

static Elf_Scn *find_section(const struct unwind_object *o, const char *name, GElf_Shdr *ret)
{
	size_t names;

	if (!find_names(o, &names))
		return NULL;
	for (Elf_Scn *s = elf_nextscn(o->elf, NULL); s; s = elf_nextscn(o->elf, s)) {
		const char *found = gelf_getshdr(s, ret) ? elf_strptr(o->elf, names, ret->sh_name) : NULL;

		if (found && strcmp(found, name) == 0 && ret->sh_type != SHT_NOBITS)
			return s;
	}
	return NULL;
}

/* Decompresses a section in place. Returns 0, -E2BIG or -ENOEXEC. */
static int decompress(Elf_Scn *s)
{
	GElf_Chdr c;

	if (!gelf_getchdr(s, &c))
		return -ENOEXEC;
	if (c.ch_size > SECTION_MAX)
		return -E2BIG;
	return elf_compress(s, 0, 0) < 0 ? -ENOEXEC : 0;
}

static int read_section(const struct unwind_object *o, const char *name, struct cfi_section *ret)
{
	GElf_Shdr header;
	Elf_Scn *s = find_section(o, name, &header);
	const Elf_Data *data;
	int r;

	if (!s)
		return 1;
	if (header.sh_size > SECTION_MAX)
		return -E2BIG;
	if (header.sh_flags & SHF_COMPRESSED) {
		r = decompress(s);
		if (r < 0)
			return r;
	}
	data = elf_getdata(s, NULL);
	if (!data)
		return -ENOEXEC;
	if (!data->d_buf || data->d_size == 0)
		return 1;
	*ret = (struct cfi_section){.data = data->d_buf, .len = data->d_size, .address = header.sh_addr};
	return 0;
}

/* Reads the bytes from ADDRESS to the end of its segment, but at most SECTION_MAX bytes. */
static int read_memory(const struct unwind_object *o, uint64_t address, struct cfi_section *ret)
{
	const Elf_Data *data;
	GElf_Phdr p;

	for (int i = 0; gelf_getphdr(o->elf, i, &p); i++) {
		uint64_t at = address - p.p_vaddr;

		if (p.p_type != PT_LOAD || address < p.p_vaddr || at >= p.p_filesz ||
			p.p_offset > INT64_MAX - at)
			continue;
		data = elf_getdata_rawchunk(o->elf, (int64_t)(p.p_offset + at),
			FR_MIN(p.p_filesz - at, (uint64_t)SECTION_MAX), ELF_T_BYTE);
		if (!data || !data->d_buf)
			return -ENOEXEC;
		*ret = (struct cfi_section){
			.data = data->d_buf, .len = data->d_size, .address = address, .is_unbounded = true};
		return 0;
	}
	return 1;
}

/* Finds .eh_frame by the segment .eh_frame_hdr, whose first member is the address of .eh_frame. Linkers write
   it as 4 bytes relative to the member. */
static int read_by_segment(const struct unwind_object *o, struct cfi_section *ret)
{
	struct cfi_section header;
	GElf_Phdr p;
	int32_t relative;
	int r;

	for (int i = 0; gelf_getphdr(o->elf, i, &p); i++) {
		if (p.p_type != PT_GNU_EH_FRAME)
			continue;
		r = read_memory(o, p.p_vaddr, &header);
		if (r != 0)
			return r;
		if (header.len < 8 || header.data[0] != 1 ||
			header.data[1] != (DW_EH_PE_pcrel | DW_EH_PE_sdata4))
			return 1;
		memcpy(&relative, header.data + 4, sizeof(relative));
		return read_memory(o, p.p_vaddr + 4 + (uint64_t)(int64_t)relative, ret);
	}
	return 1;
}

int unwind_object_eh_frame(const struct unwind_object *o, struct cfi_section *ret)
{
	int r = read_section(o, ".eh_frame", ret);

	return r == 1 ? read_by_segment(o, ret) : r;
}

int unwind_object_debug_frame(const struct unwind_object *o, struct cfi_section *ret)
{
	int r = read_section(o, ".debug_frame", ret);

	if (r == 0)
		ret->is_debug = true;
	return r;
}
