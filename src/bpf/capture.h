/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What src/capture/ and the BPF programs that record samples (capture.bpf.c) share. The programs write whole
 * PERF_RECORD_SAMPLE records in the common layout (perfdata/record.h) into one BPF ring for each CPU.
 */

#include "unwind.h"

/* Whether an event is recorded (docs/design/16). The header for triggers calls it struct flightrec_switch. */
struct fr_switch {
	fr_u32 is_off;
	fr_u32 changes;	 /* how often programs of triggers have switched it */
	fr_u64 since_ns; /* when it was last switched on; 0: never */
};

/* One opened event. The cookie of a program's link is the index of its event, plus 1. */
struct fr_bpf_event {
	fr_u64 id;
	fr_u32 flags;
	fr_u32 max_stack; /* the most entries of a kernel stack and of a user stack */
	fr_u32 cpu;	  /* for the next instance, which counts the samples of this CPU */
	fr_u32 slot;	  /* of struct fr_switch */
};
enum {
	FR_BPF_PERIOD = 1,	 /* samples have PERF_SAMPLE_PERIOD */
	FR_BPF_CALLCHAIN = 2,	 /* samples have PERF_SAMPLE_CALLCHAIN */
	FR_BPF_KERNEL_STACK = 4, /* the call chain has the kernel's part */
	FR_BPF_USER_STACK = 8,	 /* the call chain has the user's part */
	FR_BPF_AT_USER = 32,	 /* tracepoints: perf gives them the address of the user's code */
	FR_BPF_USER_FP = 16,	 /* tracepoints: the user's part comes from frame pointers, not from tables */
};
/* The number of events times CPUs that BPF programs can record. */
#define FR_BPF_EVENTS_MAX 4096u

#define FR_BPF_STACK_MAX 127u
/* A record consists of at most this number of 8-byte words. */
#define FR_BPF_WORDS 512u

/* The version of struct fr_bpf_shared, and of the rings. Another instance reads both (docs/design/96), which
   can be another version of flightrecd. */
#define FR_BPF_SHARED_VERSION 1u
#define FR_BPF_SHARED_TRACEPOINTS 4096u

struct fr_bpf_shared {
	fr_u32 version;
	fr_u32 n_events, n_tracepoints;
	fr_u32 n_fds[8]; /* how many descriptors of each kind the next instance needs (capture/bpf_fds.h) */
	/* The first ids of the tracepoints, in the order of struct fr_bpf_tracepoint. */
	fr_u64 tracepoint_ids[FR_BPF_SHARED_TRACEPOINTS];
	/* The recorder takes the samples of this capture from this time on; 0: it has not begun to. */
	fr_u64 from_ns;
	fr_u64 wakeup_bytes; /* wake the recorder when a ring has so many bytes */
	struct fr_bpf_event events[FR_BPF_EVENTS_MAX];
	fr_u64 lost[FR_BPF_EVENTS_MAX]; /* samples for which a ring had no room. Only one CPU counts in each.
					 */
	fr_u64 counted[FR_BPF_EVENTS_MAX]; /* the part of `lost` that the recorder has counted */
};
