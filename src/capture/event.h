/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Event specifications in perf's syntax (perf-record(1) -e, --filter, --call-graph), made into attrs.
 *
 *   cycles:k  cpu/event=0x3c,umask=1/  r1a8  L1-dcache-load-misses  cpu-clock  sched:sched_*  raw_syscalls:*
 *   bpf-output
 *
 * Several are separated by commas outside slashes. Terms stand in slashes: period= freq= call-graph=
 * stack-size= max-stack= overwrite inherit name= config= config1= config2= and the PMU's own. Modifiers: u k
 * h G H I, p to ppp. A tracepoint and bpf-output record every event unless they have a period or freq term of
 * their own.
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
};

/* What applies where an event says nothing of its own. */
struct fr_event_defaults {
	uint64_t frequency_hz; /* 0: none given; sampling events then take 99 */
	uint64_t period;       /* -c; wins over frequency */
	bool each;	       /* PERIOD stands for each occurrence, and not for a rate */
	enum fr_call_graph call_graph;
	uint32_t dwarf_stack_bytes; /* 0: 8192 */
};

struct fr_event {
	struct perf_event_attr attr; /* sample_type has FR_SAMPLE_TYPE; size is set; disabled */
	char *name;
	char *filter; /* tracepoint filter of the user, or NULL */
	char *origin; /* "file:line" that asks for it, for what is said of it; or NULL */
	bool overwrite;
	bool system_wide_only; /* a PMU or event that counts no single task */
	char *tracepoint;      /* "system:name" where it is one, whatever name= says; or NULL */
	char *cpus;	       /* the only CPUs that its PMU counts on, as a CPU list; NULL: all */
};

#define FR_EVENTS_MAX 8192

struct fr_event_list {
	struct fr_event *items;
	size_t n;
	size_t last_parsed; /* the first event that the last fr_event_parse() added */
	char *notice; /* said once by the program: "no hardware PMU here: cpu-clock instead of cycles"; or
			 NULL */
};

/* Parse SPEC and append its events. 0; -EINVAL for what cannot be understood; -ENOENT for an unknown event,
   with the near misses in the hint; -EACCES / -ENODEV where tracefs or a PMU cannot be read. */
int fr_event_parse(const char *spec, const struct fr_event_defaults *defaults, struct fr_event_list *list,
	struct fr_diag *d);

/* The events of the last fr_event_parse() are asked for by ORIGIN. 0 or -ENOMEM. */
int fr_event_set_origin(struct fr_event_list *list, const char *origin);

/* --filter: applies to the events of the last fr_event_parse() (all must be tracepoints). -EINVAL otherwise.
 */
int fr_event_set_filter(struct fr_event_list *list, const char *filter, struct fr_diag *d);

/* The default: cycles with frame-pointer stacks; where the machine has no such counter, cpu-clock with a
 * notice. */
int fr_event_add_default(
	const struct fr_event_defaults *defaults, struct fr_event_list *list, struct fr_diag *d);

/* "fp", "dwarf", "dwarf,16384", "lbr", "no". */
int fr_call_graph_parse(const char *s, struct fr_event_defaults *ret, struct fr_diag *d);

/* The side-band event: dummy, with every bit of side-band that this kernel takes (mmap, mmap2, build_id,
   comm, comm_exec, task, namespaces, ksymbol, bpf_event, cgroup, text_poke, context_switch off). */
void fr_event_sideband_attr(struct perf_event_attr *ret);

/* cpu-clock or task-clock: their period is in nanoseconds, and FR_CLOCK_PERIOD_MIN_NS at least. */
bool fr_event_is_clock(const struct perf_event_attr *a);
#define FR_CLOCK_PERIOD_MIN_NS 100000ULL

void fr_event_list_deinit(struct fr_event_list *list);
