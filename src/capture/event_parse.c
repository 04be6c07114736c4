// SPDX-License-Identifier: GPL-2.0-or-later
/* A spec is cut at commas, each piece into HEAD [/TERMS/] [MODIFIERS], and HEAD decides which kind of event
   it is: a name that every kernel has, a PMU, a name of the core PMU's, or a tracepoint. */
#include "capture/event_internal.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const struct fr_event_env fr_event_env_machine = {"/sys/bus/event_source/devices", NULL};

struct parser {
	const struct fr_event_env *env;
	const struct fr_event_defaults *defaults;
	struct fr_event_list *list;
	struct fr_diag *d;
	/* Of the piece at hand. */
	const struct fr_spec *spec;
	const struct fr_term_values *values;
	const char *pmu; /* being searched for a bare event name */
	size_t found;
};

/* "cycles" + "uk" → "cycles:uk"; with name= that alone. */
static char *event_name(const struct parser *p, const char *base)
{
	const char *m = p->spec->modifiers;
	char *name = NULL;

	if (p->values->name)
		return strdup(p->values->name);
	if (asprintf(&name, "%s%s%s", base, *m ? ":" : "", m) < 0)
		return NULL;
	return name;
}

/* E has type and config; the rest, and into the list. Takes what E owns in any case. */
static int add_event(struct parser *p, struct fr_event *e, const char *name)
{
	int r = fr_modifiers_apply(p->spec->modifiers, p->spec->text, &e->attr, p->d);

	if (r == 0) {
		r = fr_event_attr_finish(&e->attr, p->values, p->defaults, p->d);
		if (r < 0)
			fr_diag_prefix(p->d, "event %s", p->spec->text);
	}
	if (r == 0) {
		e->name = event_name(p, name);
		e->overwrite = p->values->overwrite;
		r = e->name ? 0 : -ENOMEM;
	}
	if (r < 0) {
		fr_event_deinit(e);
		return r;
	}
	r = fr_event_list_add(p->list, e);
	if (r == -E2BIG)
		return fr_fail(p->d, -EINVAL, "give fewer, or narrower patterns", "more than %u events",
			FR_EVENTS_MAX);
	return r;
}

static int no_other_terms(const struct parser *p)
{
	if (!p->spec->terms.n)
		return 0;
	return fr_fail(p->d, -EINVAL, NULL, "event %s has no term \"%s\"; there are: %s", p->spec->text,
		p->spec->terms.items[0].name, fr_common_terms);
}

static int unknown_event(const struct parser *p, const char *name)
{
	char near[sizeof(p->d->hint)];

	fr_event_suggest(p->env, name, near, sizeof(near));
	return fr_fail(p->d, -ENOENT, *near ? near : "`perf list` shows the events of this machine",
		"there is no event \"%s\"", p->spec->text);
}

static int add_tracepoint(void *ctx, const char *system, const char *name, uint64_t id)
{
	struct parser *p = ctx;
	struct fr_event e = {0};

	fr_event_attr_init(&e.attr);
	e.attr.type = PERF_TYPE_TRACEPOINT;
	e.attr.config = id;
	if (asprintf(&e.tracepoint, "%s:%s", system, name) < 0)
		return -ENOMEM;
	return add_event(p, &e, e.tracepoint);
}

static int parse_tracepoint(struct parser *p, char *system, char *name)
{
	char whole[512];
	int r = no_other_terms(p);

	if (r < 0)
		return r;
	r = fr_tracepoint_match(p->env, system, name, add_tracepoint, p, p->d);
	if (r != 0)
		return r < 0 ? r : 0;
	snprintf(whole, sizeof(whole), "%s:%s", system, name);
	return unknown_event(p, whole);
}

