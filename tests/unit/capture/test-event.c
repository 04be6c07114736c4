// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of the parser of event specifications. A temporary directory replaces the files of a machine that has
   a core PMU, a PMU of a package, and two systems of tracepoints. */
#include "../files.h"
#include "capture/event_internal.h"
#include "base/nearest.h"
#include "perfdata/record.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static char pmus[80], tracefs[80];
static struct fr_event_env env = {pmus, tracefs};
static const struct fr_event_defaults plain;

static const struct {
	const char *path, *text;
} tree[] = {
	{"pmu/cpu/type", "4"},
	{"pmu/cpu/format/event", "config:0-7,32-35"},
	{"pmu/cpu/format/umask", "config:8-15"},
	{"pmu/cpu/format/edge", "config:18"},
	{"pmu/cpu/format/any", "config1:0-63"},
	{"pmu/cpu/format/ldlat", "config2:4-7,1"},
	{"pmu/cpu/format/odd", "config9:0"},
	{"pmu/cpu/format/broken", "config:7-3"},
	{"pmu/cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3"},
	{"pmu/cpu/events/mem-loads.scale", "1"},
	{"pmu/cpu/events/topdown", "event=0xa4,umask=?"},
	{"pmu/power/type", "12"},
	{"pmu/power/cpumask", "0"},
	{"pmu/power/format/event", "config:0-7"},
	{"pmu/intel_pt/type", "9"},
	{"pmu/intel_pt/format/pt", "config:0"},
	{"pmu/intel_pt/format/tsc", "config:10"},
	{"pmu/intel_pt/format/branch", "config:13"},
	{"pmu/intel_pt/format/cyc", "config:1"},
	{"pmu/power/events/energy-pkg", "event=0x02"},
	{"tracing/events/sched/sched_switch/id", "310"},
	{"tracing/events/sched/sched_stat_runtime/id", "311"},
	{"tracing/events/sched/sched_wakeup/id", "311"},
	{"tracing/events/sched/sched_process_fork/id", "312"},
	{"tracing/events/raw_syscalls/sys_enter/id", "443"},
	{"tracing/events/raw_syscalls/sys_exit/id", "442"},
	{"tracing/events/ftrace/print/id", "5"},
	{"tracing/events/sched/sched_switch/format",
		"name: sched_switch\nformat:\n\tfield:int common_pid;\toffset:4;\n\n\tfield:char "
		"prev_comm[16];\toffset:8;\n"
		"\tfield:pid_t prev_pid;\toffset:24;\n"},
};

static int setup(void **state)
{
	if (make_root(state) < 0)
		return -1;
	snprintf(pmus, sizeof(pmus), "%s/pmu", root);
	snprintf(tracefs, sizeof(tracefs), "%s/tracing", root);
	for (size_t i = 0; i < FR_ARRAY_SIZE(tree); i++)
		write_file(tree[i].path, tree[i].text);
	return 0;
}

static void parse_ok(const char *spec, const struct fr_event_defaults *defaults, struct fr_event_list *list)
{
	struct fr_diag d = {0};
	int r = fr_event_parse_env(&env, spec, defaults, list, &d);

	if (r < 0)
		fail_msg("%s: %d %s (%s)", spec, r, d.what, d.hint);
}

/* Parse a specification of one event. The result is valid until the next call. */
static const struct fr_event *parse_one(const char *spec, const struct fr_event_defaults *defaults)
{
	static struct fr_event_list list;

	fr_event_list_deinit(&list);
	if (!spec)
		return NULL;
	parse_ok(spec, defaults, &list);
	assert_int_equal(list.n, 1);
	return &list.items[0];
}

static int teardown(void **state)
{
	(void)parse_one(NULL, NULL);
	return remove_root(state);
}

GROUP_FIXTURE(setup, teardown)

/* Checks that SPEC fails with CODE, that the message contains IN_WHAT, and that the hint contains IN_HINT. If
   IN_HINT is NULL, there must be no hint, because the message says everything. */
