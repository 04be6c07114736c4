// SPDX-License-Identifier: GPL-2.0-or-later
/* Gets and sets the global variables of an object. The object's BTF describes the variables. It is possible
   that the BTF is wrong, so every step is checked. */
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
	uint8_t *at; /* address of its initial value, in memory of libbpf */
	size_t size;
	const struct btf_type *type; /* the type without qualifiers and typedefs */
};

static const struct btf_type *resolve_type(const struct btf *btf, uint32_t id)
{
	const int resolved = btf__resolve_type(btf, id);

	return resolved < 0 ? NULL : btf__type_by_id(btf, (uint32_t)resolved);
}

static bool is_data(const char *section)
{
	return section && (!strncmp(section, ".rodata", 7) || !strncmp(section, ".data", 5) ||
				  !strncmp(section, ".bss", 4));
}

/* Describes in RET the variable VSI of a section. DATA are the initial values of the section. Returns false
   if the BTF of the variable is wrong. */
static bool describe_variable(const struct btf *btf, const struct btf_var_secinfo *vsi, uint8_t *data,
	size_t size, struct global *ret)
{
	const struct btf_type *var = btf__type_by_id(btf, vsi->type);

	if (!var || !btf_is_var(var) || vsi->offset > size || vsi->size > size - vsi->offset)
		return false;
	*ret = (struct global){.name = btf__name_by_offset(btf, var->name_off),
		.at = data + vsi->offset,
		.size = vsi->size,
		.type = resolve_type(btf, var->type)};
	return ret->name && *ret->name && ret->type;
}

/* The globals that a message suggests when a person has given a wrong name. */
struct suggestion {
	unsigned distance;
	const char *nearest; /* the most similar name; NULL: none is similar */
	char all[256];	     /* "a, b, c" */
};
static void add_suggestion(
	struct suggestion *s, const struct btf *btf, const char *wanted, const struct global *g);

/* Finds the global NAME. Returns 0; or -ENOENT. On -ENOENT, S (NULL is allowed) has the names of the globals
   that a person can set. */
static int find_global(
	const struct fr_bpf_object *o, const char *name, struct global *ret, struct suggestion *s)
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
			if (!describe_variable(btf, btf_var_secinfos(t) + j, data, size, ret))
				continue;
			if (!strcmp(name, ret->name))
				return 0;
			if (s)
				add_suggestion(s, btf, name, ret);
		}
	}
	return -ENOENT;
}

static int find_sized_global(const struct fr_bpf_object *o, const char *name, size_t size, struct global *ret)
{
	int r = find_global(o, name, ret, NULL);

	return r == 0 && ret->size != size ? -EINVAL : r;
}

int fr_bpf_object_get(const struct fr_bpf_object *o, const char *name, void *ret, size_t size)
{
	struct global g = {0};
	int r = find_sized_global(o, name, size, &g);

	if (r == 0)
		memcpy(ret, g.at, size);
	return r;
}

int fr_bpf_object_set(struct fr_bpf_object *o, const char *name, const void *value, size_t size)
{
	struct global g = {0};
	int r = find_sized_global(o, name, size, &g);

	if (r == 0)
		memcpy(g.at, value, size);
	return r;
}

/* Returns the number of bits of the integer G; or 0 if G is not an integer. */
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
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	value <<= 64 - 8 * g->size;
#endif
	memcpy(g->at, &value, g->size);
}

int fr_bpf_object_set_number(struct fr_bpf_object *o, const char *name, uint64_t value)
{
	bool is_signed = false;
	struct global g = {0};
	unsigned bits;
	int r = find_global(o, name, &g, NULL);

	if (r < 0)
		return r;
	bits = integer_bits(&g, &is_signed);
	bits -= bits && is_signed;
	if (!bits || (bits < 64 && value >> bits))
		return -EINVAL;
	store(&g, value);
	return 0;
}

/* Parses a number. Returns 0; -EINVAL if TEXT is not a number; -ERANGE if the number does not fit
   into BITS bits. */
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
	bool is_signed = false, is_bool = btf_is_int(g->type) && btf_int_encoding(g->type) & BTF_INT_BOOL;
	unsigned bits = integer_bits(g, &is_signed);
	uint64_t value;
	int r;

	if (is_bool) {
		r = fr_boolean_parse(text);
		value = r > 0;
		if (r < 0)
			return fr_fail(
				d, -EINVAL, "give yes or no", "'%s' is not a value for '%s'", text, g->name);
	} else {
		r = parse_number(text, bits, is_signed, &value);
		if (r < 0)
			return fr_fail(d, -EINVAL, "give a number that fits into the variable",
				r == -ERANGE ? "'%s' does not fit into '%s', %s%u bits"
					     : "'%s' is not a number for '%s', %s%u bits",
				text, g->name, is_signed ? "signed " : "", bits);
	}
	store(g, value);
	return 0;
}

static bool is_text(const struct btf *btf, const struct global *g)
{
	const struct btf_type *element =
		btf_is_array(g->type) ? resolve_type(btf, btf_array(g->type)->type) : NULL;

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

static bool is_abi_global(const char *name)
{
	return strncmp(name, "flightrec_", 10) == 0;
}

static void add_suggestion(
	struct suggestion *s, const struct btf *btf, const char *wanted, const struct global *g)
{
	size_t len = strlen(s->all);
	unsigned distance;
	bool is_signed;

	if (is_abi_global(g->name) || (!integer_bits(g, &is_signed) && !is_text(btf, g)))
		return;
	snprintf(s->all + len, sizeof(s->all) - len, "%s%s", len ? ", " : "", g->name);
	distance = fr_edit_distance(wanted, g->name, s->distance);
	if (distance <= s->distance) {
		s->distance = distance;
		s->nearest = g->name;
	}
}

static int explain_missing(
	const struct fr_bpf_object *o, const char *name, const struct suggestion *s, struct fr_diag *d)
{
	char hint[320];

	if (s->nearest)
		snprintf(hint, sizeof(hint), "did you mean %s?", s->nearest);
	else
		snprintf(hint, sizeof(hint), "it has: %s", s->all[0] ? s->all : "no global that can be set");
	return fr_fail(d, -EINVAL, hint, "%s has no global '%s'", o->label, name);
}

int fr_bpf_object_assign(struct fr_bpf_object *o, const char *assignment, struct fr_diag *d)
{
	const char *equals = strchr(assignment, '=');
	struct suggestion s = {.distance = 3};
	struct global g = {0};
	bool is_signed;
	char name[128];

	if (!equals || equals == assignment || (size_t)(equals - assignment) >= sizeof(name))
		return fr_fail(d, -EINVAL, "write Set=NAME=VALUE",
			"Set=%s does not name a global and its value", assignment);
	snprintf(name, sizeof(name), "%.*s", (int)(equals - assignment), assignment);
	if (is_abi_global(name))
		return fr_fail(d, -EINVAL, "use Threshold=, Pid=, Comm=, CGroup= or Cooldown=",
			"Set= cannot set '%s', a global of the trigger ABI", name);
	if (find_global(o, name, &g, &s) < 0)
		return explain_missing(o, name, &s, d);
	if (is_text(bpf_object__btf(o->libbpf), &g))
		return assign_text(&g, equals + 1, d);
	if (!integer_bits(&g, &is_signed))
		return fr_fail(d, -EINVAL, "use Set= only for integers and char[]",
			"the global '%s' of %s is neither a number nor a string", name, o->label);
	return assign_number(&g, equals + 1, d);
}
