// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/elf.h"
#include "base/cleanup.h"
#include "report/debuginfod.h"
#include "report/inlines.h"

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <string.h>

#define LOADS_MAX 64
#define PLT_ENTRY 16u /* bytes of an entry on x86-64 */

struct fr_elf {
	Dwfl *dwfl;
	Dwfl_Module *module;
	GElf_Phdr loads[LOADS_MAX];
	size_t n_loads;
	GElf_Addr bias; /* of the main file: address of libdw minus address in the file */
	struct fr_inlines *inlines;
	bool has_read_inlines;
};

struct fr_elf *fr_elf_free(struct fr_elf *e)
{
	if (!e)
		return NULL;
	fr_inlines_free(e->inlines);
	if (e->dwfl)
		dwfl_end(e->dwfl);
	free(e);
	return NULL;
}

static void read_loads(struct fr_elf *e, Elf *elf)
{
	size_t n = 0;

	if (elf_getphdrnum(elf, &n) < 0)
		return;
	for (size_t i = 0; i < n && e->n_loads < LOADS_MAX; i++)
		if (gelf_getphdr(elf, (int)i, &e->loads[e->n_loads]) &&
			e->loads[e->n_loads].p_type == PT_LOAD)
			e->n_loads++;
}

int fr_elf_open(int fd, const char *name, struct fr_elf **ret)
{
	static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
		.section_address = dwfl_offline_section_address};
	struct fr_elf *e = calloc(1, sizeof(*e));
	Elf *elf;

	if (!e) {
		close(fd);
		return -ENOMEM;
	}
	e->dwfl = dwfl_begin(&callbacks);
	if (!e->dwfl) {
		close(fd);
		free(e);
		return -ENOMEM;
	}
	fr_debuginfod_limit(dwfl_get_debuginfod_client(e->dwfl));
	dwfl_report_begin(e->dwfl);
	e->module = dwfl_report_offline(e->dwfl, name, name, fd); /* takes over FD if it succeeds */
	if (!e->module)
		close(fd);
	dwfl_report_end(e->dwfl, NULL, NULL);
	elf = e->module ? dwfl_module_getelf(e->module, &e->bias) : NULL;
	if (!elf) {
		fr_elf_free(e);
		return -EBADMSG;
	}
	read_loads(e, elf);
	*ret = e;
	return 0;
}

/* Translates an address of the file to an offset in it. Returns false if no segment has the address. */
static bool find_offset(const struct fr_elf *e, GElf_Addr address, uint64_t *ret)
{
	for (size_t i = 0; i < e->n_loads; i++)
		if (address >= e->loads[i].p_vaddr && address - e->loads[i].p_vaddr < e->loads[i].p_memsz) {
			*ret = address - e->loads[i].p_vaddr + e->loads[i].p_offset;
			return true;
		}
	return false;
}

static bool is_in_code(Elf *elf, GElf_Word section)
{
	GElf_Shdr header;
	Elf_Scn *scn = elf_getscn(elf, section);

	return scn && gelf_getshdr(scn, &header) && header.sh_flags & SHF_EXECINSTR;
}

/* Returns whether SYM of ELF is code with a name: a function, or a label of assembler code. */
static bool is_code(Elf *elf, const GElf_Sym *sym, GElf_Word section, const char *name)
{
	const int type = GELF_ST_TYPE(sym->st_info), visibility = GELF_ST_VISIBILITY(sym->st_other);

	if (!name || !*name || sym->st_shndx == SHN_UNDEF)
		return false;
	if (type == STT_FUNC || type == STT_GNU_IFUNC)
		return true;
	return type == STT_NOTYPE && sym->st_shndx != SHN_ABS && visibility != STV_HIDDEN &&
	       visibility != STV_INTERNAL && is_in_code(elf, section);
}

