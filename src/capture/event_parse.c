// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The parser splits a specification at its commas, and each piece into HEAD [/TERMS/] [MODIFIERS]. HEAD is
 * the name of an event that every kernel has, a PMU, a named event of a core PMU, or a tracepoint.
 */
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
	/* The event of the specification that is being parsed. */
	const struct fr_spec *spec;
	const struct fr_term_values *values;
	size_t found; /* number of events of core PMUs with the name spec->head */
};

/* Makes the name of an event: "cycles" and the modifiers "uk" become "cycles:uk". A term name= replaces the
   whole name. */
static char *make_name(const struct parser *p, const char *base)
{
	const char *m = p->spec->modifiers;
	char *name = NULL;

	if (p->values->name)
		return strdup(p->values->name);
	if (asprintf(&name, "%s%s%s", base, *m ? ":" : "", m) < 0)
		return NULL;
	return name;
}

/* E has its type and its config. Fills the rest of E, and moves E to the list. */
static int add_event(struct parser *p, struct fr_event *e, const char *name)
{
	int r = fr_modifiers_apply(p->spec->modifiers, p->spec->text, &e->attr, p->d);

	if (r < 0)
		return r;
	r = fr_event_attr_finish(e, p->values, p->defaults, p->d);
	if (r < 0) {
		fr_diag_prefix(p->d, "event %s", p->spec->text);
		return r;
	}
	e->name = make_name(p, name);
	r = e->name ? fr_event_list_add(p->list, e) : -ENOMEM;
	if (r == -E2BIG)
		return fr_fail(p->d, -EINVAL, "give fewer events, or patterns that match fewer",
			"more than %u events", FR_EVENTS_MAX);
	return r;
}

static int check_no_other_terms(const struct parser *p)
{
	if (!p->spec->terms.n)
		return 0;
	return fr_fail(p->d, -EINVAL, NULL, "event %s has no term \"%s\"; it has: %s", p->spec->text,
		p->spec->terms.items[0].name, fr_common_terms);
}

static int fail_unknown_event(const struct parser *p, const char *name)
{
	char near[sizeof(p->d->hint)];

	fr_event_suggest(p->env, name, near, sizeof(near));
	return fr_fail(p->d, -ENOENT, *near ? near : "`perf list` shows the events of this machine",
		"there is no event \"%s\"", p->spec->text);
}

static int add_tracepoint(void *ctx, const char *system, const char *name, uint64_t id)
{
	_cleanup_event_ struct fr_event e = {0};

	fr_event_attr_init(&e.attr);
	e.attr.type = PERF_TYPE_TRACEPOINT;
	e.attr.config = id;
	if (asprintf(&e.tracepoint, "%s:%s", system, name) < 0)
		return -ENOMEM;
	return add_event(ctx, &e, e.tracepoint);
}

static int parse_tracepoint(struct parser *p, char *system, char *name)
{
	char whole[512];
	int r = check_no_other_terms(p);

	if (r < 0)
		return r;
	r = fr_tracepoint_match(p->env, system, name, add_tracepoint, p, p->d);
	if (r != 0)
		return r < 0 ? r : 0;
	snprintf(whole, sizeof(whole), "%s:%s", system, name);
	return fail_unknown_event(p, whole);
}

static int parse_pmu(struct parser *p, const char *pmu)
{
	_cleanup_event_ struct fr_event e = {0};
	_cleanup_free_ char *name = NULL;
	int r;

	fr_event_attr_init(&e.attr);
	r = fr_pmu_event(p->env, pmu, &p->spec->terms, &e, p->d);
	if (r < 0) {
		fr_diag_prefix(p->d, "event %s", p->spec->text);
		return r;
	}
	return asprintf(&name, "%s/%s/", pmu, p->spec->terms_text) < 0 ? -ENOMEM : add_event(p, &e, name);
}

/* If EVENT is the wanted name (p->spec->head), and PMU is a core PMU, adds the event. A machine with two
   kinds of cores has two core PMUs, so two events can be added. */
static int try_core_pmu(void *ctx, const char *pmu, const char *event)
{
	struct parser *p = ctx;
	_cleanup_event_ struct fr_event e = {0};
	struct fr_terms terms = {.n = 1};
	int r;

	if (!event || strcmp(event, p->spec->head) != 0 || !fr_pmu_is_core(p->env, pmu))
		return 0;
	terms.items[0].name = p->spec->head;
	for (size_t i = 0; i < p->spec->terms.n && terms.n < FR_TERMS_MAX; i++)
		terms.items[terms.n++] = p->spec->terms.items[i];
	fr_event_attr_init(&e.attr);
	r = fr_pmu_event(p->env, pmu, &terms, &e, p->d);
	if (r < 0)
		return r;
	p->found++;
	return add_event(p, &e, p->spec->head);
}

/* Adds the event with the name `head`, or the events with this name of all core PMUs. Returns 0; 1 if no
   event has this name; or a negative errno, with a message in D. */
