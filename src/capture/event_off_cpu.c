// SPDX-License-Identifier: GPL-2.0-or-later
/* The event "offcpu" of a specification, which becomes two events: flightrec:offcpu and flightrec:waker. */
#include "capture/event_internal.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "bpf/sleep.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static int fail_term(const struct fr_spec *s, const char *term, struct fr_diag *d)
{
	return fr_fail(d, -EINVAL, NULL,
		"event %s has no term \"%s\"; it has: threshold, max-stack, call-graph, enabled, name",
		s->text, term);
}

static int check_common_terms(const struct fr_spec *s, const struct fr_term_values *v, struct fr_diag *d)
{
	if (v->period || v->freq)
		return fail_term(s, v->period ? "period" : "freq", d);
	if (v->overwrite || v->no_inherit)
		return fail_term(s, v->overwrite ? "overwrite" : "inherit", d);
	if (v->has_config[0] || v->has_config[1] || v->has_config[2])
		return fail_term(s, "config", d);
	if (v->call_graph && v->call_graph != FR_CALL_GRAPH_UNWIND && v->call_graph != FR_CALL_GRAPH_NO)
		return fr_fail(d, -EINVAL, "use call-graph=unwind or call-graph=no",
			"event %s: this event has no other call graph", s->text);
	if (*s->modifiers)
		return fr_fail(d, -EINVAL, "leave them out", "event %s takes no modifiers", s->text);
	return 0;
}

int fr_off_cpu_threshold_parse(const char *text, uint64_t *ret_ns)
{
	const size_t len = strlen(text);
	uint64_t ns;
	int r = len && isdigit((unsigned char)text[len - 1]) ? -EINVAL : fr_duration_parse(text, &ns);

	if (r < 0)
		return r;
	if (ns < FR_OFF_CPU_MIN_NS || ns > FR_OFF_CPU_MAX_NS)
		return -ERANGE;
	*ret_ns = ns;
	return 0;
}

static int parse_threshold(const struct fr_spec *s, uint64_t *ret, struct fr_diag *d)
{
	*ret = FR_OFF_CPU_DEFAULT_NS;
	for (size_t i = 0; i < s->terms.n; i++) {
		const struct fr_term *t = &s->terms.items[i];

		if (strcmp(t->name, "threshold") != 0)
			return fail_term(s, t->name, d);
		if (!t->value || fr_off_cpu_threshold_parse(t->value, ret) < 0)
			return fr_fail(d, -EINVAL,
				"write it with its unit, as threshold=500us or threshold=1ms: from 1us to 1h",
				"event %s: the threshold is not valid", s->text);
	}
	return 0;
}

static bool has_off_cpu(const struct fr_event_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		if (list->items[i].off_cpu)
			return true;
	return false;
}

static int add(const struct fr_spec *s, const struct fr_term_values *v, enum fr_off_cpu_kind which,
	uint64_t threshold_ns, struct fr_event_list *list)
{
	static const char *const names[] = {"flightrec:offcpu", "flightrec:waker"};
	const bool is_waker = which == FR_OFF_CPU_WAKER;
	_cleanup_event_ struct fr_event e = {.off_cpu = which, .threshold_ns = threshold_ns, .off = v->off};
	struct perf_event_attr *a = &e.attr;

	fr_event_attr_init(a);
	a->type = PERF_TYPE_TRACEPOINT;
	a->config = is_waker ? FR_WAKER_TRACEPOINT : FR_SLEEP_TRACEPOINT;
	a->sample_period = 1;
	a->inherit = 0;
	a->sample_type |= PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW;
	a->sample_max_stack = (__u16)v->max_stack;
	if (v->call_graph != FR_CALL_GRAPH_NO)
		a->sample_type |= PERF_SAMPLE_CALLCHAIN;
	if (!v->name)
		e.name = strdup(names[is_waker]);
	else if (asprintf(&e.name, "%s%s", v->name, is_waker ? "-waker" : "") < 0)
		e.name = NULL;
	return e.name ? fr_event_list_add(list, &e) : -ENOMEM;
}

int fr_off_cpu_parse(const struct fr_spec *s, const struct fr_term_values *v, struct fr_event_list *list,
	struct fr_diag *d)
{
	uint64_t threshold_ns = 0;
	int r = check_common_terms(s, v, d);

	if (r == 0)
		r = parse_threshold(s, &threshold_ns, d);
	if (r == 0 && has_off_cpu(list))
		r = fr_fail(d, -EINVAL, "give it once", "there is a second event offcpu");
	if (r == 0)
		r = add(s, v, FR_OFF_CPU_SLEEP, threshold_ns, list);
	return r < 0 ? r : add(s, v, FR_OFF_CPU_WAKER, threshold_ns, list);
}

int fr_event_add_off_cpu(uint64_t threshold_ns, struct fr_event_list *list)
{
	const struct fr_spec s = {.text = "offcpu", .modifiers = ""};
	const struct fr_term_values v = {0};
	int r;

	if (has_off_cpu(list))
		return 0;
	r = add(&s, &v, FR_OFF_CPU_SLEEP, threshold_ns, list);
	return r < 0 ? r : add(&s, &v, FR_OFF_CPU_WAKER, threshold_ns, list);
}
