/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* One [Trigger NAME] of the configuration, as its keys say it. Filled by flightrecd/, read by the sources. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FR_TRIGGER_UNSET UINT64_MAX /* of a duration: what [Triggers] or [Dump] says */

/* Which source a trigger has; each but the first two has a key of its own, and a section has one of them. */
enum fr_trigger_kind {
	FR_TRIGGER_SIGNAL,   /* [Trigger signal]: SIGUSR1. Always there */
	FR_TRIGGER_CONTROL,  /* [Trigger control]: flightrecctl dump. Always there */
	FR_TRIGGER_PROBE,    /* Probe=NAME, or a section with a probe's name */
	FR_TRIGGER_PROGRAM,  /* Program=/path/to/object.bpf.o, -e object.bpf.o */
	FR_TRIGGER_FUNCTION, /* Function=/path/to/binary:symbol */
	FR_TRIGGER_USDT,     /* USDT=/path/to/binary:provider:begin,provider:end */
	FR_TRIGGER_PRESSURE, /* Pressure=cpu|memory|io some|full; Threshold= of stall in Interval= */
	FR_TRIGGER_EVENT,    /* Event= in perf's syntax. With Threshold=: so many in Interval=; else each */
	FR_TRIGGER_TIMER,    /* Every=1h */
	FR_TRIGGER_APPLICATION, /* Application=yes: datagrams that name it, include/flightrec/trigger.h */
	FR_TRIGGER_KINDS,
};

struct fr_trigger_config {
	char *name;   /* owned, as all strings here */
	char *origin; /* "file:line", for errors; NULL: built in */
	enum fr_trigger_kind kind;
	char *subject;	   /* what the key of the kind says; NULL for signal, control, timer, application */
	uint64_t every_ns; /* Every= */

	/* what counts */
	char *threshold;      /* Threshold= as written: "20ms", "1000", "64M"; NULL: the source's default */
	uint64_t interval_ns; /* Interval=: over so long, where a source counts; FR_TRIGGER_UNSET: its default
			       */
	char *filter;	      /* Filter= of Event= */
	char *syscalls;	      /* Syscall=: names, separated by blanks; of the probe syscall-latency */
	char *comm;	      /* Comm= */
	char *cgroup;	      /* CGroup=: path below the cgroup root */
	pid_t pid;	      /* Pid=; 0: any */
	char **set;	      /* Set=NAME=VALUE: globals of a Program=; NULL-terminated, or NULL */

	/* policy.h */
	bool enabled;	      /* Enabled=, yes */
	uint64_t cooldown_ns; /* Cooldown= */
	uint64_t min_fill_ns; /* MinFill= */
	uint64_t window_ns;   /* Window=; 0: all of the ring */
	uint64_t post_ns;     /* PostTrigger= */
};

/* [Triggers]: of all. */
struct fr_triggers_config {
	uint64_t cooldown_ns;	   /* Cooldown=, 1min: of triggers that say nothing */
	uint64_t min_fill_ns;	   /* MinFill=, 0 */
	uint64_t window_ns;	   /* Window=, 30s: of triggers that say nothing; 0: all of the ring */
	unsigned rate_burst;	   /* RateLimit=20/1h: a bucket of so many dumps … */
	uint64_t rate_interval_ns; /* … that fills up in so long; 0: no limit */
	bool probes_by_section;	   /* none of the built-in probes is armed but by a section of its own */
	char *socket;		   /* Socket=/run/flightrec/trigger: of applications; "": none */
};

/* A source may hold back by itself what comes within its trigger's cool-down, but no longer than this: it is
   policy.h that decides and counts. */
#define FR_SOURCE_COOLDOWN_MAX_NS 1000000000ULL

/* Two configurations of one name mean the same source: it need not be opened anew. Policy may differ, but for
   the cool-down that a source is opened with (FR_SOURCE_COOLDOWN_MAX_NS). */
bool fr_trigger_config_same_source(const struct fr_trigger_config *a, const struct fr_trigger_config *b);
/* A deep copy into RET, which need not be initialized. 0 or -ENOMEM, and then RET is empty. */
int fr_trigger_config_copy(struct fr_trigger_config *ret, const struct fr_trigger_config *c);
void fr_trigger_config_deinit(struct fr_trigger_config *c);

/* "20ms", "1000", "64M", "12%" as UNIT has it (enum fr_unit_of_cause). Of FR_CAUSE_NONE, what a program
   counts is not known: a whole number, else a duration, else a size. 0, or -EINVAL. */
int fr_threshold_parse(const char *text, int unit, uint64_t *ret);
