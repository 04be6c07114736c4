// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The ELF object from which a reader takes the names. In .text, the file offset and the address of a function
 * are the same number, so a reader can use either of them.
 *
 *     0        ELF header, one PT_LOAD, one PT_NOTE, the build-id
 *     0x1000   .text; perf map: as large as the memory that it covers, without bytes in the file (NOBITS);
 *              jitdump: the code of each function, one after the other
 *     …        .symtab, .strtab, .shstrtab, section headers
 */

#include "jit/code.h"
#include "base/cleanup.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#define TEXT 0x1000u
#define NOTE_AT (sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Phdr))
#define CODE_ALIGN 16u
#define OBJECT_MAX (256u << 20)

static const char section_names[] = "\0.note.gnu.build-id\0.text\0.symtab\0.strtab\0.shstrtab";
enum { NAME_NOTE = 1, NAME_TEXT = 20, NAME_SYMTAB = 26, NAME_STRTAB = 34, NAME_SHSTRTAB = 42 };
enum { S_NULL, S_NOTE, S_TEXT, S_SYMTAB, S_STRTAB, S_SHSTRTAB, SECTIONS };

struct note {
	Elf64_Nhdr h;
	char name[4];
	uint8_t id[JIT_BUILD_ID_SIZE];
};

/* The ELF header of this program; the linker defines this symbol. The objects get the e_machine of this
   header. */
extern const Elf64_Ehdr __ehdr_start;

/* Sets the offset of each function, and *RET_BASE as jit_object_make() describes it. Returns the size of
   .text. */
static uint64_t set_offsets(struct jit_code *c, uint64_t *ret_base)
{
	uint64_t at = TEXT, base = c->v[0].addr & ~(uint64_t)(TEXT - 1), end = 0;

	for (size_t i = 0; i < c->n; i++) {
		c->v[i].offset = c->is_timed ? at : c->v[i].addr - base + TEXT;
		at += FR_ALIGN_UP(c->v[i].size, CODE_ALIGN);
		end = FR_MAX(end, c->v[i].offset + c->v[i].size);
	}
	*ret_base = c->is_timed ? 0 : base;
	return end - TEXT;
}

static int add_code(const struct jit_code *c, struct fr_buf *b)
{
	int r = fr_buf_append_zero(b, TEXT - b->len);

	for (size_t i = 0; i < c->n && r == 0; i++) {
		r = fr_buf_append_zero(b, c->v[i].offset - b->len);
		if (r == 0)
			r = fr_buf_append(b, c->file.data + c->v[i].code, c->v[i].size);
	}
	return r;
}

static int add_symbols(const struct jit_code *c, struct fr_buf *b)
{
	int r = fr_buf_append_zero(b, FR_ALIGN_UP(b->len, 8) - b->len + sizeof(Elf64_Sym));

	for (size_t i = 0; i < c->n && r == 0; i++) {
		const Elf64_Sym s = {.st_name = c->v[i].name,
			.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			.st_shndx = S_TEXT,
			.st_value = c->v[i].offset,
			.st_size = c->v[i].size};

		r = fr_buf_append(b, &s, sizeof(s));
	}
	return r;
}

/* This is not a cryptographic hash: a process that makes two objects with the same build-id harms only its
   own symbols. */
static void hash_content(const struct fr_buf *b, uint8_t ret[static JIT_BUILD_ID_SIZE])
{
	uint64_t h[2] = {0xcbf29ce484222325ULL, 0x84222325cbf29ce4ULL};
	uint32_t len = (uint32_t)b->len;

	for (size_t i = 0; i < b->len; i++) {
		h[0] = (h[0] ^ b->data[i]) * 0x100000001b3ULL;
		h[1] = (h[1] ^ b->data[i]) * 0x9e3779b97f4a7c15ULL;
		h[1] ^= h[1] >> 29;
	}
	memcpy(ret, h, sizeof(h));
	memcpy(ret + sizeof(h), &len, sizeof(len));
}