static int parse_pmu(struct parser *p, const char *pmu)
{
	_cleanup_free_ char *name = NULL;
	struct fr_event e = {0};
	int r;

	fr_event_attr_init(&e.attr);
	r = fr_pmu_event(p->env, pmu, &p->spec->terms, &e, p->d);
	if (r == 0 && asprintf(&name, "%s/%s/", pmu, p->spec->terms_text) < 0)
		r = -ENOMEM;
	if (r < 0) {
		fr_diag_prefix(p->d, "event %s", p->spec->text);
		fr_event_deinit(&e);
		return r;
	}
	return add_event(p, &e, name);
}

/* HEAD as a bare name of a core PMU's event; on a machine with two kinds of cores, of both. */
static int try_core_pmu(void *ctx, const char *pmu, const char *event)
{
	struct parser *p = ctx;
	struct fr_terms terms = {.n = 1};
	struct fr_event e = {0};
	int r;

	if (!event || strcmp(event, p->spec->head) != 0 || !fr_pmu_is_core(p->env, pmu))
		return 0;
	terms.items[0].name = p->spec->head;
	for (size_t i = 0; i < p->spec->terms.n && terms.n < FR_TERMS_MAX; i++)
		terms.items[terms.n++] = p->spec->terms.items[i];
	fr_event_attr_init(&e.attr);
	r = fr_pmu_event(p->env, pmu, &terms, &e, p->d);
	if (r < 0) {
		fr_event_deinit(&e);
		return r;
	}
	p->found++;
	return add_event(p, &e, p->spec->head);
}

static int parse_simple(struct parser *p, const char *head)
{
	struct fr_event e = {0};
	char name[160];
	int r;

	fr_event_attr_init(&e.attr);
	if (fr_event_by_name(head, &e.attr.type, (uint64_t *)&e.attr.config, name, sizeof(name))) {
		r = no_other_terms(p);
		return r < 0 ? r : add_event(p, &e, name);
	}
	p->found = 0;
	r = fr_pmu_foreach(p->env, try_core_pmu, p);
	if (r < 0 || p->found)
		return r;
	return 1;
}

/* Whether S could be the modifiers behind a ':'; what they say is checked later. */
static bool like_modifiers(const char *s)
{
	return *s && strspn(s, "ukhpPGHISDWeb") == strlen(s);
}

/* Cut the modifiers off HEAD: "cycles:u" yes, "sched:sched_switch" no, "sched:sched_switch:k" yes. */
static void cut_modifiers(struct fr_spec *s)
{
	char *last = strrchr(s->head, ':'), *first = strchr(s->head, ':'), name[160];
	uint64_t config;
	uint32_t type;

	if (!last)
		return;
	*last = 0;
	if (last != first || fr_event_by_name(s->head, &type, &config, name, sizeof(name)) ||
		like_modifiers(last + 1))
		s->modifiers = last + 1;
	else
		*last = ':';
}

static int cut_terms(struct fr_spec *s, struct fr_diag *d)
{
	char *open = strchr(s->head, '/'), *close = strrchr(s->head, '/');

	if (!open)
		return 0;
	if (open == close)
		return fr_fail(d, -EINVAL, "write name/term,term=value/modifiers",
			"event %s: the second \"/\" is missing", s->text);
	*open = *close = 0;
	s->modifiers = close[1] == ':' ? close + 2 : close + 1;
	s->terms_text = strdup(open + 1);
	return s->terms_text ? fr_terms_split(open + 1, &s->terms, d) : -ENOMEM;
}

static int parse_head(struct parser *p, struct fr_spec *s)
{
	char *colon = strchr(s->head, ':');
	int r;

	if (colon) {
		*colon = 0;
		return parse_tracepoint(p, s->head, colon + 1);
	}
	/* The PMU first where slashes follow: it may have the name of an event. */
	if (s->terms_text && fr_pmu_exists(p->env, s->head))
		return parse_pmu(p, s->head);
	r = parse_simple(p, s->head);
	return r == 1 ? unknown_event(p, s->head) : r;
}

