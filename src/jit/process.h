/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Private to jit/: a process that makes code, as /proc shows it. */

#include "perfdata/record.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The name and the owner that the perf map of a process must have. */
struct jit_identity {
	long nspid; /* pid of the process in its own pid namespace */
	uid_t uid;  /* effective user of the process */
};
/* Returns 0 or a negative errno. */
int jit_find_identity(pid_t pid, struct jit_identity *ret);
/* Opens the root directory of PID (O_PATH). Returns a descriptor or a negative errno. */
int jit_open_root(pid_t pid);
/* Opens the perf map below ROOT. Returns a descriptor; -EPERM if the file belongs neither to the user in
   IDENTITY nor to root; or another negative errno. */
int jit_open_perf_map(int root, const struct jit_identity *identity);

/* Returns whether NAME, the name of a map, is one of the kernel's names for anonymous or shared memory. */
bool jit_is_anonymous(const char *name);
/* Returns whether M maps executable memory of a process, and its name ends inside the record. */
bool jit_is_executable(const struct fr_record_mmap2 *m);
/* Returns whether jit_is_executable() and jit_is_anonymous() are true for M. */
bool jit_is_code_of_process(const struct fr_record_mmap2 *m);

/* Returns the real user of PID, which the process cannot choose; (uid_t)-1 if the process has exited. */
uid_t jit_user_of(pid_t pid);

/* Returns the start time of PID on the monotonic clock; 0 if it is not known. */
uint64_t jit_start_time(pid_t pid);
