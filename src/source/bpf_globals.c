// SPDX-License-Identifier: GPL-2.0-or-later
/* The globals of an object, found by its BTF. All of that is the object's word: every step is checked. */
#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/units.h"
#include "source/bpf_object_private.h"

#include <bpf/btf.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

struct global {
	const char *name;
	uint8_t *at; /* its initial value, in the map's */
	size_t size;
	const struct btf_type *type; /* without qualifiers and typedefs */
};

static const struct btf_type *skip_modifiers(const struct btf *btf, uint32_t id)
{
	const struct btf_type *t = btf__type_by_id(btf, id);

	for (int i = 0; t && i < 32; i++) {
		if (!btf_is_mod(t) && !btf_is_typedef(t))
			return t;
		t = btf__type_by_id(btf, t->type);
	}
	return NULL;
}

static bool is_data(const char *section)
{
	return section && (!strncmp(section, ".rodata", 7) || !strncmp(section, ".data", 5) ||
				  !strncmp(section, ".bss", 4));
}

/* The variable VSI of the section whose initial values are DATA: 0, or -EINVAL where it is none that can be
   set. */
static int variable(const struct btf *btf, const struct btf_var_secinfo *vsi, uint8_t *data, size_t size,
	struct global *ret)
{
	const struct btf_type *var = btf__type_by_id(btf, vsi->type);

	if (!var || !btf_is_var(var) || vsi->offset > size || vsi->size > size - vsi->offset)
		return -EINVAL;
	*ret = (struct global){.name = btf__name_by_offset(btf, var->name_off),
		.at = data + vsi->offset,
		.size = vsi->size,
		.type = skip_modifiers(btf, var->type)};
	return ret->name && *ret->name && ret->type ? 0 : -EINVAL;
}

/* Call FN for each global until it returns other than 0, which is returned. */
static int each_global(const struct fr_bpf_object *o, int (*fn)(void *ctx, const struct global *g), void *ctx)
{
	const struct btf *btf = bpf_object__btf(o->libbpf);
	uint32_t n = btf ? btf__type_cnt(btf) : 0;

	for (uint32_t i = 1; i < n; i++) {
		const struct btf_type *t = btf__type_by_id(btf, i);
		const char *section = t && btf_is_datasec(t) ? btf__name_by_offset(btf, t->name_off) : NULL;
		struct bpf_map *map =
			is_data(section) ? bpf_object__find_map_by_name(o->libbpf, section) : NULL;
		size_t size = 0;
		void *data = map ? (void *)bpf_map__initial_value(map, &size) : NULL;

		for (uint16_t j = 0; data && j < btf_vlen(t); j++) {
			struct global g;
			int r = variable(btf, btf_var_secinfos(t) + j, data, size, &g);

			r = r < 0 ? 0 : fn(ctx, &g);
			if (r)
				return r;
		}
	}
	return 0;
}

struct lookup {
	const char *name;
	struct global *ret;
};

static int is_named(void *ctx, const struct global *g)
{
	const struct lookup *l = ctx;

	if (strcmp(l->name, g->name) != 0)
		return 0;
	*l->ret = *g;
	return 1;
}

static int find(const struct fr_bpf_object *o, const char *name, struct global *ret)
{
	struct lookup l = {name, ret};

	return each_global(o, is_named, &l) == 1 ? 0 : -ENOENT;
}

int fr_bpf_object_get(const struct fr_bpf_object *o, const char *name, void *ret, size_t size)
{
	struct global g = {0};
	int r = find(o, name, &g);

	if (r < 0)
		return r;
	if (g.size != size)
		return -EINVAL;
	memcpy(ret, g.at, size);
	return 0;
}

int fr_bpf_object_set(struct fr_bpf_object *o, const char *name, const void *value, size_t size)
{
	struct global g = {0};
	int r = find(o, name, &g);

	if (r < 0)
		return r;
	if (g.size != size)
		return -EINVAL;
	memcpy(g.at, value, size);
	return 0;
}

/* Bits of an integer; 0: it is none. */
static unsigned integer_bits(const struct global *g, bool *ret_signed)
{
	bool integer = btf_is_int(g->type) || btf_is_enum(g->type) || btf_is_enum64(g->type);

	if (!integer || (g->size != 1 && g->size != 2 && g->size != 4 && g->size != 8))
		return 0;
	*ret_signed = btf_is_int(g->type) ? btf_int_encoding(g->type) & BTF_INT_SIGNED : btf_kflag(g->type);
	return (unsigned)g->size * 8;
}

static void store(const struct global *g, uint64_t value)
{
	const uint8_t v8 = (uint8_t)value;
	const uint16_t v16 = (uint16_t)value;
	const uint32_t v32 = (uint32_t)value;
	const void *from = g->size == 1	  ? (const void *)&v8
			   : g->size == 2 ? (const void *)&v16
			   : g->size == 4 ? (const void *)&v32
					  : (const void *)&value;

	memcpy(g->at, from, g->size);
}

int fr_bpf_object_set_number(struct fr_bpf_object *o, const char *name, uint64_t value)
{
	bool is_signed = false;
	struct global g = {0};
	unsigned bits;
	int r = find(o, name, &g);

	if (r < 0)
		return r;
	bits = integer_bits(&g, &is_signed);
	bits -= bits && is_signed;
	if (!bits || (bits < 64 && value >> bits))
		return -EINVAL;
	store(&g, value);
	return 0;
}

