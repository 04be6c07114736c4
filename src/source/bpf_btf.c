// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Checks the references between the types in the section .BTF. libbpf 1.1 follows them without a check: it
 * crashes if there is no type with such an id, and does not end if a type refers to itself. Later versions of
 * libbpf check the ids.
 */
#include "base/cleanup.h"
#include "source/bpf_log.h"
#include "source/bpf_object_private.h"

#include <bpf/btf.h>
#include <errno.h>
#include <gelf.h>
#include <string.h>

/* The longest chain of modifiers and typedefs that is accepted. libbpf has the same limit
 * (MAX_RESOLVE_DEPTH). */
#define CHAIN_MAX 32

static bool exists(const struct btf *btf, __u32 id)
{
	return id < btf__type_cnt(btf);
}

static bool is_link(const struct btf_type *t)
{
	return btf_is_mod(t) || btf_is_typedef(t);
}

/* Returns whether all types to which T refers exist. */
static bool refers_to_types(const struct btf *btf, const struct btf_type *t)
{
	switch (btf_kind(t)) {
	case BTF_KIND_INT:
	case BTF_KIND_FLOAT:
	case BTF_KIND_FWD:
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
		return true; /* the member `type` has the size */
	case BTF_KIND_ARRAY:
		return exists(btf, btf_array(t)->type) && exists(btf, btf_array(t)->index_type);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		for (__u32 i = 0; i < btf_vlen(t); i++)
			if (!exists(btf, btf_members(t)[i].type))
				return false;
		return true;
	case BTF_KIND_FUNC_PROTO:
		for (__u32 i = 0; i < btf_vlen(t); i++)
			if (!exists(btf, btf_params(t)[i].type))
				return false;
		return exists(btf, t->type);
	case BTF_KIND_DATASEC:
		for (__u32 i = 0; i < btf_vlen(t); i++)
			if (!exists(btf, btf_var_secinfos(t)[i].type))
				return false;
		return true;
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
		if (!refers_to_types(btf, btf__type_by_id(btf, id)))
			return false;
	for (__u32 id = 1; exists(btf, id); id++)
		if (!chain_ends(btf, btf__type_by_id(btf, id)))
			return false;
	return true;
}

/* Returns true also if SECTION is not BTF that libbpf can read: libbpf then refuses the object itself. */
static bool is_sound_section(Elf_Scn *section)
{
	const Elf_Data *data = elf_getdata(section, NULL);
	struct btf *btf = data && data->d_buf ? btf__new(data->d_buf, (__u32)data->d_size) : NULL;
	const bool sound = !btf || is_sound(btf);

	btf__free(btf);
	return sound;
}

int fr_bpf_btf_check(const void *bytes, size_t n, const char *label, struct fr_diag *d)
{
	_cleanup_bpf_log_ struct fr_bpf_log log = {0};
	Elf_Scn *section = NULL;
	bool sound = true;
	size_t names;
	Elf *elf;

	fr_bpf_log_begin(&log); /* so that libbpf does not print to stderr */
	elf_version(EV_CURRENT);
	elf = elf_memory((char *)bytes, n); /* libelf changes the bytes only in elf_update() */
	if (!elf || elf_getshdrstrndx(elf, &names) < 0) {
		elf_end(elf);
		return 0;
	}
	/* A damaged file can have two such sections. libbpf uses the last of them. */
	while (sound && (section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *name =
			gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : NULL;

		if (name && strcmp(name, BTF_ELF_SEC) == 0)
			sound = is_sound_section(section);
	}
	elf_end(elf);
	return sound ? 0
		     : fr_fail(d, -ENOEXEC, "compile it again with clang -target bpf -g",
			       "%s is damaged: its BTF has a type that refers to a missing type, or to "
			       "itself",
			       label);
}
