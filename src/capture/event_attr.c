// SPDX-License-Identifier: GPL-2.0-or-later
/* Completes attrs: adds the fields that all our events record (perfdata/record.h), rates and stacks. */
#include "capture/event_internal.h"
#include "capture/perf_open.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "perfdata/record.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define DEFAULT_HZ 99
#define DEFAULT_STACK_BYTES 8192
/* The largest multiple of 8 that fits into a u16. */
#define STACK_BYTES_MAX (UINT16_MAX & ~7u)

/* All user registers of the architecture's perf_regs.h that can be read at any time. */
#if defined(__x86_64__)
#define USER_REGS 0xff0fffULL /* all except ds, es, fs, gs */
#elif defined(__aarch64__)
#define USER_REGS 0x1ffffffffULL /* x0 … x29, lr, sp, pc */
#else
#define USER_REGS 0ULL
#endif

void fr_event_attr_init(struct perf_event_attr *a)
{
	memset(a, 0, sizeof(*a));
	a->size = sizeof(*a);
	a->sample_type = FR_SAMPLE_TYPE;
	a->read_format = PERF_FORMAT_ID | PERF_FORMAT_LOST;
	a->sample_id_all = 1;
	a->use_clockid = 1;
	a->clockid = CLOCK_MONOTONIC;
	a->disabled = 1;
	a->inherit = 1;
	a->exclude_guest = 1;
	a->watermark = 1;
}

bool fr_event_is_clock(const struct perf_event_attr *a)
{
	return a->type == PERF_TYPE_SOFTWARE &&
	       (a->config == PERF_COUNT_SW_CPU_CLOCK || a->config == PERF_COUNT_SW_TASK_CLOCK);
}

static bool counts_every_event(const struct perf_event_attr *a)
{
	return a->type == PERF_TYPE_TRACEPOINT ||
	       (a->type == PERF_TYPE_SOFTWARE &&
		       (a->config == PERF_COUNT_SW_BPF_OUTPUT || a->config == PERF_COUNT_SW_DUMMY));
}

/* The tracepoints whose events have a weight: a time in nanoseconds (__perf_count() in
   include/trace/events/sched.h). Without PERF_SAMPLE_PERIOD, the kernel writes the sample of one event again
   for each nanosecond, until it throttles the event (perf_swevent_event() in kernel/events/core.c). */
static bool has_weight(const struct fr_event *e)
{
	return e->tracepoint && !strncmp(e->tracepoint, "sched:sched_stat_", strlen("sched:sched_stat_"));
}

static void set_rate(
	struct fr_event *e, const struct fr_term_values *v, const struct fr_event_defaults *defaults)
{
	struct perf_event_attr *a = &e->attr;
	uint64_t period = v->period, freq = v->period ? 0 : v->freq;

	if (!period && !freq)
		period = counts_every_event(a) ? 1 : defaults->period;
	if (!period && !freq)
		freq = defaults->frequency_hz ? defaults->frequency_hz : DEFAULT_HZ;
	if (freq) {
		a->freq = 1;
		a->sample_freq = freq;
	} else {
		a->sample_period = period;
	}
	if (freq || has_weight(e))
		a->sample_type |= PERF_SAMPLE_PERIOD;
}

/* Each sample of a clock is an interrupt of a timer. Too many interrupts leave no time to stop the recording,
   and CPUBudget= lowers only frequencies, not periods. So a period that is too short is an error. */
static int check_clock(const struct perf_event_attr *a, const struct fr_term_values *v,
	const struct fr_event_defaults *defaults, struct fr_diag *d)
{
	if (a->freq || !fr_event_is_clock(a) || a->sample_period >= FR_CLOCK_PERIOD_MIN_NS ||
		(defaults->each && !v->period))
		return 0;
	return fr_fail(d, -EINVAL,
		"the period of a clock is in nanoseconds: give at least 100000, which is 10000 samples a "
		"second, or a frequency",
		"a period of %llu ns is too short for a clock", (unsigned long long)a->sample_period);
}

/* Only events of the CPU have branch records. */
static bool has_branch_records(const struct perf_event_attr *a)
{
	return a->type != PERF_TYPE_SOFTWARE && a->type != PERF_TYPE_TRACEPOINT;
}

/* Returns whether a BPF program can make the samples of E. The kernel's overwritable rings have no BPF ring
   in their place. */
static bool can_unwind(const struct fr_event *e)
{
	return !e->overwrite && e->capture != FR_CAPTURE_PERF &&
	       !(e->attr.type == PERF_TYPE_SOFTWARE && e->attr.config == PERF_COUNT_SW_BPF_OUTPUT);
}

