// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/elf.h"
#include "base/cleanup.h"
#include "report/find_object.h"
#include "report/inlines.h"
#include "sideband/buildid.h"

#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
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
	const struct fr_object_places *places;
	const char *recorded; /* the path of the object in the recording */
	bool is_searching;    /* find_debug() runs */
	struct debug {
		struct fr_elf_debug file;
		char link[NAME_MAX + 1];
		uint8_t build_id[FR_BUILD_ID_MAX];
	} debug[FR_ELF_N_DEBUG];
};

struct fr_elf *fr_elf_free(struct fr_elf *e)
{
	if (!e)
		return NULL;
	fr_inlines_free(e->inlines);
	if (e->dwfl)
		dwfl_end(e->dwfl);
	for (size_t i = 0; i < FR_ELF_N_DEBUG; i++)
		fr_closep(&e->debug[i].file.fd);
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

/* Gets the build-id of the debug file that is searched. Returns its length, or 0. */
static size_t find_debug_id(
	Dwfl_Module *module, enum fr_elf_debug_kind kind, uint8_t ret[static FR_BUILD_ID_MAX])
{
	const unsigned char *id = NULL;
	const void *shared_id = NULL;
	const char *name;
	GElf_Addr address;
	Dwarf_Addr bias;
	Dwarf *dwarf;
	ssize_t len;

	if (kind == FR_ELF_DEBUG) {
		len = dwfl_module_build_id(module, &id, &address);
	} else {
		/* libdw has opened the file that refers to the shared one. */
		dwarf = dwfl_module_getdwarf(module, &bias);
		len = dwarf ? dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &shared_id) : 0;
		id = shared_id;
	}
	len = FR_MIN(len, (ssize_t)FR_BUILD_ID_MAX);
	if (len <= 0 || !id)
		return 0;
	memcpy(ret, id, (size_t)len);
	return (size_t)len;
}

/* Keeps what bundles need to know of the debug file FD. */
static void remember_debug(struct debug *d, int fd, const char *link, const uint8_t *id, size_t id_len)
{
	const char *slash = link ? strrchr(link, '/') : NULL;

	fr_closep(&d->file.fd);
	snprintf(d->link, sizeof(d->link), "%s", slash ? slash + 1 : link ? link : "");
	memcpy(d->build_id, id, id_len);
	d->file = (struct fr_elf_debug){fcntl(fd, F_DUPFD_CLOEXEC, 0), d->link, d->build_id, id_len};
}

/* libdw calls this to find a debug file. FILE_NAME is the file that refers to it. The link to a file that
   several debug files share has no checksum. */
static int find_debug(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
	const char *file_name, const char *link, GElf_Word checksum, char **ret_name)
{
	const enum fr_elf_debug_kind kind = link && checksum == 0 ? FR_ELF_SHARED : FR_ELF_DEBUG;
	struct fr_elf *e = *userdata;
	uint8_t id[FR_BUILD_ID_MAX];
	struct fr_wanted_debug wanted = {.build_id = id,
		.link = link,
		.checksum = checksum,
		.is_shared = kind == FR_ELF_SHARED,
		.object = file_name,
		.recorded = e->recorded};
	int fd;

	if (e->is_searching) /* a hostile link */
		return -1;
	e->is_searching = true;
	wanted.build_id_len = find_debug_id(module, kind, id);
	fd = fr_object_find_debug(e->places, &wanted, ret_name);
	if (fd >= 0)
		remember_debug(&e->debug[kind], fd, link, id, wanted.build_id_len);
	e->is_searching = false;
	return fd < 0 ? -1 : fd;
}

const struct fr_elf_debug *fr_elf_debug(const struct fr_elf *e, enum fr_elf_debug_kind kind)
{
	return e->debug[kind].file.fd >= 0 ? &e->debug[kind].file : NULL;
}

bool fr_elf_bytes(const struct fr_elf *e, const void **ret, size_t *ret_len)
{
	GElf_Addr bias;
	Elf *elf = dwfl_module_getelf(e->module, &bias);

	*ret = elf ? elf_rawfile(elf, ret_len) : NULL;
	return *ret;
}