/* TEXT as a number of BITS: -EINVAL: it is none, -ERANGE: it does not fit. */
static int parse_number(const char *text, unsigned bits, bool is_signed, uint64_t *ret)
{
	const char *digits = text + (*text == '-');
	char *end;

	if (!isdigit((unsigned char)*digits))
		return -EINVAL;
	errno = 0;
	if (*text == '-') {
		int64_t v = strtoll(text, &end, 0);

		if (*end)
			return -EINVAL;
		if (errno || !is_signed || v < (int64_t)(UINT64_MAX << (bits - 1)))
			return -ERANGE;
		*ret = (uint64_t)v;
		return 0;
	}
	*ret = strtoull(text, &end, 0);
	if (*end)
		return -EINVAL;
	bits -= is_signed;
	return errno || (bits < 64 && *ret >> bits) ? -ERANGE : 0;
}

static int assign_number(const struct global *g, const char *text, struct fr_diag *d)
{
	bool is_signed = false, boolean = btf_is_int(g->type) && btf_int_encoding(g->type) & BTF_INT_BOOL;
	unsigned bits = integer_bits(g, &is_signed);
	uint64_t value;
	int r;

	if (boolean) {
		r = fr_boolean_parse(text);
		value = r > 0;
		if (r < 0)
			return fr_fail(d, -EINVAL, "yes or no", "'%s' is no value for '%s'", text, g->name);
	} else {
		r = parse_number(text, bits, is_signed, &value);
		if (r < 0)
			return fr_fail(d, -EINVAL, "give a number that the variable can hold",
				r == -ERANGE ? "'%s' does not fit into '%s', %s%u bits"
					     : "'%s' is no number for '%s', %s%u bits",
				text, g->name, is_signed ? "signed " : "", bits);
	}
	store(g, value);
	return 0;
}

static bool is_text(const struct btf *btf, const struct global *g)
{
	const struct btf_type *element =
		btf_is_array(g->type) ? skip_modifiers(btf, btf_array(g->type)->type) : NULL;

	return element && btf_is_int(element) && element->size == 1 && g->size > 0;
}

static int assign_text(const struct global *g, const char *text, struct fr_diag *d)
{
	size_t len = strlen(text);

	if (len >= g->size)
		return fr_fail(d, -EINVAL, "give a shorter text",
			"'%s' is too long for '%s', which takes %zu characters", text, g->name, g->size - 1);
	memset(g->at, 0, g->size);
	memcpy(g->at, text, len);
	return 0;
}

static bool is_ours(const char *name)
{
	return strncmp(name, "flightrec_", 10) == 0;
}

struct nearest {
	const struct btf *btf;
	const char *wanted;
	unsigned limit;
	const char *near;
	char all[256]; /* "a, b, c" */
};

static int consider(void *ctx, const struct global *g)
{
	struct nearest *n = ctx;
	size_t len = strlen(n->all);
	unsigned distance;
	bool is_signed;

	if (is_ours(g->name) || (!integer_bits(g, &is_signed) && !is_text(n->btf, g)))
		return 0;
	snprintf(n->all + len, sizeof(n->all) - len, "%s%s", len ? ", " : "", g->name);
	distance = fr_edit_distance(n->wanted, g->name, n->limit);
	if (distance <= n->limit) {
		n->limit = distance;
		n->near = g->name;
	}
	return 0;
}

static int no_such_global(const struct fr_bpf_object *o, const char *name, struct fr_diag *d)
{
	struct nearest n = {.btf = bpf_object__btf(o->libbpf), .wanted = name, .limit = 3};
	char hint[320];

	each_global(o, consider, &n);
	if (n.near)
		snprintf(hint, sizeof(hint), "did you mean %s?", n.near);
	else if (n.all[0])
		snprintf(hint, sizeof(hint), "it has: %s", n.all);
	else
		snprintf(hint, sizeof(hint), "it has none that can be set");
	return fr_fail(d, -EINVAL, hint, "%s has no global '%s'", o->label, name);
}

int fr_bpf_object_assign(struct fr_bpf_object *o, const char *assignment, struct fr_diag *d)
{
	const char *equals = strchr(assignment, '=');
	bool is_signed;
	struct global g = {0};
	char name[128];

	if (!equals || equals == assignment || (size_t)(equals - assignment) >= sizeof(name))
		return fr_fail(d, -EINVAL, "write Set=NAME=VALUE", "Set=%s names no global and its value",
			assignment);
	snprintf(name, sizeof(name), "%.*s", (int)(equals - assignment), assignment);
	if (is_ours(name))
		return fr_fail(d, -EINVAL, "Threshold=, Pid=, Comm=, CGroup= and Cooldown= set those",
			"'%s' is not for Set=", name);
	if (find(o, name, &g) < 0)
		return no_such_global(o, name, d);
	if (is_text(bpf_object__btf(o->libbpf), &g))
		return assign_text(&g, equals + 1, d);
	if (!integer_bits(&g, &is_signed))
		return fr_fail(d, -EINVAL, "Set= takes integers and char[]",
			"the global '%s' of %s is neither a number nor a string", name, o->label);
	return assign_number(&g, equals + 1, d);
}