static void parse_fails(const char *spec, int code, const char *in_what, const char *in_hint)
{
	struct fr_event_list list = {0};
	struct fr_diag d = {0};
	int r = fr_event_parse_env(&env, spec, &plain, &list, &d);

	if (r != code)
		fail_msg("%s: %d, not %d: %s", spec, r, code, d.what);
	assert_int_equal(d.code, code);
	if (!strstr(d.what, in_what))
		fail_msg("%s: \"%s\" does not say \"%s\"", spec, d.what, in_what);
	if (in_hint ? !d.hint[0] || !strstr(d.hint, in_hint) : d.hint[0])
		fail_msg("%s: the hint \"%s\" does not say \"%s\"", spec, d.hint, in_hint ? in_hint : "");
	assert_int_equal(list.n, 0);
	fr_event_list_deinit(&list);
}

TEST(every_kind_of_event_is_parsed)
{
	static const struct {
		const char *spec, *name;
		uint32_t type;
		uint64_t config, config1, config2;
	} cases[] = {
		{"cycles", "cycles", PERF_TYPE_HARDWARE, 0, 0, 0},
		{"cpu-cycles", "cycles", PERF_TYPE_HARDWARE, 0, 0, 0},
		{"branch-instructions:u", "branches:u", PERF_TYPE_HARDWARE, 4, 0, 0},
		{"ref-cycles", "ref-cycles", PERF_TYPE_HARDWARE, 9, 0, 0},
		{"idle-cycles-backend", "stalled-cycles-backend", PERF_TYPE_HARDWARE, 8, 0, 0},
		{"L1-dcache-load-misses", "L1-dcache-load-misses", PERF_TYPE_HW_CACHE, 0x10000, 0, 0},
		{"LLC-loads", "LLC-loads", PERF_TYPE_HW_CACHE, 2, 0, 0},
		{"dTLB-store-misses", "dTLB-store-misses", PERF_TYPE_HW_CACHE, 0x10103, 0, 0},
		{"L1-icache-prefetches", "L1-icache-prefetches", PERF_TYPE_HW_CACHE, 0x201, 0, 0},
		{"L1-dcache-prefetch-misses", "L1-dcache-prefetch-misses", PERF_TYPE_HW_CACHE, 0x10200, 0, 0},
		{"branch-load-misses:k", "branch-load-misses:k", PERF_TYPE_HW_CACHE, 0x10005, 0, 0},
		{"node-stores", "node-stores", PERF_TYPE_HW_CACHE, 0x106, 0, 0},
		{"LLC-misses", "LLC-load-misses", PERF_TYPE_HW_CACHE, 0x10002, 0, 0},
		{"cpu-clock", "cpu-clock", PERF_TYPE_SOFTWARE, 0, 0, 0},
		{"faults", "page-faults", PERF_TYPE_SOFTWARE, 2, 0, 0},
		{"cs", "context-switches", PERF_TYPE_SOFTWARE, 3, 0, 0},
		{"migrations", "cpu-migrations", PERF_TYPE_SOFTWARE, 4, 0, 0},
		{"emulation-faults", "emulation-faults", PERF_TYPE_SOFTWARE, 8, 0, 0},
		{"dummy", "dummy", PERF_TYPE_SOFTWARE, 9, 0, 0},
		{"bpf-output", "bpf-output", PERF_TYPE_SOFTWARE, 10, 0, 0},
		{"cgroup-switches", "cgroup-switches", PERF_TYPE_SOFTWARE, 11, 0, 0},
		{"r1a8", "r1a8", PERF_TYPE_RAW, 0x1a8, 0, 0},
		{"rFFFFFFFFFFFFFFFF:u", "rFFFFFFFFFFFFFFFF:u", PERF_TYPE_RAW, UINT64_MAX, 0, 0},
		{"r1a8/freq=10/", "r1a8", PERF_TYPE_RAW, 0x1a8, 0, 0},
		{"cpu/event=0x3c,umask=0x1/", "cpu/event=0x3c,umask=0x1/", 4, 0x13c, 0, 0},
		{"cpu/event=0xfff/", "cpu/event=0xfff/", 4, 0xf000000ff, 0, 0},
		{"cpu/event=1,edge/u", "cpu/event=1,edge/:u", 4, 0x40001, 0, 0},
		{"cpu/event=1,edge/:u", "cpu/event=1,edge/:u", 4, 0x40001, 0, 0},
		{"cpu/any=0xffffffffffffffff/", "cpu/any=0xffffffffffffffff/", 4, 0, UINT64_MAX, 0},
		{"cpu/ldlat=0x1f/", "cpu/ldlat=0x1f/", 4, 0, 0, 0xf2},
		{"cpu/mem-loads/", "cpu/mem-loads/", 4, 0x1cd, 0, 0x12},
		{"cpu/mem-loads,ldlat=0/", "cpu/mem-loads,ldlat=0/", 4, 0x1cd, 0, 0},
		{"cpu/ldlat=0,mem-loads/", "cpu/ldlat=0,mem-loads/", 4, 0x1cd, 0, 0},
		{"cpu/topdown,umask=3/", "cpu/topdown,umask=3/", 4, 0x3a4, 0, 0},
		{"cpu/config=0x77,config1=1,config2=2/", "cpu/config=0x77,config1=1,config2=2/", 4, 0x77, 1,
			2},
		{"mem-loads", "mem-loads", 4, 0x1cd, 0, 0x12},
		{"mem-loads/freq=7/u", "mem-loads:u", 4, 0x1cd, 0, 0x12},
		{"power/energy-pkg/", "power/energy-pkg/", 12, 2, 0, 0},
		{"sched:sched_switch", "sched:sched_switch", PERF_TYPE_TRACEPOINT, 310, 0, 0},
		{"sched:sched_switch:k", "sched:sched_switch:k", PERF_TYPE_TRACEPOINT, 310, 0, 0},
		{"sched:sched_switch/overwrite/", "sched:sched_switch", PERF_TYPE_TRACEPOINT, 310, 0, 0},
		{" cycles ", "cycles", PERF_TYPE_HARDWARE, 0, 0, 0},
		{"cycles/name=mine/", "mine", PERF_TYPE_HARDWARE, 0, 0, 0},
	};

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		const struct fr_event *e = parse_one(cases[i].spec, &plain);
		const struct perf_event_attr *a = &e->attr;

		assert_string_equal(e->name, cases[i].name);
		assert_int_equal(a->type, cases[i].type);
		if (a->config != cases[i].config)
			fail_msg("%s: config %#llx", cases[i].spec, (unsigned long long)a->config);
		assert_int_equal(a->config1, cases[i].config1);
		assert_int_equal(a->config2, cases[i].config2);
		assert_int_equal(a->size, sizeof(*a));
		assert_int_equal(a->sample_type & FR_SAMPLE_TYPE, FR_SAMPLE_TYPE);
		assert_true(a->sample_id_all && a->use_clockid && a->disabled);
		assert_int_equal(a->clockid, CLOCK_MONOTONIC);
	}
}