static int parse_name(struct parser *p, const char *head)
{
	_cleanup_event_ struct fr_event e = {0};
	char name[160];
	int r;

	fr_event_attr_init(&e.attr);
	if (fr_event_by_name(head, &e.attr.type, (uint64_t *)&e.attr.config, name, sizeof(name))) {
		r = check_no_other_terms(p);
		return r < 0 ? r : add_event(p, &e, name);
	}
	p->found = 0;
	r = fr_pmu_foreach(p->env, try_core_pmu, p);
	return r < 0 || p->found ? r : 1;
}

/* Returns whether S consists of letters that perf uses as modifiers. fr_modifiers_apply() checks the
   modifiers later. */
static bool looks_like_modifiers(const char *s)
{
	return *s && strspn(s, "ukhpPGHISDWeb") == strlen(s);
}

/* "cycles:u" and "sched:sched_switch:k" have modifiers, "sched:sched_switch" has none. */
static void split_off_modifiers(struct fr_spec *s)
{
	char *last = strrchr(s->head, ':'), *first = strchr(s->head, ':'), name[160];
	uint64_t config;
	uint32_t type;

	if (!last)
		return;
	*last = 0;
	if (last != first || !strcmp(s->head, "offcpu") ||
		fr_event_by_name(s->head, &type, &config, name, sizeof(name)) ||
		looks_like_modifiers(last + 1))
		s->modifiers = last + 1;
	else
		*last = ':';
}

static int split_off_terms(struct fr_spec *s, struct fr_diag *d)
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

	/* status and perf show these names. */
	if (!strcmp(s->head, "flightrec:offcpu") || !strcmp(s->head, "flightrec:waker"))
		return fr_fail(p->d, -ENOENT,
			"write offcpu, which records flightrec:offcpu and flightrec:waker",
			"there is no event \"%s\"", s->text);
	if (colon) {
		*colon = 0;
		return parse_tracepoint(p, s->head, colon + 1);
	}
	if (!strcmp(s->head, "offcpu"))
		return fr_off_cpu_parse(s, p->values, p->list, p->d);
	/* If there are slashes, try a PMU first, because a PMU and an event can have the same name. */
	if (s->terms_text && fr_pmu_exists(p->env, s->head))
		return parse_pmu(p, s->head);
	r = parse_name(p, s->head);
	return r == 1 ? fail_unknown_event(p, s->head) : r;
}

static int parse_piece(struct parser *p, char *piece)
{
	_cleanup_free_ char *text = strdup(piece);
	struct fr_term_values values = {0};
	struct fr_spec s = {.text = text, .head = piece, .modifiers = ""};
	int r = 0;

	if (!text)
		return -ENOMEM;
	if (!*piece)
		return fr_fail(p->d, -EINVAL, "`perf list` shows the events of this machine",
			"there is an event without a name");
	if (strchr(piece, '{') || strchr(piece, '}'))
		return fr_fail(p->d, -EINVAL, "list the events without braces",
			"event %s: groups are not supported", text);
	if (strchr(piece, '/'))
		r = split_off_terms(&s, p->d);
	else
		split_off_modifiers(&s);
	if (r == 0)
		r = fr_terms_common(&s.terms, text, &values, p->d);
	p->spec = &s;
	p->values = &values;
	if (r == 0)
		r = parse_head(p, &s);
	p->spec = NULL;
	p->values = NULL;
	free(s.terms_text);
	return r;
}

/* Returns the end of the piece at S: the next comma outside of slashes, or the end of the string. */
static char *find_piece_end(char *s)
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
			"an event specification has more than %u bytes", FR_SPEC_MAX);
	copy = strdup(spec);
	if (!copy)
		return -ENOMEM;
	for (char *s = copy; r == 0; s = end + 1) {
		bool more;

		end = find_piece_end(s);
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

/* Sets the string at OFFSET to a copy of VALUE, in each event that the last fr_event_parse() added. */
static int set_strings(struct fr_event_list *list, size_t offset, const char *value)
{
	for (size_t i = list->last_parsed; i < list->n; i++) {
		char **string = (char **)((char *)&list->items[i] + offset), *copy = strdup(value);

		if (!copy)
			return -ENOMEM;
		free(*string);
		*string = copy;
	}
	return 0;
}

int fr_event_set_origin(struct fr_event_list *list, const char *origin)
{
	return set_strings(list, offsetof(struct fr_event, origin), origin);
}

int fr_event_set_filter(struct fr_event_list *list, const char *filter, struct fr_diag *d)
{
	if (list->last_parsed >= list->n)
		return fr_fail(
			d, -EINVAL, "give the filter after its event", "there is a filter without an event");
	for (size_t i = list->last_parsed; i < list->n; i++)
		if (!list->items[i].tracepoint)
			return fr_fail(d, -EINVAL, "only tracepoints can be filtered",
				"event %s takes no filter", list->items[i].name);
	return set_strings(list, offsetof(struct fr_event, filter), filter);
}
