/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Inside jit/: one file in which one process tells of its code, and the object made of it. */

#include "jit/code.h"
#include "jit/open_files.h"
#include "jit/jit.h"
#include "perfdata/record.h"

struct jit_source {
	struct jit_source *next;
	struct jit_code code;
	char *path;		       /* of the object; NULL: there is none */
	uint8_t id[JIT_BUILD_ID_SIZE]; /* its build-id */
	uint64_t base;		       /* perf map: see jit_object_make() */
	uint64_t ino;		       /* jitdump: of the file; 0: a perf map */
	uint64_t from_ns, until_ns;    /* not before, and not after */
	uint64_t event_id;
	size_t given; /* jitdump: functions handed out */
};

struct jit_source *jit_source_free(struct jit_source *s);

/* Whose a perf map has to be, and what it is called. */
struct jit_who {
	long nspid; /* in its own namespace */
	uid_t uid;  /* effective */
};
int jit_find_who(pid_t pid, struct jit_who *ret); /* 0 or a negative errno */
/* Its root directory, to look from later (O_PATH). A descriptor or a negative errno. */
int jit_open_root(pid_t pid);
/* The perf map of WHO below ROOT. A descriptor, or a negative errno: -EPERM where somebody else put it there.
 */
int jit_open_perf_map(int root, const struct jit_who *who);

/* Whether M is executable memory that no file is behind. Its name has its NUL inside the record, or false. */
bool jit_is_code_of_process(const struct fr_record_mmap2 *m);

/* The perf map of the process that was PID at TIME_NS: what HELD (or NULL) has of one that exited, else as
 * the process itself would name it. Of the file at most MAX bytes are read, and RET_READ says how many.
 * RET_UNTIL_NS is how long that process was PID. 0; 1: there is none (or not one that counts); -ENOMEM. */
int jit_source_perf_map(pid_t pid, uint64_t time_ns, struct fr_jit_open_files *held, uint64_t max,
	struct jit_source **ret, uint64_t *ret_read, uint64_t *ret_until_ns);
/* The jitdump behind M, whether or not its process lives still. Same returns. */
int jit_source_dump(
	const struct fr_record_mmap2 *m, uint64_t max, struct jit_source **ret, uint64_t *ret_read);

/* The real user of PID, which the process cannot choose; (uid_t)-1 where it is gone. */
uid_t jit_user_of(pid_t pid);

/* Monotonic time at which PID was started, 0: not known. */
uint64_t jit_start_time(pid_t pid);
