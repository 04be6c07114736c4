/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What made a trigger fire, once. A plain value: copied, never freed. */

#include <stdint.h>
#include <sys/types.h>

#define FR_TRIGGER_NAME_SIZE 64
#define FR_CAUSE_TEXT_SIZE 128
#define FR_CAUSE_CGROUP_SIZE 256

/* Numbers as enum flightrec_unit of include/flightrec/trigger.bpf.h has them. */
enum fr_unit_of_cause {
	FR_CAUSE_NONE = 0,
	FR_CAUSE_NS = 1,
	FR_CAUSE_COUNT = 2,
	FR_CAUSE_BYTES = 3,
	FR_CAUSE_PERCENT = 4,
};

struct fr_cause {
	char trigger[FR_TRIGGER_NAME_SIZE]; /* NAME of [Trigger NAME]; "signal", "control" */
	const char *source;		    /* of its class: "bpf", "pressure" …; static storage */
	char reason[FR_CAUSE_TEXT_SIZE];    /* in words: "run-queue latency" */
	char detail[FR_CAUSE_TEXT_SIZE];    /* of what: a device, a system call; may be empty */
	uint64_t time_ns;		    /* monotonic: the instant of the anomaly; never 0 */
	uint64_t value, threshold;	    /* both 0 where there is nothing to measure */
	enum fr_unit_of_cause unit;
	pid_t pid, tid; /* 0: nobody, or not known */
	int cpu;	/* -1: none */
	char comm[16];
	char cgroup[FR_CAUSE_CGROUP_SIZE]; /* path below the cgroup root, "/system.slice/…"; may be empty */
};

/* "12.3 ms", "1,024", "64M", "12 %" into RET: a value of a cause for a person. */
#define FR_CAUSE_VALUE_SIZE 40
void fr_cause_format_value(enum fr_unit_of_cause unit, uint64_t value, char ret[static FR_CAUSE_VALUE_SIZE]);
/* Fill comm and cgroup (each where it is empty) of a cause whose pid is known, from /proc; what is gone stays
   empty. And make all texts fit to be shown: names are whatever bytes a process or a cgroup gave itself. */
void fr_cause_fill_from_proc(struct fr_cause *c);