int fr_elf_open(int fd, const char *name, const char *recorded, const struct fr_object_places *places,
	struct fr_elf **ret)
{
	static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
		.find_debuginfo = find_debug,
		.section_address = dwfl_offline_section_address};
	struct fr_elf *e = calloc(1, sizeof(*e));
	void **userdata;
	Elf *elf;

	if (!e) {
		close(fd);
		return -ENOMEM;
	}
	e->places = places;
	e->recorded = recorded;
	for (size_t i = 0; i < FR_ELF_N_DEBUG; i++)
		e->debug[i].file.fd = -1;
	e->dwfl = dwfl_begin(&callbacks);
	if (!e->dwfl) {
		close(fd);
		free(e);
		return -ENOMEM;
	}
	dwfl_report_begin(e->dwfl);
	e->module = dwfl_report_offline(e->dwfl, name, name, fd); /* takes over FD if it succeeds */
	if (!e->module)
		close(fd);
	dwfl_report_end(e->dwfl, NULL, NULL);
	if (e->module && dwfl_module_info(e->module, &userdata, NULL, NULL, NULL, NULL, NULL, NULL))
		*userdata = e;
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

/* Returns the name of the function that a relocation is for, or NULL. If the function chooses its code when
   the program starts (strlen), the relocation has no symbol, but the address of what chooses: IFUNCS has
   these addresses. */
static const char *relocated_name(
	Elf *elf, Elf_Scn *dynsym, const GElf_Rela *rela, const struct fr_symbols *ifuncs)
{
	const size_t index = GELF_R_SYM(rela->r_info);
	const struct fr_symbol *ifunc;
	GElf_Shdr header;
	GElf_Sym sym;
	Elf_Data *data = elf_getdata(dynsym, NULL);

	if (index == STN_UNDEF) {
		ifunc = fr_symbols_find(ifuncs, (uint64_t)rela->r_addend);
		return ifunc && ifunc->start == (uint64_t)rela->r_addend ? fr_symbols_name(ifuncs, ifunc)
									 : NULL;
	}
	if (!data || !gelf_getshdr(dynsym, &header) || !gelf_getsym(data, (int)index, &sym))
		return NULL;
	return elf_strptr(elf, header.sh_link, sym.st_name);
}

/* Adds "NAME@plt" for the entry at OFFSET, by which the file calls the function NAME. */
static int add_plt_entry(const char *name, uint64_t offset, struct fr_symbols *s)
{
	_cleanup_free_ char *text = NULL;

	if (!name || !*name)
		return 0;
	if (asprintf(&text, "%s@plt", name) < 0)
		return -ENOMEM;
	return fr_symbols_add(s, offset, PLT_ENTRY, false, true, text, strlen(text));
}

/* The entries of the procedure linkage table have no symbols. They are in the order of their relocations. The
   first entry of .plt is of the linker itself; if there is a section .plt.sec, it has the entries that
   programs call. */
static int add_plt(Elf *elf, const struct fr_symbols *ifuncs, struct fr_symbols *s)
{
	GElf_Shdr relocations, plt, dynsym_header;
	Elf_Scn *scn = find_section(elf, ".rela.plt", &relocations),
		*dynsym = find_section(elf, ".dynsym", &dynsym_header);
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
		r = add_plt_entry(relocated_name(elf, dynsym, &rela, ifuncs), offset, s);
	}
	return r;
}

int fr_elf_add_symbols(struct fr_elf *e, struct fr_symbols *s)
{
	GElf_Addr bias;
	Elf *main_file = dwfl_module_getelf(e->module, &bias);
	const int n = dwfl_module_getsymtab(e->module);
	_cleanup_symbols_ struct fr_symbols ifuncs = {0}; /* by address in the file, not by offset */
	int r = 0;

	for (int i = 1; i < n && r == 0; i++) {
		GElf_Addr address;
		GElf_Sym sym;
		GElf_Word section;
		uint64_t offset;
		Elf *elf;
		const char *name =
			dwfl_module_getsym_info(e->module, i, &sym, &address, &section, &elf, NULL);
		const bool is_weak = GELF_ST_BIND(sym.st_info) == STB_WEAK,
			   is_global = GELF_ST_BIND(sym.st_info) == STB_GLOBAL;

		if (!name || !is_code(elf, &sym, section, name) ||
			!find_offset(e, address - e->bias, &offset))
			continue;
		r = fr_symbols_add(s, offset, sym.st_size, is_weak, is_global, name, strlen(name));
		if (r == 0 && GELF_ST_TYPE(sym.st_info) == STT_GNU_IFUNC)
			r = fr_symbols_add(&ifuncs, address - e->bias, sym.st_size, is_weak, is_global, name,
				strlen(name));
	}
	fr_symbols_finish(&ifuncs, false);
	return r == 0 && main_file ? add_plt(main_file, &ifuncs, s) : r;
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
			return fr_inlines_find(e->inlines,
				offset - e->loads[i].p_offset + e->loads[i].p_vaddr + e->bias, ret, max);
	return 0;
}