static int parse_piece(struct parser *p, char *piece)
{
	_cleanup_free_ char *text = strdup(piece);
	struct fr_term_values values = {0};
	struct fr_spec s = {.text = text, .head = piece, .modifiers = ""};
	int r;

	if (!text)
		return -ENOMEM;
	if (!*piece)
		return fr_fail(p->d, -EINVAL, "`perf list` shows the events of this machine",
			"an event without a name");
	if (strchr(piece, '{') || strchr(piece, '}'))
		return fr_fail(p->d, -EINVAL, "list the events without braces",
			"event %s: groups are not supported", text);
	if (strchr(piece, '/')) {
		r = cut_terms(&s, p->d);
	} else {
		cut_modifiers(&s);
		r = 0;
	}
	if (r == 0)
		r = fr_terms_common(&s.terms, text, &values, p->d);
	if (r == 0) {
		p->spec = &s;
		p->values = &values;
		r = parse_head(p, &s);
		p->spec = NULL;
		p->values = NULL;
	}
	free(s.terms_text);
	return r;
}

/* The end of the piece at S: a comma outside slashes, or the end of the string. */
static char *piece_end(char *s)
{
	bool inside = false;

	for (; *s && (inside || *s != ','); s++)
		inside ^= *s == '/';
	return s;
}

static char *trim(char *s)
{
	size_t n;

	s += strspn(s, " \t\n");
	for (n = strlen(s); n && strchr(" \t\n", s[n - 1]); n--)
		s[n - 1] = 0;
	return s;
}

int fr_event_parse_env(const struct fr_event_env *env, const char *spec,
	const struct fr_event_defaults *defaults, struct fr_event_list *list, struct fr_diag *d)
{
	struct parser p = {.env = env, .defaults = defaults, .list = list, .d = d};
	_cleanup_free_ char *copy = NULL;
	size_t before = list->n;
	char *end;
	int r = 0;

	if (strlen(spec) > FR_SPEC_MAX)
		return fr_fail(d, -EINVAL, "give several -e or Events= lines",
			"an event specification of more than %u bytes", FR_SPEC_MAX);
	copy = strdup(spec);
	if (!copy)
		return -ENOMEM;
	for (char *s = copy; r == 0; s = end + 1) {
		bool more;

		end = piece_end(s);
		more = *end == ',';
		*end = 0;
		r = parse_piece(&p, trim(s));
		if (!more)
			break;
	}
	if (r < 0) {
		while (list->n > before)
			fr_event_deinit(&list->items[--list->n]);
		return r;
	}
	list->last_parsed = before;
	return 0;
}

int fr_event_parse(const char *spec, const struct fr_event_defaults *defaults, struct fr_event_list *list,
	struct fr_diag *d)
{
	return fr_event_parse_env(&fr_event_env_machine, spec, defaults, list, d);
}

int fr_event_set_origin(struct fr_event_list *list, const char *origin)
{
	for (size_t i = list->last_parsed; i < list->n; i++) {
		char *copy = strdup(origin);

		if (!copy)
			return -ENOMEM;
		free(list->items[i].origin);
		list->items[i].origin = copy;
	}
	return 0;
}

int fr_event_set_filter(struct fr_event_list *list, const char *filter, struct fr_diag *d)
{
	if (list->last_parsed >= list->n)
		return fr_fail(d, -EINVAL, "put the filter behind its event", "a filter without an event");
	for (size_t i = list->last_parsed; i < list->n; i++)
		if (!list->items[i].tracepoint)
			return fr_fail(d, -EINVAL, "only tracepoints can be filtered",
				"event %s takes no filter", list->items[i].name);
	for (size_t i = list->last_parsed; i < list->n; i++) {
		char *copy = strdup(filter);

		if (!copy)
			return -ENOMEM;
		free(list->items[i].filter);
		list->items[i].filter = copy;
	}
	return 0;
}
