// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Checks the references of the types in the section .BTF: to other types, and to names. libbpf 1.1 follows
 * them without a check: it crashes if there is no such type or name, and does not end if a typedef refers to
 * itself. libbpf 1.3 checks ids and names itself.
 *
 * A struct that contains itself is not found. libbpf looks for the size of a struct only if the object has a
 * variable of this type in .kconfig.
 */
#include "base/cleanup.h"
#include "source/bpf_log.h"
#include "source/bpf_object_private.h"

#include <bpf/btf.h>
#include <errno.h>
#include <gelf.h>
#include <string.h>

/* A chain of this number of modifiers and typedefs is refused, as by btf__resolve_type() of libbpf
 * (MAX_RESOLVE_DEPTH). */
#define CHAIN_MAX 32

static bool exists(const struct btf *btf, __u32 id)
{
	return id < btf__type_cnt(btf);
}

static bool has_name(const struct btf *btf, __u32 offset)
{
	return btf__str_by_offset(btf, offset) != NULL;
}

static bool is_link(const struct btf_type *t)
{
	return btf_is_mod(t) || btf_is_typedef(t);
}

/* Returns whether all types and names to which T refers exist. */
static bool is_complete(const struct btf *btf, const struct btf_type *t)
{
	if (!has_name(btf, t->name_off))
		return false;
	switch (btf_kind(t)) {
	case BTF_KIND_ENUM:
		for (__u32 i = 0; i < btf_vlen(t); i++)
			if (!has_name(btf, btf_enum(t)[i].name_off))
				return false;
		return true;
	case BTF_KIND_ENUM64:
		for (__u32 i = 0; i < btf_vlen(t); i++)
			if (!has_name(btf, btf_enum64(t)[i].name_off))
				return false;
		return true;
	case BTF_KIND_INT:
	case BTF_KIND_FLOAT:
	case BTF_KIND_FWD:
		return true; /* T->type is a size, or is not used */
	case BTF_KIND_ARRAY:
		return exists(btf, btf_array(t)->type) && exists(btf, btf_array(t)->index_type);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		for (__u32 i = 0; i < btf_vlen(t); i++)
			if (!exists(btf, btf_members(t)[i].type) ||
				!has_name(btf, btf_members(t)[i].name_off))
				return false;
		return true;
	case BTF_KIND_FUNC_PROTO:
		for (__u32 i = 0; i < btf_vlen(t); i++)
			if (!exists(btf, btf_params(t)[i].type) || !has_name(btf, btf_params(t)[i].name_off))
				return false;
		return exists(btf, t->type);
	case BTF_KIND_DATASEC:
		for (__u32 i = 0; i < btf_vlen(t); i++)
			if (!exists(btf, btf_var_secinfos(t)[i].type))
				return false;
		return true;
	case BTF_KIND_FUNC:
		return exists(btf, t->type) && btf_is_func_proto(btf__type_by_id(btf, t->type));
	default:
		return exists(btf, t->type);
	}
}

/* Returns whether the chain of modifiers and typedefs that begins with T ends. The caller has checked that
   all types of the chain exist. */
static bool chain_ends(const struct btf *btf, const struct btf_type *t)
{
	for (int i = 0; i < CHAIN_MAX; i++) {
		if (!is_link(t))
			return true;
		t = btf__type_by_id(btf, t->type);
	}
	return false;
}

static bool is_sound(const struct btf *btf)
{
	for (__u32 id = 1; exists(btf, id); id++)
		if (!is_complete(btf, btf__type_by_id(btf, id)))
			return false;
	for (__u32 id = 1; exists(btf, id); id++)
		if (!chain_ends(btf, btf__type_by_id(btf, id)))
			return false;
	return true;
}

/* Returns 0; -ENOEXEC if libbpf could crash on the types; or -ENOMEM. Returns 0 also if SECTION is not BTF
   that libbpf can read: libbpf then refuses the object itself. */
static int check_section(Elf_Scn *section)
{
	const Elf_Data *data = elf_getdata(section, NULL);
	struct btf *btf;
	int r;

	if (!data || !data->d_buf)
		return 0;
	btf = btf__new(data->d_buf, (__u32)data->d_size);
	if (!btf)
		return errno == ENOMEM ? -ENOMEM : 0;
	r = is_sound(btf) ? 0 : -ENOEXEC;
	btf__free(btf);
	return r;
}

int fr_bpf_btf_check(const void *bytes, size_t n, const char *label, struct fr_diag *d)
{
	_cleanup_bpf_log_ struct fr_bpf_log log = {0};
	Elf_Scn *section = NULL;
	size_t names;
	Elf *elf;
	int r = 0;

	fr_bpf_log_begin(&log); /* so that libbpf does not print to stderr */
	elf_version(EV_CURRENT);
	elf = elf_memory((char *)bytes, n); /* libelf changes the bytes only in elf_update() */
	if (!elf || elf_getshdrstrndx(elf, &names) < 0) {
		elf_end(elf);
		return 0;
	}
	/* A damaged file can have two such sections. libbpf uses the last of them. */
	while (r == 0 && (section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name =
			gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;

		if (name && strcmp(name, BTF_ELF_SEC) == 0)
			r = check_section(section);
	}
	elf_end(elf);
	if (r == -ENOEXEC)
		return fr_fail(d, r, "compile it again with clang -target bpf -g",
			"%s is damaged: a type in its BTF has an invalid reference", label);
	return r < 0 ? fr_fail_errno(d, r, NULL, "cannot read the BTF of %s", label) : 0;
}
