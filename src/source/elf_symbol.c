// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Finds a function in .symtab; else in .dynsym; else, if the file has no .symtab, in .symtab of its debug
 * file.
 *
 * If a global symbol and static symbols have the same name, the global symbol is found. If .dynsym has
 * several versions of a symbol, only the default version is found, as by the linker. If several static
 * functions have the same name, a person selects one of them with symbol@file.c.
 */
#include "source/elf_symbol_private.h"
#include "base/cleanup.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NAME_SIZE 4096
#define LOCALS_SHOWN 4

/* The wanted symbol, and the result of the search. */
struct search {
	char name[NAME_SIZE];
	const char *file; /* the file name after '@'; NULL: any */
	uint64_t into;	  /* the number of +0xOFFSET */

	bool found, global;
	GElf_Sym symbol; /* valid if found */
	size_t n_locals; /* number of static functions with the name, at different addresses; `locals` has the
			    first ones */
	struct {
		uint64_t address;
		const char *file;
	} locals[LOCALS_SHOWN];
	bool imported, data; /* imported: a table has the name as an import; data: a table has it as data */
	struct elf_near near;
};

struct table {
	Elf *elf;
	Elf_Data *symbols, *versions; /* versions: NULL if there is no table of versions */
	struct elf_strings names;
	size_t n;
};

static bool open_table(Elf *elf, uint32_t type, struct table *ret)
{
	GElf_Shdr h;
	Elf_Scn *section = elf_section_find(elf, type, NULL, &h);

	*ret = (struct table){.elf = elf, .symbols = elf_section_data(section, ELF_TABLE_MAX)};
	if (!ret->symbols || !elf_read_strings(elf, h.sh_link, &ret->names))
		return false;
	ret->n = ret->symbols->d_size / sizeof(Elf64_Sym);
	if (type == SHT_DYNSYM)
		ret->versions =
			elf_section_data(elf_section_find(elf, SHT_GNU_versym, NULL, NULL), ELF_TABLE_MAX);
	return true;
}

static bool is_old_version(const struct table *t, size_t i)
{
	GElf_Versym version;

	return t->versions && gelf_getversym(t->versions, (int)i, &version) && (version & 0x8000);
}

/* Returns whether the name `have` is equal to `wanted`, or has the form "WANTED@@VERSION" (names in the
   .symtab of a library). */
static bool is_same_name(const char *have, const char *wanted)
{
	size_t len = strlen(wanted);

	return !strncmp(have, wanted, len) && (!have[len] || !strncmp(have + len, "@@", 2));
}

static void add_static(struct search *s, const GElf_Sym *symbol, const char *file)
{
	for (size_t i = 0; i < FR_MIN(s->n_locals, (size_t)LOCALS_SHOWN); i++)
		if (s->locals[i].address == symbol->st_value)
			return;
	if (s->n_locals < LOCALS_SHOWN) {
		s->locals[s->n_locals].address = symbol->st_value;
		s->locals[s->n_locals].file = file;
	}
	s->n_locals++;
}

static void add_symbol(struct search *s, const GElf_Sym *symbol, const char *file)
{
	bool global = GELF_ST_BIND(symbol->st_info) != STB_LOCAL;

	if (symbol->st_shndx == SHN_UNDEF) {
		s->imported = true;
		return;
	}
	if (GELF_ST_TYPE(symbol->st_info) != STT_FUNC && GELF_ST_TYPE(symbol->st_info) != STT_NOTYPE &&
		GELF_ST_TYPE(symbol->st_info) != STT_GNU_IFUNC) {
		s->data = true;
		return;
	}
	if (!global && s->file && (!file || strcmp(file, s->file)))
		return;
	if (!global)
		add_static(s, symbol, file);
	if (s->found && (s->global || !global))
		return;
	s->found = true;
	s->global = global;
	s->symbol = *symbol;
}