TEST(rates_follow_terms_then_defaults)
{
	static const struct {
		const char *spec;
		struct fr_event_defaults defaults;
		bool freq;
		uint64_t value;
	} cases[] = {
		{"cycles", {0}, true, 99},
		{"cycles", {.frequency_hz = 49}, true, 49},
		{"cycles", {.frequency_hz = 49, .period = 1000}, false, 1000},
		{"cycles/freq=7/", {.period = 1000}, true, 7},
		{"cycles/period=0x10/", {.frequency_hz = 49}, false, 16},
		{"sched:sched_switch", {.frequency_hz = 49}, false, 1},
		{"sched:sched_switch", {.period = 1000}, false, 1},
		{"sched:sched_switch/freq=5/", {0}, true, 5},
		{"sched:sched_switch/period=5/", {0}, false, 5},
		{"sched:sched_stat_runtime", {0}, false, 1},
		{"sched:sched_stat_runtime/period=5/", {0}, false, 5},
		{"bpf-output", {.frequency_hz = 49}, false, 1},
	};

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		const struct perf_event_attr *a = &parse_one(cases[i].spec, &cases[i].defaults)->attr;

		assert_int_equal(a->freq, cases[i].freq);
		assert_int_equal(a->sample_period, cases[i].value);
		assert_int_equal(!!(a->sample_type & PERF_SAMPLE_PERIOD),
			cases[i].freq || strstr(cases[i].spec, "sched_stat"));
		assert_int_equal(!!(a->sample_type & PERF_SAMPLE_RAW), cases[i].spec[0] != 'c');
	}
}

