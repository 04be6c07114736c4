/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <stdint.h>

/* Returns the inode of the pid namespace of this process; 0 if it is the initial one, in which the kernel and
   BPF programs count pids. */
uint32_t fr_own_pidns(void);