static void search_table(struct search *s, const struct table *t)
{
	const char *file = NULL;
	GElf_Sym symbol;

	for (size_t i = 1; i < t->n && gelf_getsym(t->symbols, (int)i, &symbol); i++) {
		const char *name = elf_string(&t->names, symbol.st_name);

		if (!name || !*name)
			continue;
		if (GELF_ST_TYPE(symbol.st_info) == STT_FILE)
			file = name;
		else if (is_same_name(name, s->name) && !is_old_version(t, i))
			add_symbol(s, &symbol, GELF_ST_BIND(symbol.st_info) == STB_LOCAL ? file : NULL);
	}
}

/* Searches for a similar name, for an error message. This takes a long time. */
static void search_near(struct search *s, const struct table *t)
{
	GElf_Sym symbol;

	s->near.wanted = s->name;
	for (size_t i = 1; i < t->n && gelf_getsym(t->symbols, (int)i, &symbol); i++) {
		const char *name = elf_string(&t->names, symbol.st_name);

		if (name && GELF_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_shndx != SHN_UNDEF)
			elf_near_consider(&s->near, name);
	}
}

static int parse(const char *text, struct search *s, struct fr_diag *d)
{
	char *plus, *at, *end;

	if (!*text || strlen(text) >= sizeof(s->name))
		return fr_fail(d, -EINVAL, "write it as /path/to/binary:symbol",
			"a symbol's name is missing, or too long");
	snprintf(s->name, sizeof(s->name), "%s", text);
	plus = strrchr(s->name, '+');
	if (plus) {
		errno = 0;
		s->into = strtoull(plus + 1, &end, 0);
		if (errno || end == plus + 1 || *end || plus[1] == '-')
			return fr_fail(d, -EINVAL, "write for example symbol+0x1c", "not an offset: \"%s\"",
				plus + 1);
		*plus = '\0';
	}
	at = strchr(s->name, '@');
	if (at && !strcmp(at, "@plt"))
		return fr_fail(d, -EINVAL,
			"name the library that has the function (ldd lists the libraries); Pid= or CGroup= "
			"limits the calls to some processes",
			"%s is a jump to a library's function, not a function", s->name);
	/* "@@" begins a version, not a file name. */
	if (at && at[1] != '@' && at[1]) {
		s->file = at + 1;
		*at = '\0';
	}
	return 0;
}

/* Lists in RET the libraries that ELF needs, and returns RET. */
static const char *list_libraries(Elf *elf, char *ret, size_t size)
{
	struct elf_strings names;
	GElf_Shdr h;
	const Elf_Data *data = elf_section_data(elf_section_find(elf, SHT_DYNAMIC, NULL, &h), ELF_NOTES_MAX);
	size_t len = 0;

	ret[0] = '\0';
	if (!data || !elf_read_strings(elf, h.sh_link, &names))
		return ret;
	for (size_t i = 0; i < data->d_size / sizeof(Elf64_Dyn) && len < size; i++) {
		const Elf64_Dyn *dyn = (const Elf64_Dyn *)data->d_buf + i;
		const char *name = dyn->d_tag == DT_NEEDED ? elf_string(&names, dyn->d_un.d_val) : NULL;

		if (dyn->d_tag == DT_NULL)
			break;
		if (name)
			len += (size_t)snprintf(ret + len, size - len, "%s%s", len ? ", " : "", name);
	}
	return ret;
}

static int explain_missing(struct fr_elf *e, struct search *s, bool has_symtab, struct fr_diag *d)
{
	char text[512], hint[512];

	if (s->imported) {
		snprintf(hint, sizeof(hint),
			"name one of its libraries: %.300s; Pid= or CGroup= limits the calls to some "
			"processes",
			list_libraries(e->elf, text, 300));
		return fr_fail(d, -EINVAL, hint, "%s only imports %.200s", e->path, s->name);
	}
	if (s->data)
		return fr_fail(d, -EINVAL, "name a function; nm shows functions as T or t",
			"%.200s of %s is data, not a function", s->name, e->path);
	text[0] = '\0';
	if (s->near.name[0])
		snprintf(text, sizeof(text), "did you mean %s?", s->near.name);
	if (has_symtab || e->debug) {
		snprintf(hint, sizeof(hint), "%.200s%snm %.200s lists all names, with mangled names of C++",
			text, *text ? " " : "", e->debug && e->debug_path ? e->debug_path : e->path);
		return fr_fail(d, -ENOENT, hint, "%s has no function %.200s%s%.100s", e->path, s->name,
			s->file ? " of " : "", s->file ? s->file : "");
	}
	snprintf(hint, sizeof(hint),
		"%.200s%sinstall its debug symbols (Debian: the -dbgsym package, else -debuginfo)%s%.150s",
		text, *text ? " " : "", e->debug_path ? ": " : "", e->debug_path ? e->debug_path : "");
	return fr_fail(d, -ENOENT, hint,
		"%s is stripped, without a debug file, and exports no function %.200s", e->path, s->name);
}