TEST(a_switch_has_the_fields_of_an_event_with_a_weight)
{
	static const char *const specs[] = {"sched:sched_switch,sched:sched_stat_runtime",
		"sched:sched_stat_runtime,sched:sched_switch", "sched:*"};

	for (size_t i = 0; i < FR_ARRAY_SIZE(specs); i++) {
		struct fr_event_list list = {0};

		parse_ok(specs[i], &plain, &list);
		assert_true(list.n >= 2);
		for (size_t k = 0; k < list.n; k++)
			assert_int_equal(!!(list.items[k].attr.sample_type & PERF_SAMPLE_PERIOD),
				strstr("sched:sched_switch sched:sched_stat_runtime", list.items[k].name) !=
					NULL);
		fr_event_list_deinit(&list);
	}
}

TEST(modifiers_exclude_modes)
{
	static const struct {
		const char *spec;
		unsigned user, kernel, hv, precise; /* user, kernel, hv: 1 if it is excluded */
	} cases[] = {
		{"cycles", 0, 0, 0, 0},
		{"cycles:u", 0, 1, 1, 0},
		{"cycles:k", 1, 0, 1, 0},
		{"cycles:h", 1, 1, 0, 0},
		{"cycles:uk", 0, 0, 1, 0},
		{"cycles:ku", 0, 0, 1, 0},
		{"cycles:p", 0, 0, 0, 1},
		{"cycles:ppp", 0, 0, 0, 3},
		{"cycles:upp", 0, 1, 1, 2},
		{"cycles:pup", 0, 1, 1, 2},
		{"cycles/freq=3/ppk", 1, 0, 1, 2},
	};

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		const struct perf_event_attr *a = &parse_one(cases[i].spec, &plain)->attr;

		if (a->exclude_user != cases[i].user || a->exclude_kernel != cases[i].kernel ||
			a->exclude_hv != cases[i].hv || a->precise_ip != cases[i].precise)
			fail_msg("%s", cases[i].spec);
	}
}

TEST(call_graphs_set_sample_types)
{
	const uint64_t dwarf = PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
	const struct fr_event_defaults fp = {.call_graph = FR_CALL_GRAPH_FP},
				       lbr = {.call_graph = FR_CALL_GRAPH_LBR};
	const struct {
		const char *spec;
		const struct fr_event_defaults *defaults;
		uint64_t bits;
		uint32_t stack;
	} cases[] = {
		{"cycles", &plain, 0, 0},
		{"cycles", &fp, PERF_SAMPLE_CALLCHAIN, 0},
		{"sched:sched_switch", &fp, PERF_SAMPLE_CALLCHAIN, 0},
		{"sched:sched_switch/overwrite,call-graph=no/", &fp, 0, 0},
		{"cycles/call-graph=fp/", &plain, PERF_SAMPLE_CALLCHAIN, 0},
		{"cycles/freq=99,call-graph=dwarf,16384/", &plain, PERF_SAMPLE_CALLCHAIN | dwarf, 16384},
		{"cycles/call-graph=dwarf,stack-size=4095/", &plain, PERF_SAMPLE_CALLCHAIN | dwarf, 4096},
		{"cycles/call-graph=dwarf/", &plain, PERF_SAMPLE_CALLCHAIN | dwarf, 8192},
		{"cycles/call-graph=lbr/", &plain, PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_BRANCH_STACK, 0},
		{"sched:sched_switch", &lbr, PERF_SAMPLE_CALLCHAIN, 0},
	};

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		const struct perf_event_attr *a = &parse_one(cases[i].spec, cases[i].defaults)->attr;

		assert_int_equal(a->sample_type & (dwarf | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_BRANCH_STACK),
			cases[i].bits);
		assert_int_equal(a->sample_stack_user, cases[i].stack);
		assert_int_equal(!!a->sample_regs_user, !!(cases[i].bits & dwarf));
		assert_int_equal(!!a->branch_sample_type, !!(cases[i].bits & PERF_SAMPLE_BRANCH_STACK));
	}
}

