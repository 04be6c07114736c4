/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Private to jit/: a process that makes code, and the files that it must have. */

#include "perfdata/record.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The name and the owner that the perf map of a process must have. */
struct jit_identity {
	long nspid; /* the pid in its own namespace */
	uid_t uid;  /* effective */
};
int jit_find_identity(pid_t pid, struct jit_identity *ret); /* 0 or a negative errno */
/* The root directory of PID (O_PATH). A descriptor or a negative errno. */
int jit_open_root(pid_t pid);
/* The perf map below ROOT. A descriptor or a negative errno. -EPERM: it is another user's file. */
int jit_open_perf_map(int root, const struct jit_identity *identity);

/* NAME is one of the kernel's names for memory without a file. */
bool jit_is_anonymous(const char *name);
/* M maps executable memory of a process, and its name has its NUL inside the record. */
bool jit_is_executable(const struct fr_record_mmap2 *m);
/* M maps executable memory without a file. False also if the name of M has no NUL inside the record. */
bool jit_is_code_of_process(const struct fr_record_mmap2 *m);

/* The real user of PID, which the process cannot choose. (uid_t)-1: it has exited. */
uid_t jit_user_of(pid_t pid);

/* The monotonic start time of PID. 0: not known. */
uint64_t jit_start_time(pid_t pid);
