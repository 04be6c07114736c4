// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/inlines.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "sideband/hash.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <stdlib.h>

#define DEPTH_MAX 64u	       /* nested functions and blocks */
#define RANGES_MAX (1u << 20)  /* of one unit */
#define ENTRIES_MAX (8u << 20) /* entries of debug information that are read of one unit */

/* A part of an inlined function. */
struct range {
	Dwarf_Addr start, end;
	const char *name;
	uint32_t depth; /* 0: inlined into a function that is not inlined */
};

/* A compilation unit. Its key is the place of its entry in the file. */
struct unit {
	UT_hash_handle hh;
	Dwarf_Off offset;
	struct range *ranges;
	size_t n, cap;
};

struct fr_inlines {
	Dwfl_Module *module;
	struct unit *units;
};

int fr_inlines_new(Dwfl_Module *module, struct fr_inlines **ret)
{
	Dwarf_Addr bias;

	if (!dwfl_module_getdwarf(module, &bias))
		return -ENOENT;
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	(*ret)->module = module;
	return 0;
}

static void free_unit(struct unit *u)
{
	free(u->ranges);
	free(u);
}

struct fr_inlines *fr_inlines_free(struct fr_inlines *l)
{
	if (l)
		FR_HASH_CLEAR(l->units, free_unit);
	free(l);
	return NULL;
}

/* Returns the name of the function, or NULL. The linkage name, if there is one, shows the class and the *
   parameters. */
static const char *find_name(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	const char *name = NULL;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr))
		name = dwarf_formstring(&attr);
	if (!name && dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr))
		name = dwarf_formstring(&attr);
	if (!name && dwarf_attr_integrate(die, DW_AT_name, &attr))
		name = dwarf_formstring(&attr);
	return name;
}

static int add_range(struct unit *u, const struct range *range)
{
	if (u->n == u->cap) {
		const size_t cap = u->cap ? 2 * u->cap : 64;
		struct range *v = reallocarray(u->ranges, cap, sizeof(*v));

		if (!v)
			return -ENOMEM;
		u->ranges = v;
		u->cap = cap;
	}
	u->ranges[u->n++] = *range;
	return 0;
}

static int add_function(struct unit *u, Dwarf_Die *die, uint32_t depth)
{
	struct range range = {.name = find_name(die), .depth = depth};
	Dwarf_Addr base;
	ptrdiff_t at = 0;
	int r = 0;

	while (r == 0 && range.name && u->n < RANGES_MAX &&
		(at = dwarf_ranges(die, at, &base, &range.start, &range.end)) > 0)
		r = add_range(u, &range);
	return r;
}

/* Returns whether inlined functions can be inside of an entry with this tag. */
static bool can_contain(int tag)
{
	switch (tag) {
	case DW_TAG_compile_unit:
	case DW_TAG_partial_unit:
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
	case DW_TAG_lexical_block:
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_structure_type: /* Rust and C++: member functions */
	case DW_TAG_class_type:
	case DW_TAG_union_type:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
		return true;
	default:
		return false;
	}
}

/* Reads the entries of a unit, without recursion, because the file decides how deep they are nested. */
static int read_unit(struct unit *u, Dwarf_Die *top)
{
	struct {
		Dwarf_Die die;
		uint32_t inlined; /* how many inlined functions contain its children */
	} stack[DEPTH_MAX];
	size_t depth = 0, n = 0;
	int r = 0;

	stack[0].inlined = 0;
	if (dwarf_child(top, &stack[0].die) != 0)
		return 0;
	while (r == 0 && n++ < ENTRIES_MAX) {
		Dwarf_Die *die = &stack[depth].die;
		const int tag = dwarf_tag(die);
		const bool is_inlined = tag == DW_TAG_inlined_subroutine;

		if (is_inlined)
			r = add_function(u, die, stack[depth].inlined);
		if (depth + 1 < DEPTH_MAX && can_contain(tag) &&
			dwarf_child(die, &stack[depth + 1].die) == 0) {
			stack[depth + 1].inlined = stack[depth].inlined + is_inlined;
			depth++;
			continue;
		}
		while (dwarf_siblingof(&stack[depth].die, &stack[depth].die) != 0)
			if (depth-- == 0)
				return r;
	}
	return r;
}

static int find_unit(struct fr_inlines *l, Dwarf_Die *die, struct unit **ret)
{
	const Dwarf_Off offset = dwarf_dieoffset(die);

	*ret = FR_HASH_FIND(l->units, offset, offset);
	if (*ret)
		return 0;
	*ret = FR_HASH_NEW(l->units, offset, offset);
	return *ret ? read_unit(*ret, die) : -ENOMEM;
}

int fr_inlines_find(struct fr_inlines *l, uint64_t address, const char **ret, size_t max)
{
	Dwarf_Addr bias;
	Dwarf_Die *die = dwfl_module_addrdie(l->module, address, &bias);
	struct unit *u;
	size_t n = 0;
	int r;

	if (!die)
		return 0;
	r = find_unit(l, die, &u);
	if (r < 0)
		return r;
	address -= bias;
	/* The entries of a unit come before the entries inside of them, so this is the order of the
	   depths. */
	for (size_t i = 0; i < u->n && n < max; i++)
		if (address >= u->ranges[i].start && address < u->ranges[i].end && u->ranges[i].depth == n)
			ret[n++] = u->ranges[i].name;
	return (int)n;
}