TEST(the_call_graph_option_is_checked)
{
	static const char *const bad[] = {
		"", "dwarf,", "dwarf,x", "dwarf,65536", "dwarf,0", "fp,1", "dwarfs"};
	struct fr_event_defaults g = {0};

	assert_int_equal(fr_call_graph_parse("dwarf,16384", &g, NULL), 0);
	assert_int_equal(g.call_graph, FR_CALL_GRAPH_DWARF);
	assert_int_equal(g.dwarf_stack_bytes, 16384);
	assert_int_equal(fr_call_graph_parse("lbr", &g, NULL), 0);
	assert_int_equal(g.call_graph, FR_CALL_GRAPH_LBR);
	for (size_t i = 0; i < FR_ARRAY_SIZE(bad); i++)
		assert_int_equal(fr_call_graph_parse(bad[i], &g, NULL), -EINVAL);
}

TEST(lists_and_globs_add_events)
{
	static const struct {
		const char *spec;
		size_t n; /* also counts the events of the previous specifications */
	} cases[] = {
		{"cpu/event=1,umask=2/u,cycles:k,raw_syscalls:*", 4},
		{"sched:sched_[sw]*", 7},
		{"*:*", 13}, /* without the events of the system "ftrace", which perf cannot open */
		{"*sys*:sys_e?it/overwrite/", 14},
	};
	struct fr_event_list list = {0};

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		parse_ok(cases[i].spec, &plain, &list);
		assert_int_equal(list.n, cases[i].n);
		assert_int_equal(list.last_parsed, i ? cases[i - 1].n : 0);
	}
	assert_string_equal(list.items[0].name, "cpu/event=1,umask=2/:u");
	assert_string_equal(list.items[1].name, "cycles:k");
	assert_non_null(list.items[2].tracepoint);
	assert_int_equal(list.items[13].attr.config, 442);
	assert_true(list.items[13].overwrite && list.items[13].attr.write_backward);
	fr_event_list_deinit(&list);
}

TEST(a_pmu_of_packages_is_only_system_wide)
{
	const struct fr_event *e = parse_one("power/energy-pkg/", &plain);

	assert_true(e->system_wide_only);
	assert_string_equal(e->cpus, "0");
}

/* Without these terms, the trace has no times. */
TEST(a_hardware_trace_has_the_terms_that_perf_sets)
{
	assert_int_equal(parse_one("intel_pt//", &plain)->attr.config, 0x2401);
	assert_int_equal(parse_one("intel_pt/cyc/", &plain)->attr.config, 0x2403);
	assert_int_equal(parse_one("intel_pt/tsc=0/", &plain)->attr.config, 0x2001);
	assert_string_equal(parse_one("intel_pt//", &plain)->pmu, "intel_pt");
	assert_null(parse_one("cycles", &plain)->pmu);
}

TEST(an_event_can_be_off)
{
	static const struct {
		const char *spec;
		bool is_off;
	} cases[] = {{"cpu-clock/enabled=no/", true}, {"cpu-clock/enabled=yes/", false}, {"cpu-clock", false},
		{"offcpu/enabled=no/", true}};
	const struct fr_event_defaults defaults = {0};

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		struct fr_event_list list = {0};

		assert_int_equal(fr_event_parse(cases[i].spec, &defaults, &list, NULL), 0);
		for (size_t e = 0; e < list.n; e++)
			assert_int_equal(list.items[e].off, cases[i].is_off);
		fr_event_list_deinit(&list);
	}
}

TEST(only_tracepoints_take_a_filter)
{
	struct fr_event_list list = {0};
	struct fr_diag d = {0};

	assert_int_equal(fr_event_set_filter(&list, "x == 1", NULL), -EINVAL);
	parse_ok("raw_syscalls:*", &plain, &list);
	assert_int_equal(fr_event_set_filter(&list, "id == 110", &d), 0);
	parse_ok("sched:sched_switch", &plain, &list);
	assert_int_equal(fr_event_set_filter(&list, "prev_pid == 1", &d), 0);
	assert_string_equal(list.items[0].filter, "id == 110");
	assert_string_equal(list.items[2].filter, "prev_pid == 1");
	parse_ok("cycles", &plain, &list);
	assert_int_equal(fr_event_set_filter(&list, "x == 1", &d), -EINVAL);
	assert_non_null(strstr(d.what, "cycles"));
	fr_event_list_deinit(&list);
}