static void fill_head(struct fr_buf *b, uint64_t text_size, uint64_t in_file, uint64_t sections_at)
{
	const Elf64_Ehdr e = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
			__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = __ehdr_start.e_machine,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(e),
		.e_shoff = sections_at,
		.e_ehsize = sizeof(e),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 2,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = SECTIONS,
		.e_shstrndx = S_SHSTRTAB,
	};
	const Elf64_Phdr p[2] = {
		{.p_type = PT_LOAD,
			.p_flags = PF_R | PF_X,
			.p_offset = TEXT,
			.p_vaddr = TEXT,
			.p_paddr = TEXT,
			.p_filesz = in_file,
			.p_memsz = text_size,
			.p_align = TEXT},
		{.p_type = PT_NOTE,
			.p_flags = PF_R,
			.p_offset = NOTE_AT,
			.p_vaddr = NOTE_AT,
			.p_paddr = NOTE_AT,
			.p_filesz = sizeof(struct note),
			.p_memsz = sizeof(struct note),
			.p_align = 4},
	};

	memcpy(b->data, &e, sizeof(e));
	memcpy(b->data + sizeof(e), p, sizeof(p));
}

static void fill_note(struct fr_buf *b, uint8_t ret_id[static JIT_BUILD_ID_SIZE])
{
	struct note n = {{sizeof("GNU"), JIT_BUILD_ID_SIZE, NT_GNU_BUILD_ID}, "GNU", {0}};

	hash_content(b, ret_id);
	memcpy(n.id, ret_id, sizeof(n.id));
	memcpy(b->data + NOTE_AT, &n, sizeof(n));
}

static int append_parts(struct jit_code *c, struct fr_buf *b, uint64_t text_size)
{
	Elf64_Shdr s[SECTIONS] = {
		[S_NOTE] = {NAME_NOTE, SHT_NOTE, SHF_ALLOC, NOTE_AT, NOTE_AT, sizeof(struct note), 0, 0, 4,
			0},
		[S_TEXT] = {NAME_TEXT, c->is_timed ? SHT_PROGBITS : SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR,
			TEXT, TEXT, text_size, 0, 0, CODE_ALIGN, 0},
		[S_SYMTAB] = {NAME_SYMTAB, SHT_SYMTAB, 0, 0, 0, 0, S_STRTAB, 1, 8, sizeof(Elf64_Sym)},
		[S_STRTAB] = {NAME_STRTAB, SHT_STRTAB, 0, 0, 0, c->names.len, 0, 0, 1, 0},
		[S_SHSTRTAB] = {NAME_SHSTRTAB, SHT_STRTAB, 0, 0, 0, sizeof(section_names), 0, 0, 1, 0},
	};
	int r = fr_buf_append_zero(b, NOTE_AT + sizeof(struct note));

	if (r == 0 && c->is_timed)
		r = add_code(c, b);
	if (r == 0) {
		s[S_SYMTAB].sh_offset = FR_ALIGN_UP(b->len, 8);
		s[S_SYMTAB].sh_size = (c->n + 1) * sizeof(Elf64_Sym);
		r = add_symbols(c, b);
	}
	s[S_STRTAB].sh_offset = b->len;
	if (r == 0)
		r = fr_buf_append(b, c->names.data, c->names.len);
	s[S_SHSTRTAB].sh_offset = b->len;
	if (r == 0)
		r = fr_buf_append(b, section_names, sizeof(section_names));
	if (r == 0)
		r = fr_buf_append_zero(b, FR_ALIGN_UP(b->len, 8) - b->len);
	if (r < 0)
		return r;
	fill_head(b, text_size, c->is_timed ? text_size : 0, b->len);
	return fr_buf_append(b, s, sizeof(s));
}

int jit_object_make(
	struct jit_code *c, struct fr_buf *ret, uint64_t *ret_base, uint8_t ret_id[static JIT_BUILD_ID_SIZE])
{
	_cleanup_buf_ struct fr_buf b = {0};
	uint64_t text_size = set_offsets(c, ret_base);
	int r;

	if (c->is_timed && text_size > OBJECT_MAX)
		return -EFBIG;
	r = append_parts(c, &b, text_size);
	if (r < 0)
		return r;
	fill_note(&b, ret_id);
	*ret = b;
	b = (struct fr_buf){0};
	return 0;
}