static int explain_several(const struct fr_elf *e, const struct search *s, struct fr_diag *d)
{
	char text[300] = "";
	size_t len = 0;

	for (size_t i = 0; i < FR_MIN(s->n_locals, (size_t)LOCALS_SHOWN) && len < sizeof(text); i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%.40s@%.60s (0x%" PRIx64 ")",
			i ? ", " : "", s->name, s->locals[i].file ? s->locals[i].file : "?",
			s->locals[i].address);
	return fr_fail(d, -ENOTUNIQ, "name one of them as symbol@file.c",
		"%s has %zu static functions %.100s: %s", e->path, s->n_locals, s->name, text);
}

/* Converts the symbol that was found to an offset in the file. */
static int locate(
	const struct fr_elf *e, const struct search *s, struct fr_elf_symbol *ret, struct fr_diag *d)
{
	uint64_t address;

	if (!s->global && s->n_locals > 1)
		return explain_several(e, s, d);
	if (GELF_ST_TYPE(s->symbol.st_info) == STT_GNU_IFUNC)
		return fr_fail(d, -EINVAL, "name the function that is called; nm and perf report show it",
			"%.200s of %s is an IFUNC: it runs once, when the program starts, and chooses the "
			"function that is called",
			s->name, e->path);
	if (s->into && s->into >= s->symbol.st_size)
		return fr_fail(d, -EINVAL, "give a smaller offset",
			"%.200s of %s is only 0x%" PRIx64 " bytes long", s->name, e->path, s->symbol.st_size);
#if defined(__aarch64__)
	if (s->into % 4)
		return fr_fail(d, -EINVAL, NULL, "there is no instruction at +0x%" PRIx64, s->into);
#endif
	ret->into = s->into;
	if (__builtin_add_overflow(s->symbol.st_value, s->into, &address) ||
		!elf_file_offset(e->elf, address, PF_X, &ret->offset))
		return fr_fail(d, -EBADMSG, NULL, "%s has no code at the address of %.200s, 0x%" PRIx64,
			e->path, s->name, s->symbol.st_value);
	return 0;
}

int fr_elf_find_symbol(struct fr_elf *e, const char *text, struct fr_elf_symbol *ret, struct fr_diag *d)
{
	_cleanup_free_ struct search *s = calloc(1, sizeof(*s));
	struct table tables[3];
	bool has_symtab;
	size_t n = 0;
	int r;

	if (!s)
		return fr_fail(d, -ENOMEM, NULL, "no memory to look up a symbol");
	r = parse(text, s, d);
	if (r < 0)
		return r;
	has_symtab = open_table(e->elf, SHT_SYMTAB, &tables[0]);
	n += has_symtab;
	n += open_table(e->elf, SHT_DYNSYM, &tables[n]);
	for (size_t i = 0; i < n && !s->found; i++)
		search_table(s, &tables[i]);
	if (!s->found && !has_symtab) {
		elf_debug_find(e);
		if (e->debug && open_table(e->debug, SHT_SYMTAB, &tables[n]))
			search_table(s, &tables[n++]);
	}
	if (s->found)
		return locate(e, s, ret, d);
	for (size_t i = 0; i < n; i++)
		search_near(s, &tables[i]);
	return explain_missing(e, s, has_symtab, d);
}