TEST(a_short_period_of_a_clock_is_refused)
{
	const struct fr_event_defaults short_one = {.period = 99999}, enough = {.period = 100000},
				       each = {.period = 1, .each = true};
	struct fr_event_list list = {0};
	struct fr_diag d = {0};

	parse_fails("cpu-clock/period=1000/", -EINVAL, "1000 ns is too short for a clock", "100000");
	parse_fails("cycles,task-clock/period=99999/u", -EINVAL, "task-clock", "100000");
	assert_int_equal(fr_event_parse_env(&env, "cpu-clock", &short_one, &list, &d), -EINVAL);
	parse_ok("cpu-clock", &enough, &list);
	parse_ok("cpu-clock", &each, &list); /* a trigger with Event= counts each occurrence */
	parse_ok("cpu-clock/freq=1000/,cs", &short_one, &list);
	parse_ok("cs/period=1/", &plain, &list);
	fr_event_list_deinit(&list);
}

TEST(offcpu_is_two_events)
{
	const struct fr_event_defaults defaults = {.frequency_hz = 7, .call_graph = FR_CALL_GRAPH_FP};
	struct fr_event_list list = {0};
	struct fr_diag d = {0};

	assert_int_equal(fr_event_parse_env(
				 &env, "cpu-clock,offcpu/threshold=250us,max-stack=9/", &defaults, &list, &d),
		0);
	assert_int_equal(list.n, 3);
	for (size_t i = 1; i < 3; i++) {
		const struct fr_event *e = &list.items[i];

		assert_string_equal(e->name, i == 1 ? "flightrec:offcpu" : "flightrec:waker");
		assert_int_equal(e->off_cpu, i == 1 ? FR_OFF_CPU_SLEEP : FR_OFF_CPU_WAKER);
		assert_int_equal(e->threshold_ns, 250000);
		assert_int_equal(e->attr.type, PERF_TYPE_TRACEPOINT);
		assert_int_equal(e->attr.sample_type,
			FR_SAMPLE_TYPE | PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW | PERF_SAMPLE_CALLCHAIN);
		assert_int_equal(e->attr.sample_max_stack, 9);
		assert_false(e->attr.freq || e->tracepoint || e->unwind);
	}
	assert_int_not_equal(list.items[1].attr.config, list.items[2].attr.config);
	assert_int_equal(fr_event_add_off_cpu(1, &list), 0); /* it is there already */
	assert_int_equal(list.n, 3);
	fr_event_list_deinit(&list);
	assert_int_equal(
		fr_event_parse_env(&env, "offcpu/name=wait,call-graph=no/", &defaults, &list, &d), 0);
	assert_string_equal(list.items[0].name, "wait");
	assert_string_equal(list.items[1].name, "wait-waker");
	assert_int_equal(list.items[0].threshold_ns, FR_OFF_CPU_DEFAULT_NS);
	assert_false(list.items[0].attr.sample_type & PERF_SAMPLE_CALLCHAIN);
	fr_event_list_deinit(&list);
}