static Elf_Scn *find_section(Elf *elf, const char *wanted, GElf_Shdr *ret)
{
	size_t names;

	if (elf_getshdrstrndx(elf, &names) < 0)
		return NULL;
	for (Elf_Scn *scn = elf_nextscn(elf, NULL); scn; scn = elf_nextscn(elf, scn)) {
		const char *name = gelf_getshdr(scn, ret) ? elf_strptr(elf, names, ret->sh_name) : NULL;

		if (name && strcmp(name, wanted) == 0)
			return scn;
	}
	return NULL;
}

/* Adds "NAME@plt" for the entry at OFFSET, by which the file calls the function of a relocation. */
static int add_plt_entry(Elf *elf, Elf_Scn *dynsym, const GElf_Rela *rela, uint64_t offset, struct fr_symbols *s)
{
	_cleanup_free_ char *text = NULL;
	GElf_Shdr header;
	GElf_Sym sym;
	Elf_Data *data = elf_getdata(dynsym, NULL);
	const char *name = NULL;

	if (data && gelf_getshdr(dynsym, &header) && gelf_getsym(data, (int)GELF_R_SYM(rela->r_info), &sym))
		name = elf_strptr(elf, header.sh_link, sym.st_name);
	if (!name || !*name)
		return 0;
	if (asprintf(&text, "%s@plt", name) < 0)
		return -ENOMEM;
	return fr_symbols_add(s, offset, PLT_ENTRY, false, true, text, strlen(text));
}

/* The entries of the procedure linkage table have no symbols. They are in the order of their relocations. The first
   entry of .plt is of the linker itself; if there is a section .plt.sec, it has the entries that programs call. */
static int add_plt(Elf *elf, struct fr_symbols *s)
{
	GElf_Shdr relocations, plt, dynsym_header;
	Elf_Scn *scn = find_section(elf, ".rela.plt", &relocations), *dynsym = find_section(elf, ".dynsym", &dynsym_header);
	Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;
	uint64_t offset;
	int r = 0;

	if (!data || !dynsym)
		return 0;
	if (find_section(elf, ".plt.sec", &plt))
		offset = plt.sh_offset;
	else if (find_section(elf, ".plt", &plt))
		offset = plt.sh_offset + PLT_ENTRY;
	else
		return 0;
	for (int i = 0; r == 0; i++, offset += PLT_ENTRY) {
		GElf_Rela rela;

		if (!gelf_getrela(data, i, &rela) || offset - plt.sh_offset >= plt.sh_size)
			break;
		r = add_plt_entry(elf, dynsym, &rela, offset, s);
	}
	return r;
}

int fr_elf_add_symbols(struct fr_elf *e, struct fr_symbols *s)
{
	GElf_Addr bias;
	Elf *main_file = dwfl_module_getelf(e->module, &bias);
	const int n = dwfl_module_getsymtab(e->module);
	int r = 0;

	for (int i = 1; i < n && r == 0; i++) {
		GElf_Addr address;
		GElf_Sym sym;
		GElf_Word section;
		uint64_t offset;
		Elf *elf;
		const char *name = dwfl_module_getsym_info(e->module, i, &sym, &address, &section, &elf, NULL);
		const int binding = GELF_ST_BIND(sym.st_info);

		if (!name || !is_code(elf, &sym, section, name) || !find_offset(e, address - e->bias, &offset))
			continue;
		r = fr_symbols_add(s, offset, sym.st_size, binding == STB_WEAK, binding == STB_GLOBAL, name,
			strlen(name));
	}
	return r == 0 && main_file ? add_plt(main_file, s) : r;
}

int fr_elf_find_inlined(struct fr_elf *e, uint64_t offset, const char **ret, size_t max)
{
	if (!e->has_read_inlines) {
		e->has_read_inlines = true;
		if (fr_inlines_new(e->module, &e->inlines) == -ENOMEM)
			return -ENOMEM;
	}
	for (size_t i = 0; e->inlines && i < e->n_loads; i++)
		if (offset >= e->loads[i].p_offset && offset - e->loads[i].p_offset < e->loads[i].p_filesz)
			return fr_inlines_find(
				e->inlines, offset - e->loads[i].p_offset + e->loads[i].p_vaddr + e->bias, ret, max);
	return 0;
}
