/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Inside jit/: one file in which one process tells of its code, and the object made of it. */

#include "jit/code.h"
#include "jit/jit.h"
#include "perfdata/record.h"

struct jit_source {
	struct jit_source *next;
	struct jit_code code;
	char *path;		       /* of the object; NULL: there is none */
	uint8_t id[JIT_BUILD_ID_SIZE]; /* its build-id */
	uint64_t base;		       /* perf map: see jit_object_make() */
	uint64_t ino;		       /* jitdump: of the file; 0: a perf map */
	uint64_t from_ns;	       /* not before */
	uint64_t event_id;
	size_t given; /* jitdump: functions handed out */
};

struct jit_source *jit_source_free(struct jit_source *s);

/* The perf map of PID, as the process itself would name it; of its file at most MAX bytes, and RET_READ
 * says how many. 0; 1: there is none (or not one that counts); -ENOMEM. */
int jit_source_perf_map(pid_t pid, uint64_t max, struct jit_source **ret, uint64_t *ret_read);
/* The jitdump behind M, whether or not its process lives still. Same returns. */
int jit_source_dump(
	const struct fr_record_mmap2 *m, uint64_t max, struct jit_source **ret, uint64_t *ret_read);

/* The real user of PID, which the process cannot choose; (uid_t)-1 where it is gone. */
uid_t jit_user_of(pid_t pid);

/* Monotonic time at which PID was started, 0: not known. */
uint64_t jit_start_time(pid_t pid);