TEST(bad_specifications_are_explained)
{
	static const struct {
		const char *spec;
		int code;
		const char *what, *hint;
	} cases[] = {
		{"cylces", -ENOENT, "cylces", "cycles"},
		{"cpu-clok", -ENOENT, "cpu-clok", "cpu-clock"},
		{"L1-dcache-laod-misses", -ENOENT, "L1", "L1-dcache-load-misses"},
		{"sched:sched_swich", -ENOENT, "sched_swich", "sched:sched_switch"},
		{"sched_switch", -ENOENT, "sched_switch", "sched:sched_switch"},
		{"shced:sched_switch", -ENOENT, "shced", "sched:sched_switch"},
		{"flightrec:offcpu", -ENOENT, "flightrec:offcpu", "write offcpu"},
		{"flightrec:waker/threshold=5ms/", -ENOENT, "flightrec:waker/", "write offcpu"},
		{"offcpu/threshold=5/", -EINVAL, "threshold", "with its unit"},
		{"cycles/capture=bpf/", -EINVAL, "cycles/capture=bpf/: it is not a tracepoint", "leave"},
		{"raw_syscall:*", -ENOENT, "raw_syscall:*", ""},
		{"cpu/mem-load/", -EINVAL, "mem-load", "umask"},
		{"cpu/mem-load/", -EINVAL, "mem-load", "mem-loads"},
		{"mem-laods", -ENOENT, "mem-laods", "cpu/mem-loads/"},
		{"cppu/event=1/", -ENOENT, "cppu", "cpu/"},
		{"energy-pkg", -ENOENT, "energy-pkg", "power/energy-pkg/"},
		{"mrs", -ENOENT, "mrs", "perf list"}, /* the hint does not suggest "cs" */
		{"cycles,nothing-like-it-at-all", -ENOENT, "nothing-like", "perf list"},
		{"", -EINVAL, "without a name", ""},
		{",", -EINVAL, "without a name", ""},
		{"cycles,", -EINVAL, "without a name", ""},
		{"cycles/", -EINVAL, "second", ""},
		{"cycles:x", -EINVAL, "\"x\"", "precise"},
		{"cycles:pppp", -EINVAL, "pppp", ""},
		{"cycles:uu", -EINVAL, "uu", ""},
		{"cycles/freq=1/z", -EINVAL, "\"z\"", "u (user)"},
		{"cycles/freq=/", -EINVAL, "freq", ""},
		{"cycles/freq=0/", -EINVAL, "from 1", ""},
		{"cycles/freq=1x/", -EINVAL, "1x", ""},
		{"cycles/freq=-1/", -EINVAL, "-1", ""},
		{"cycles/period=99999999999999999999/", -EINVAL, "period", ""},
		{"cycles/overwrite=2/", -EINVAL, "overwrite", ""},
		{"cycles/enabled=maybe/", -EINVAL, "\"maybe\"", "enabled=no"},
		{"cycles/enabled/", -EINVAL, "enabled", "enabled=no"},
		{"cycles/call-graph=fpp/", -EINVAL, "fpp", "dwarf"},
		{"cycles/stack-size=70000/", -EINVAL, "stack-size", ""},
		{"cycles/=1/", -EINVAL, "without a name", ""},
		{"cycles/umask=1/", -EINVAL, "umask", NULL},
		{"cycles/wibble/", -EINVAL, "wibble", NULL},
		{"sched:sched_switch/wibble/", -EINVAL, "wibble", NULL},
		{"sched:sched_switch/call-graph=lbr/", -EINVAL, "lbr", "fp"},
		{"cpu/event=0x1000/", -EINVAL, "too large", ""},
		{"cpu/event=two/", -EINVAL, "two", ""},
		{"cpu/evnt=2/", -EINVAL, "evnt", "event"},
		{"cpu/topdown/", -EINVAL, "umask", ""},
		{"cpu/odd=1/", -EOPNOTSUPP, "odd", NULL},
		{"cpu/broken=1/", -EBADMSG, "broken", NULL},
		{"{cycles,instructions}", -EINVAL, "groups", ""},
	};

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++)
		parse_fails(cases[i].spec, cases[i].code, cases[i].what, cases[i].hint);
	(void)parse_one("cycles:", &plain); /* is accepted, because perf accepts it, too */
}

