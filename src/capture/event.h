/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Event specifications in perf's syntax (perf-record(1) -e, --filter, --call-graph), parsed into attrs.
 *
 *   cycles:k  cpu/event=0x3c,umask=1/  r1a8  L1-dcache-load-misses  cpu-clock  sched:sched_*  raw_syscalls:*
 *   bpf-output  offcpu/threshold=1ms/
 *
 * Commas outside of slashes separate events. Terms are between slashes: period= freq= call-graph= stack-size=
 * max-stack= capture= enabled= overwrite inherit name= config= config1= config2= and the terms of the PMU.
 * Modifiers are u k h G H I and p to ppp. Tracepoints and bpf-output record every occurrence, unless they
 * have a term period or freq. offcpu records each task that was off the CPU for at least the threshold, and
 * its waker: it becomes two events, and only has the terms threshold= max-stack= call-graph= name=.
 */

#include "base/diag.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fr_call_graph {
	FR_CALL_GRAPH_UNSET,
	FR_CALL_GRAPH_NO,
	FR_CALL_GRAPH_FP,
	FR_CALL_GRAPH_DWARF,
	FR_CALL_GRAPH_LBR,
	FR_CALL_GRAPH_UNWIND,
};

/* The term capture=: how the samples of a tracepoint are made. */
enum fr_capture_way {
	FR_CAPTURE_AUTO, /* by a BPF program, where this costs less and gives the same */
	FR_CAPTURE_PERF,
	FR_CAPTURE_BPF,
};

/* The values for an event whose terms do not set them. */
struct fr_event_defaults {
	uint64_t frequency_hz; /* 0: 99 */
	uint64_t period;       /* the option -c; if it is not 0, `frequency_hz` is ignored */
	bool each;	       /* `period` is a number of occurrences and not a rate, so it can be less than
				  FR_CLOCK_PERIOD_MIN_NS */
	enum fr_call_graph call_graph;
	uint32_t dwarf_stack_bytes; /* 0: 8192 */
};

/* The two events of "offcpu" (src/bpf/sleep.bpf.c). */
enum fr_off_cpu_kind {
	FR_OFF_CPU_NO,
	FR_OFF_CPU_SLEEP, /* flightrec:offcpu: a task runs again */
	FR_OFF_CPU_WAKER, /* flightrec:waker: a task has woken another one */
};
#define FR_OFF_CPU_DEFAULT_NS 1000000ULL
#define FR_OFF_CPU_MIN_NS 1000ULL
#define FR_OFF_CPU_MAX_NS (3600 * 1000000000ULL)

struct fr_event {
	struct perf_event_attr attr; /* with `size`, `disabled`, and FR_SAMPLE_TYPE in sample_type */
	char *name;
	char *filter;  /* the user's tracepoint filter, or NULL */
	char *origin;  /* "file:line" where the event is configured, for messages; or NULL */
	unsigned ring; /* where its samples go: 0: the ring `default`; or the number of a [Ring NAME], from 1
			*/
	bool overwrite;
	bool unwind; /* call-graph=unwind: a BPF program makes the samples */
	enum fr_capture_way capture;
	bool bpf; /* a tracepoint whose samples a BPF program makes; fr_capture_open() sets it */
	enum fr_off_cpu_kind off_cpu; /* BPF programs make the samples; `attr` only describes them */
	uint64_t threshold_ns;	      /* of off_cpu: the shortest time off the CPU that makes a sample */
	bool system_wide_only;	      /* its PMU cannot count single tasks */
	char *tracepoint;	      /* "system:name" of a tracepoint, even with name=; or NULL */
	char *pmu;     /* the name of its PMU in sysfs; NULL: it is not written as PMU/TERMS/ */
	bool aux;      /* its PMU writes AUX data (capture/aux.h); fr_capture_open() sets it */
	bool off;      /* the term enabled=no: not recorded until something switches it on */
	uint32_t slot; /* of its switch (capture/switches.h); fr_capture_open() sets it */
	uint64_t rate; /* a frequency or period in place of the attr's (fr_capture_set_rate()); 0: none */
	char *cpus;    /* a list of the CPUs on which the event's PMU counts; NULL: all CPUs */
};

#define FR_EVENTS_MAX 8192

struct fr_event_list {
	struct fr_event *items;
	size_t n;
	size_t last_parsed; /* index of the first event that the last fr_event_parse() added */
	char *notice;	    /* a text that the program logs; NULL: none */
};

/* Parses SPEC and appends its events to LIST. Returns 0; or, with a message in D: -EINVAL for a syntax error;
   -ENOENT for an unknown event, with similar names in the hint; -EACCES or -ENODEV if tracefs or a PMU cannot
   be read. On failure, LIST gets no events. */
int fr_event_parse(const char *spec, const struct fr_event_defaults *defaults, struct fr_event_list *list,
	struct fr_diag *d);

/* Sets the origin of the events that the last fr_event_parse() added. Returns 0 or -ENOMEM. */
int fr_event_set_origin(struct fr_event_list *list, const char *origin);

/* Sets the filter of the events that the last fr_event_parse() added. Returns 0; -ENOMEM; or -EINVAL, with a
   message in D, if one of the events is not a tracepoint, or if the last fr_event_parse() added no event. */
int fr_event_set_filter(struct fr_event_list *list, const char *filter, struct fr_diag *d);

/* Adds the default event: cycles; or, if this machine cannot count cycles, cpu-clock, and list->notice then
   says so. If DEFAULTS has no call graph, the event gets the call graph unwind. Returns the same values as
   fr_event_parse(). */
int fr_event_add_default(
	const struct fr_event_defaults *defaults, struct fr_event_list *list, struct fr_diag *d);

/* Parses the threshold of offcpu, such as 500us: from FR_OFF_CPU_MIN_NS to FR_OFF_CPU_MAX_NS. A number
   without a unit is refused, because users of perf would mean milliseconds, and all other durations here are
   in seconds without a unit. Returns 0, -EINVAL or -ERANGE. */
int fr_off_cpu_threshold_parse(const char *text, uint64_t *ret_ns);
/* Adds the event offcpu with this threshold (FR_OFF_CPU_MIN_NS to FR_OFF_CPU_MAX_NS), unless LIST has it.
   Returns 0, -E2BIG or -ENOMEM. */
int fr_event_add_off_cpu(uint64_t threshold_ns, struct fr_event_list *list);

/* Parses "unwind", "fp", "dwarf", "dwarf,16384", "lbr" or "no". Returns 0; or -EINVAL, with a message in D.
 */
int fr_call_graph_parse(const char *s, struct fr_event_defaults *ret, struct fr_diag *d);

/* Sets RET to the attr of the side-band event: the event `dummy`, with all bits for side-band records that
   this kernel knows. */
void fr_event_sideband_attr(struct perf_event_attr *ret);

/* Returns whether A is cpu-clock or task-clock. The period of a clock is in nanoseconds, and at least
   FR_CLOCK_PERIOD_MIN_NS. */
bool fr_event_is_clock(const struct perf_event_attr *a);
#define FR_CLOCK_PERIOD_MIN_NS 100000ULL

void fr_event_list_deinit(struct fr_event_list *list);
