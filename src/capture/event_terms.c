// SPDX-License-Identifier: GPL-2.0-or-later
/* Parses the terms between slashes that every event can have, and the modifiers that can follow an event
   (perf-list(1)). */
#include "capture/event_internal.h"
#include "base/cleanup.h"
#include "base/units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STACK_BYTES_MAX (UINT16_MAX - 7)

const char fr_common_terms[] = "period, freq, call-graph, stack-size, max-stack, capture, enabled, "
			       "overwrite, no-overwrite, inherit, "
			       "no-inherit, name, config, config1, config2";

static const struct {
	const char *name;
	size_t offset; /* offset of a uint64_t in struct fr_term_values */
	uint64_t min, max;
} numbers[] = {
	{"config", offsetof(struct fr_term_values, config[0]), 0, UINT64_MAX},
	{"config1", offsetof(struct fr_term_values, config[1]), 0, UINT64_MAX},
	{"config2", offsetof(struct fr_term_values, config[2]), 0, UINT64_MAX},
	{"period", offsetof(struct fr_term_values, period), 1, INT64_MAX},
	{"freq", offsetof(struct fr_term_values, freq), 1, INT64_MAX},
	{"stack-size", offsetof(struct fr_term_values, stack_bytes), 8, STACK_BYTES_MAX},
	{"max-stack", offsetof(struct fr_term_values, max_stack), 1, UINT16_MAX},
};

static const struct {
	const char *name;
	size_t offset; /* offset of a bool in struct fr_term_values */
	bool value;    /* value of the term without "=" or with "=1" */
} flags[] = {
	{"overwrite", offsetof(struct fr_term_values, overwrite), true},
	{"no-overwrite", offsetof(struct fr_term_values, overwrite), false},
	{"inherit", offsetof(struct fr_term_values, no_inherit), false},
	{"no-inherit", offsetof(struct fr_term_values, no_inherit), true},
};

int fr_terms_split(char *text, struct fr_terms *ret, struct fr_diag *d)
{
	char *save = NULL, *eq;

	ret->n = 0;
	for (char *t = strtok_r(text, ",", &save); t; t = strtok_r(NULL, ",", &save)) {
		if (ret->n == FR_TERMS_MAX)
			return fr_fail(d, -EINVAL, "leave out the terms that you do not need",
				"there are more than %u terms", FR_TERMS_MAX);
		eq = strchr(t, '=');
		if (eq)
			*eq = 0;
		if (!*t)
			return fr_fail(d, -EINVAL, "write a term as name or name=value",
				"there is a term without a name");
		ret->items[ret->n].name = t;
		ret->items[ret->n++].value = eq ? eq + 1 : NULL;
	}
	return 0;
}

bool fr_term_number(const char *s, uint64_t min, uint64_t max, uint64_t *ret)
{
	char *end;

	if (!s || *s < '0' || *s > '9')
		return false;
	errno = 0;
	*ret = strtoull(s, &end, 0);
	return !*end && !errno && *ret >= min && *ret <= max;
}

static int parse_number_term(
	const struct fr_term *t, uint64_t min, uint64_t max, uint64_t *ret, struct fr_diag *d)
{
	if (fr_term_number(t->value, min, max, ret))
		return 0;
	return fr_fail(d, -EINVAL, "give a number, or leave the term out",
		"the term %s takes a number from %llu to %llu, not \"%s\"", t->name, (unsigned long long)min,
		(unsigned long long)max, t->value ? t->value : "");
}

static int parse_capture(const char *value, enum fr_capture_way *ret, struct fr_diag *d)
{
	static const char *const names[] = {
		[FR_CAPTURE_AUTO] = "auto", [FR_CAPTURE_PERF] = "perf", [FR_CAPTURE_BPF] = "bpf"};

	for (unsigned i = 0; i < FR_ARRAY_SIZE(names); i++)
		if (value && !strcmp(value, names[i])) {
			*ret = i;
			return 0;
		}
	return fr_fail(d, -EINVAL, "write capture=bpf, capture=perf or capture=auto",
		"\"%s\" is not a way to capture an event", value ? value : "");
}

static int parse_enabled(const char *value, bool *ret_off, struct fr_diag *d)
{
	const int enabled = value ? fr_boolean_parse(value) : -EINVAL;

	if (enabled < 0)
		return fr_fail(d, -EINVAL,
			"write enabled=no, and `flightrecctl event on` or a trigger switches it on",
			"\"%s\" does not say whether an event is enabled", value ? value : "");
	*ret_off = !enabled;
	return 0;
}