TEST(hostile_specifications_are_refused)
{
	static const char *const specs[] = {"../../etc:passwd", "..:..", "sched:../raw_syscalls/sys_enter",
		"/", "//", "///", ":", "::", ":::", "a:b:c:d", "sched:", ":sched_switch", "..//",
		"../cpu/event=1/", "cpu/../event=1/", "cpu/..=1/", "r", "r11112222333344445", "rxyz", "[:[",
		"sched:[", "%s%n", "cpu/%n=%s/", "\xff\xfe", "cpu/,,,,/x", "L1-dcache-",
		"L1-dcache-loads-loads-loads"};
	char *big = malloc(FR_SPEC_MAX + 2), terms[2048] = "cpu/";

	for (size_t i = 0; i < FR_ARRAY_SIZE(specs); i++) {
		struct fr_event_list list = {0};

		assert_true(fr_event_parse_env(&env, specs[i], &plain, &list, NULL) < 0);
		assert_int_equal(list.n, 0);
		fr_event_list_deinit(&list);
	}
	memset(big, 'a', FR_SPEC_MAX + 1);
	big[FR_SPEC_MAX + 1] = 0;
	parse_fails(big, -EINVAL, "more than", "");
	big[FR_SPEC_MAX - 1] = 0;
	parse_fails(big, -ENOENT, "aaaa", "perf list");
	for (size_t i = 0; i + 1 < FR_SPEC_MAX; i += 2)
		memcpy(big + i, "cs", 2), big[i] = i % 4 ? 's' : ',';
	parse_fails(big, -EINVAL, "", "");
	for (unsigned i = 0; i < FR_TERMS_MAX + 1; i++)
		strcat(terms, "event=1,");
	strcat(terms, "/");
	parse_fails(terms, -EINVAL, "more than", "");
	for (size_t i = 0; i <= FR_EVENTS_MAX; i++)
		memcpy(big + 3 * i, "cs,", 3);
	big[3 * FR_EVENTS_MAX + 2] = 0;
	parse_fails(big, -EINVAL, "more than", "match fewer");
	free(big);
}

TEST(tracepoints_need_tracefs)
{
	const struct fr_event_env without = {pmus, "/nonexistent"};
	struct fr_event_list list = {0};
	struct fr_diag d = {0};

	assert_int_equal(fr_event_parse_env(&without, "sched:sched_switch", &plain, &list, &d), -ENODEV);
	assert_non_null(strstr(d.hint, "mount -t tracefs"));
}

TEST(fields_of_a_tracepoint_are_listed)
{
	char fields[64], few[12];

	fr_tracepoint_fields(&env, "sched:sched_switch", fields, sizeof(fields));
	assert_string_equal(fields, "prev_comm, prev_pid");
	fr_tracepoint_fields(&env, "sched:sched_switch", few, sizeof(few));
	assert_string_equal(few, "prev_comm, ");
	fr_tracepoint_fields(&env, "sched:none", fields, sizeof(fields));
	assert_string_equal(fields, "");
}

TEST(edit_distance_is_bounded)
{
	assert_int_equal(fr_edit_distance("cycles", "cycles", 2), 0);
	assert_int_equal(fr_edit_distance("cylces", "cycles", 2), 1);
	assert_int_equal(fr_edit_distance("Cycles", "cycles", 2), 0);
	assert_int_equal(fr_edit_distance("cycle", "cycles", 2), 1);
	assert_int_equal(fr_edit_distance("", "ab", 2), 2);
	assert_int_equal(fr_edit_distance("abc", "xyz", 2), 3);
	assert_int_equal(fr_edit_distance("kitten", "sitting", 5), 3);
}

TEST(default_and_sideband_events_can_be_opened)
{
	struct fr_event_list list = {0};
	struct fr_diag d = {0};
	struct perf_event_attr a;

	assert_int_equal(fr_event_add_default(&plain, &list, &d), 0);
	assert_int_equal(list.n, 1);
	assert_true(list.items[0].attr.sample_type & PERF_SAMPLE_CALLCHAIN);
	assert_true(list.items[0].attr.freq);
	assert_int_equal(list.items[0].attr.sample_freq, 99);
	/* The default event is cycles. Without a PMU it is cpu-clock, and there is a notice. */
	assert_int_equal(list.notice != NULL, list.items[0].attr.type == PERF_TYPE_SOFTWARE);
	assert_int_equal(list.items[0].attr.exclude_idle, list.notice != NULL);
	fr_event_list_deinit(&list);

	fr_event_sideband_attr(&a);
	assert_true(a.mmap && a.mmap2 && a.comm && a.task && !a.context_switch);
	assert_int_equal(a.config, PERF_COUNT_SW_DUMMY);
}
