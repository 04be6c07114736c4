/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The names of this machine's system calls, for Syscall= of the probe syscall-latency. */

#include "base/diag.h"

#include <stdint.h>

/* The number of elements of the array `syscalls` in src/bpf/syscall-latency.bpf.c. Element N is 1 if system
   call N is watched, otherwise 0. */
#define FR_SYSCALLS 512

/* Returns the number of the system call NAME ("openat"), or -ENOENT. */
int fr_syscall_number(const char *name);

/* Parses NAMES, separated by blanks or commas, into RET. Returns 0; or -EINVAL, with a message in D, if a
   name is unknown or NAMES has no name. RET changes only on success. */
int fr_syscalls_parse(const char *names, uint8_t ret[static FR_SYSCALLS], struct fr_diag *d);