/* If T is a term that every event can have, stores the value of T in V and returns 1. Returns 0 if T is
   another term; or a negative errno, with a message in D. */
static int parse_common_term(const struct fr_term *t, struct fr_term_values *v, struct fr_diag *d)
{
	struct fr_event_defaults call_graph = {0};
	uint64_t n = 1;
	int r = 0;

	for (size_t i = 0; i < FR_ARRAY_SIZE(numbers); i++)
		if (!strcmp(t->name, numbers[i].name)) {
			if (i < FR_ARRAY_SIZE(v->has_config))
				v->has_config[i] = true;
			r = parse_number_term(t, numbers[i].min, numbers[i].max,
				(uint64_t *)((char *)v + numbers[i].offset), d);
			return r < 0 ? r : 1;
		}
	for (size_t i = 0; i < FR_ARRAY_SIZE(flags); i++)
		if (!strcmp(t->name, flags[i].name)) {
			if (t->value)
				r = parse_number_term(t, 0, 1, &n, d);
			*(bool *)((char *)v + flags[i].offset) = flags[i].value == !!n;
			return r < 0 ? r : 1;
		}
	if (!strcmp(t->name, "call-graph")) {
		r = fr_call_graph_parse(t->value ? t->value : "fp", &call_graph, d);
		v->call_graph = call_graph.call_graph;
		return r < 0 ? r : 1;
	}
	if (!strcmp(t->name, "capture")) {
		r = parse_capture(t->value, &v->capture, d);
		return r < 0 ? r : 1;
	}
	if (!strcmp(t->name, "enabled")) {
		r = parse_enabled(t->value, &v->off, d);
		return r < 0 ? r : 1;
	}
	if (!strcmp(t->name, "name")) {
		if (!t->value || !*t->value)
			return fr_fail(d, -EINVAL, "write it as name=TEXT", "the term name has no value");
		v->name = t->value;
		return 1;
	}
	return 0;
}

int fr_terms_common(struct fr_terms *t, const char *spec, struct fr_term_values *v, struct fr_diag *d)
{
	bool after_dwarf = false;
	size_t kept = 0;
	uint64_t n;
	int r;

	for (size_t i = 0; i < t->n; i++) {
		/* The comma in "call-graph=dwarf,16384" has made 16384 a term of its own. */
		if (after_dwarf && !t->items[i].value &&
			fr_term_number(t->items[i].name, 8, STACK_BYTES_MAX, &n)) {
			v->stack_bytes = n;
			after_dwarf = false;
			continue;
		}
		r = parse_common_term(&t->items[i], v, d);
		if (r < 0) {
			fr_diag_prefix(d, "event %s", spec);
			return r;
		}
		after_dwarf = r == 1 && !strcmp(t->items[i].name, "call-graph") &&
			      v->call_graph == FR_CALL_GRAPH_DWARF;
		if (r == 0)
			t->items[kept++] = t->items[i];
	}
	t->n = kept;
	return 0;
}

int fr_modifiers_apply(const char *modifiers, const char *spec, struct perf_event_attr *a, struct fr_diag *d)
{
	enum { USER, KERNEL, HYPERVISOR, GUEST, HOST, NOT_IDLE, N };
	static const char letters[] = "ukhGHI";
	bool has[N] = {false};
	unsigned precise = 0;

	for (const char *m = modifiers; *m; m++) {
		const char *letter = strchr(letters, *m);

		if (*m == 'p' && ++precise <= 3)
			continue;
		if (!letter || has[letter - letters])
			return fr_fail(d, -EINVAL,
				"modifiers are u (user), k (kernel), h (hypervisor), G (guest), H (host), "
				"I (not idle) and p, pp, ppp (precise)",
				"event %s: \"%s\" is not a list of modifiers", spec, modifiers);
		has[letter - letters] = true;
	}
	if (has[USER] || has[KERNEL] || has[HYPERVISOR]) {
		a->exclude_user = !has[USER];
		a->exclude_kernel = !has[KERNEL];
		a->exclude_hv = !has[HYPERVISOR];
	}
	if (has[GUEST] || has[HOST]) {
		a->exclude_guest = !has[GUEST];
		a->exclude_host = !has[HOST];
	}
	a->exclude_idle = has[NOT_IDLE];
	a->precise_ip = precise;
	return 0;
}
