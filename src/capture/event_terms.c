// SPDX-License-Identifier: GPL-2.0-or-later
/* Terms between slashes that every event takes, and the modifiers behind it (perf-list(1)). */
#include "capture/event_internal.h"
#include "base/cleanup.h"
#include "base/units.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

const char fr_common_terms[] =
	"period, freq, call-graph, stack-size, max-stack, overwrite, no-overwrite, inherit, "
	"no-inherit, name, config, config1, config2";

int fr_terms_split(char *text, struct fr_terms *ret, struct fr_diag *d)
{
	char *save = NULL, *eq;

	ret->n = 0;
	for (char *t = strtok_r(text, ",", &save); t; t = strtok_r(NULL, ",", &save)) {
		if (ret->n == FR_TERMS_MAX)
			return fr_fail(d, -EINVAL, "leave out those that you do not need",
				"more than %u terms", FR_TERMS_MAX);
		eq = strchr(t, '=');
		if (eq)
			*eq = 0;
		if (!*t)
			return fr_fail(d, -EINVAL, "a term is name or name=value", "a term without a name");
		ret->items[ret->n].name = t;
		ret->items[ret->n++].value = eq ? eq + 1 : NULL;
	}
	return 0;
}

/* Decimal or 0x…; -EINVAL, -ERANGE. */
static int number(const char *s, uint64_t max, uint64_t *ret)
{
	char *end;

	if (!s || *s < '0' || *s > '9')
		return -EINVAL;
	errno = 0;
	*ret = strtoull(s, &end, 0);
	if (*end)
		return -EINVAL;
	return errno || *ret > max ? -ERANGE : 0;
}

static int term_number(const struct fr_term *t, uint64_t min, uint64_t max, uint64_t *ret, struct fr_diag *d)
{
	uint64_t v;
	int r = number(t->value, max, &v);

	if (r < 0 || v < min)
		return fr_fail(d, -EINVAL, "give a number, or leave the term out",
			"the term %s takes a number from %llu to %llu, not \"%s\"", t->name,
			(unsigned long long)min, (unsigned long long)max, t->value ? t->value : "");
	*ret = v;
	return 0;
}

static int term_flag(const struct fr_term *t, bool *ret, struct fr_diag *d)
{
	uint64_t v = 1;
	int r = t->value ? term_number(t, 0, 1, &v, d) : 0;

	if (r == 0)
		*ret = v;
	return r;
}

static int term_call_graph(const struct fr_term *t, struct fr_term_values *v, struct fr_diag *d)
{
	struct fr_event_defaults g = {0};
	int r = fr_call_graph_parse(t->value ? t->value : "fp", &g, d);

	if (r == 0)
		v->call_graph = g.call_graph;
	return r;
}

/* 1: taken; 0: not one of ours. */
static int term_take(const struct fr_term *t, struct fr_term_values *v, struct fr_diag *d)
{
	static const char *const configs[] = {"config", "config1", "config2"};
	uint64_t n = 0;
	bool flag = false;
	int r;

	for (size_t i = 0; i < FR_ARRAY_SIZE(configs); i++)
		if (!strcmp(t->name, configs[i])) {
			v->has_config[i] = true;
			return (r = term_number(t, 0, UINT64_MAX, &v->config[i], d)) < 0 ? r : 1;
		}
	if (!strcmp(t->name, "period"))
		return (r = term_number(t, 1, INT64_MAX, &v->period, d)) < 0 ? r : 1;
	if (!strcmp(t->name, "freq"))
		return (r = term_number(t, 1, INT64_MAX, &v->freq, d)) < 0 ? r : 1;
	if (!strcmp(t->name, "call-graph"))
		return (r = term_call_graph(t, v, d)) < 0 ? r : 1;
	if (!strcmp(t->name, "stack-size")) {
		r = term_number(t, 8, UINT16_MAX - 7, &n, d);
		v->stack_bytes = n;
		return r < 0 ? r : 1;
	}
	if (!strcmp(t->name, "max-stack")) {
		r = term_number(t, 1, UINT16_MAX, &n, d);
		v->max_stack = n;
		return r < 0 ? r : 1;
	}
	if (!strcmp(t->name, "overwrite") || !strcmp(t->name, "no-overwrite")) {
		r = term_flag(t, &flag, d);
		v->overwrite = flag == (t->name[0] == 'o');
		return r < 0 ? r : 1;
	}
	if (!strcmp(t->name, "inherit") || !strcmp(t->name, "no-inherit")) {
		r = term_flag(t, &flag, d);
		v->no_inherit = flag == (t->name[0] == 'n');
		return r < 0 ? r : 1;
	}
	if (!strcmp(t->name, "name")) {
		if (!t->value || !*t->value)
			return fr_fail(d, -EINVAL, "write it as name=TEXT", "the term name takes a name");
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
		/* "call-graph=dwarf,16384": the comma that --call-graph has also ends a term. */
		if (after_dwarf && !t->items[i].value && number(t->items[i].name, UINT16_MAX - 7, &n) == 0 &&
			n >= 8) {
			v->stack_bytes = n;
			after_dwarf = false;
			continue;
		}
		r = term_take(&t->items[i], v, d);
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

static int modifier_error(const char *modifiers, const char *spec, struct fr_diag *d)
{
	return fr_fail(d, -EINVAL,
		"modifiers are u (user), k (kernel), h (hypervisor), G (guest), H (host), I (not idle) and "
		"p, pp, ppp "
		"(precise)",
		"event %s: \"%s\" are no modifiers", spec, modifiers);
}

int fr_modifiers_apply(const char *modifiers, const char *spec, struct perf_event_attr *a, struct fr_diag *d)
{
	bool u = false, k = false, h = false, guest = false, host = false, idle = false;
	unsigned precise = 0;

	for (const char *m = modifiers; *m; m++) {
		bool *flag = *m == 'u'	 ? &u
			     : *m == 'k' ? &k
			     : *m == 'h' ? &h
			     : *m == 'G' ? &guest
			     : *m == 'H' ? &host
			     : *m == 'I' ? &idle
					 : NULL;

		if (*m == 'p' && ++precise <= 3)
			continue;
		if (!flag || *flag)
			return modifier_error(modifiers, spec, d);
		*flag = true;
	}
	if (u || k || h) {
		a->exclude_user = !u;
		a->exclude_kernel = !k;
		a->exclude_hv = !h;
	}
	if (guest || host) {
		a->exclude_guest = !guest;
		a->exclude_host = !host;
	}
	a->exclude_idle = idle;
	a->precise_ip = precise;
	return 0;
}
