/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The description of one anomaly. The structure owns no memory, so callers can copy it, and
   need not free it. */

#include <stdint.h>
#include <sys/types.h>

#define FR_TRIGGER_NAME_SIZE 64
#define FR_CAUSE_TEXT_SIZE 128
#define FR_CAUSE_CGROUP_SIZE 256
#define FR_CAUSE_FLEET_SIZE 64 /* the id of a dump of the fleet, with its NUL */

/* The same numbers as enum flightrec_unit of include/flightrec/trigger.bpf.h. */
enum fr_unit_of_cause {
	FR_CAUSE_NONE = 0,
	FR_CAUSE_NS = 1,
	FR_CAUSE_COUNT = 2,
	FR_CAUSE_BYTES = 3,
	FR_CAUSE_PERCENT = 4,
};

struct fr_cause {
	char trigger[FR_TRIGGER_NAME_SIZE]; /* NAME of [Trigger NAME], or "signal", "control", "fleet" */
	const char *source; /* name of the source's class: "bpf", "pressure" …; static storage */
	char reason[FR_CAUSE_TEXT_SIZE]; /* the kind of anomaly: "run-queue latency" */
	char detail[FR_CAUSE_TEXT_SIZE]; /* for example a device or a system call; may be empty */
	uint64_t time_ns;		 /* monotonic time of the anomaly; never 0 */
	uint64_t value, threshold;	 /* both 0: nothing was measured */
	enum fr_unit_of_cause unit;
	pid_t pid, tid; /* 0: unknown, or the anomaly belongs to no process */
	int cpu;	/* -1: the anomaly belongs to no CPU */
	char comm[16];
	char cgroup[FR_CAUSE_CGROUP_SIZE]; /* path below the cgroup root, "/system.slice/…"; may be empty */
	/* Of a dump of the fleet: its id, and who asked for it; otherwise empty. */
	char fleet[FR_CAUSE_FLEET_SIZE], by[FR_CAUSE_TEXT_SIZE];
};

/* "ns", "count", "bytes", "percent" or "". */
const char *fr_cause_unit_name(enum fr_unit_of_cause unit);
/* Returns the unit with this name; or FR_CAUSE_NONE if no unit has this name. */
enum fr_unit_of_cause fr_cause_unit_parse(const char *name);
/* Writes VALUE into RET in a form for a person: "12.3 ms", "1024", "64M", "12 %". */
#define FR_CAUSE_VALUE_SIZE 40
void fr_cause_format_value(enum fr_unit_of_cause unit, uint64_t value, char ret[static FR_CAUSE_VALUE_SIZE]);
/* Reads the path of the cgroup of version 2 that the process PID is in. It can have any bytes. Returns 0;
   -ENOENT if it is in none; or another negative errno. */
int fr_cgroup_of_process(pid_t pid, char ret[static FR_CAUSE_CGROUP_SIZE]);
/* If C's comm is empty, reads from /proc the name of C's thread; or, if the thread has gone, the name of C's
   process. If C's cgroup is empty, reads the cgroup of C's process. If a name cannot be read, the member
   stays empty. Also makes all texts printable, because names of processes and cgroups can have any bytes. */
void fr_cause_fill_from_proc(struct fr_cause *c);
