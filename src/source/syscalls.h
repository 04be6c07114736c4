/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* System calls by their names, as this machine numbers them: for Syscall= of the probe syscall-latency. */

#include "base/diag.h"

#include <stdint.h>

/* Of the global `syscalls` of src/bpf/syscall-latency.bpf.c: one byte a number, 1 where it is watched. */
#define FR_SYSCALLS 512

/* The number of NAME ("openat"), or -ENOENT. */
int fr_syscall_number(const char *name);

/* NAMES, separated by blanks or commas, into RET. 0; -EINVAL with D for a name that is none, or where there
   is none at all. RET is touched only on success. */
int fr_syscalls_parse(const char *names, uint8_t ret[static FR_SYSCALLS], struct fr_diag *d);