static int set_call_graph(struct fr_event *e, const struct fr_term_values *v,
	const struct fr_event_defaults *defaults, struct fr_diag *d)
{
	struct perf_event_attr *a = &e->attr;
	enum fr_call_graph g = v->call_graph ? v->call_graph : defaults->call_graph;
	uint64_t stack = v->stack_bytes ? v->stack_bytes : defaults->dwarf_stack_bytes;

	if (g == FR_CALL_GRAPH_LBR && !has_branch_records(a)) {
		if (v->call_graph)
			return fr_fail(d, -EINVAL, "use call-graph=unwind, fp or dwarf",
				"only events of the CPU have branch records for call-graph=lbr");
		g = FR_CALL_GRAPH_FP; /* lbr comes from the defaults, not from the terms of this event */
	}
	if (g == FR_CALL_GRAPH_UNSET || g == FR_CALL_GRAPH_NO)
		return 0;

	a->sample_type |= PERF_SAMPLE_CALLCHAIN;
	a->sample_max_stack = v->max_stack;
	e->unwind = g == FR_CALL_GRAPH_UNWIND && can_unwind(e);
	if (g == FR_CALL_GRAPH_LBR) {
		a->sample_type |= PERF_SAMPLE_BRANCH_STACK;
		a->branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_CALL_STACK |
					PERF_SAMPLE_BRANCH_NO_FLAGS | PERF_SAMPLE_BRANCH_NO_CYCLES;
	}
	if (g == FR_CALL_GRAPH_DWARF) {
		if (!USER_REGS)
			return fr_fail(d, -EOPNOTSUPP, "use call-graph=fp",
				"call-graph=dwarf is not known for this architecture");
		a->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		a->sample_regs_user = USER_REGS;
		a->sample_stack_user = FR_ALIGN_UP(stack ? stack : DEFAULT_STACK_BYTES, 8);
		/* perf unwinds the user part of the stack from the copy. */
		a->exclude_callchain_user = 1;
	}
	return 0;
}

int fr_event_attr_finish(struct fr_event *e, const struct fr_term_values *v,
	const struct fr_event_defaults *defaults, struct fr_diag *d)
{
	struct perf_event_attr *a = &e->attr;
	int r;

	for (unsigned i = 0; i < FR_ARRAY_SIZE(v->config); i++)
		if (v->has_config[i])
			*fr_event_attr_config(a, i) = v->config[i];
	a->inherit = !v->no_inherit;
	a->write_backward = e->overwrite = v->overwrite;
	e->capture = v->capture;
	e->off = v->off;
	if (e->capture && a->type != PERF_TYPE_TRACEPOINT)
		return fr_fail(d, -EINVAL, "leave the term out",
			"it is not a tracepoint, so it has no term capture");
	set_rate(e, v, defaults);
	r = check_clock(a, v, defaults, d);
	if (r < 0)
		return r;
	if (a->type == PERF_TYPE_TRACEPOINT ||
		(a->type == PERF_TYPE_SOFTWARE && a->config == PERF_COUNT_SW_BPF_OUTPUT))
		a->sample_type |= PERF_SAMPLE_RAW;
	return set_call_graph(e, v, defaults, d);
}

int fr_call_graph_parse(const char *s, struct fr_event_defaults *ret, struct fr_diag *d)
{
	static const struct {
		const char *name;
		enum fr_call_graph value;
	} kinds[] = {{"fp", FR_CALL_GRAPH_FP}, {"lbr", FR_CALL_GRAPH_LBR}, {"no", FR_CALL_GRAPH_NO},
		{"dwarf", FR_CALL_GRAPH_DWARF}, {"unwind", FR_CALL_GRAPH_UNWIND}};
	uint64_t bytes;

	for (size_t i = 0; i < FR_ARRAY_SIZE(kinds); i++)
		if (!strcmp(s, kinds[i].name)) {
			ret->call_graph = kinds[i].value;
			return 0;
		}
	if (strncmp(s, "dwarf,", 6) != 0)
		return fr_fail(d, -EINVAL, "write unwind, fp, dwarf, dwarf,BYTES, lbr or no",
			"\"%s\" is not a kind of call graph", s);
	if (fr_u64_parse(s + 6, &bytes) < 0 || bytes < 8 || bytes > STACK_BYTES_MAX)
		return fr_fail(d, -EINVAL, "write it as dwarf,8192",
			"the stack of call-graph=dwarf is 8 to %u bytes, not \"%s\"", STACK_BYTES_MAX, s + 6);
	ret->call_graph = FR_CALL_GRAPH_DWARF;
	ret->dwarf_stack_bytes = FR_ALIGN_UP(bytes, 8);
	return 0;
}

/* Returns whether this machine can sample by the event `cycles`. Also returns true if the kernel does not
   permit this process to open the event: fr_capture_open() then fails, and explains the reason. */
static bool has_cycles(void)
{
	struct perf_event_attr a;
	_cleanup_close_ int fd = -1;

	fr_event_attr_init(&a);
	a.sample_freq = DEFAULT_HZ;
	a.freq = 1;
	a.exclude_kernel = 1;
	a.exclude_hv = 1;
	fd = fr_perf_open_adapt(&a, 0, -1, 0);
	return fd != -ENOENT && fd != -ENODEV && fd != -ENXIO && fd != -EOPNOTSUPP;
}

int fr_event_add_default(
	const struct fr_event_defaults *defaults, struct fr_event_list *list, struct fr_diag *d)
{
	static const char notice[] =
		"this machine has no hardware PMU: the default event is cpu-clock instead of cycles";
	struct fr_event_defaults with_stacks = *defaults;
	bool hardware = has_cycles();
	int r;

	if (with_stacks.call_graph == FR_CALL_GRAPH_UNSET)
		with_stacks.call_graph = FR_CALL_GRAPH_UNWIND;
	r = fr_event_parse(hardware ? "cycles" : "cpu-clock", &with_stacks, list, d);
	if (r < 0 || hardware)
		return r;
	list->items[list->n - 1].attr.exclude_idle = 1; /* because a halted CPU counts no cycles */
	if (list->notice)
		return 0;
	list->notice = strdup(notice);
	return list->notice ? 0 : -ENOMEM;
}

void fr_event_sideband_attr(struct perf_event_attr *ret)
{
	int fd;

	fr_event_attr_init(ret);
	ret->type = PERF_TYPE_SOFTWARE;
	ret->config = PERF_COUNT_SW_DUMMY;
	ret->exclude_guest = 0;
	ret->sample_period = 1;
	ret->mmap = ret->mmap2 = ret->build_id = 1;
	ret->comm = ret->comm_exec = ret->task = ret->namespaces = 1;
	ret->ksymbol = ret->bpf_event = ret->cgroup = ret->text_poke = 1;
	/* The event is opened and closed at once, so that fr_perf_open_adapt() clears the bits that the
	   kernel does not know. */
	fd = fr_perf_open_adapt(ret, 0, -1, 0);
	fr_closep(&fd);
}

static bool is_switch(const struct fr_event *e)
{
	return e->tracepoint && !strcmp(e->tracepoint, "sched:sched_switch");
}

/* perf inject -s writes the data of a sched_switch into samples of sched_stat_*, and damages its memory if
   the two have different fields. So sched_switch has a period, too, if one of the others is in the list. */
static void share_fields(const struct fr_event_list *list)
{
	bool weight = false;

	for (size_t i = 0; i < list->n; i++)
		weight |= has_weight(&list->items[i]);
	for (size_t i = 0; weight && i < list->n; i++)
		if (is_switch(&list->items[i]) && list->items[i].attr.sample_period == 1)
			list->items[i].attr.sample_type |= PERF_SAMPLE_PERIOD;
}

int fr_event_list_add(struct fr_event_list *list, struct fr_event *e)
{
	struct fr_event *items;

	if (list->n >= FR_EVENTS_MAX)
		return -E2BIG;
	items = reallocarray(list->items, list->n + 1, sizeof(*items));
	if (!items)
		return -ENOMEM;
	list->items = items;
	list->items[list->n++] = *e;
	*e = (struct fr_event){0};
	if (has_weight(&list->items[list->n - 1]) || is_switch(&list->items[list->n - 1]))
		share_fields(list);
	return 0;
}

int fr_event_copy(struct fr_event *to, const struct fr_event *from)
{
	char **const strings[] = {&to->name, &to->filter, &to->origin, &to->tracepoint, &to->pmu, &to->cpus};
	int r = 0;

	*to = *from;
	for (size_t i = 0; i < FR_ARRAY_SIZE(strings); i++)
		if (*strings[i]) {
			*strings[i] = strdup(*strings[i]);
			r = *strings[i] ? r : -ENOMEM;
		}
	return r;
}

void fr_event_deinit(struct fr_event *e)
{
	free(e->pmu);
	free(e->name);
	free(e->filter);
	free(e->origin);
	free(e->tracepoint);
	free(e->cpus);
	memset(e, 0, sizeof(*e));
}

void fr_event_list_deinit(struct fr_event_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		fr_event_deinit(&list->items[i]);
	free(list->items);
	free(list->notice);
	memset(list, 0, sizeof(*list));
}
