/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What code is about, by the names of its functions: a stack with futex_wait and pthread_mutex_lock waits for
 * a lock. The table of names is in classes.c. Not thread-safe.
 */

#include "report/profile.h"

enum fr_code_class {
	FR_CODE_LOCK = 1u << 0,		  /* takes a lock, of a program or of the kernel */
	FR_CODE_DISK = 1u << 1,		  /* waits for a block device, or for pages of a file */
	FR_CODE_RECLAIM = 1u << 2,	  /* frees memory for an allocation */
	FR_CODE_CGROUP_RECLAIM = 1u << 3, /* because of the limit of a cgroup */
	FR_CODE_SWAP = 1u << 4,
	FR_CODE_FAULT = 1u << 5, /* handles a page fault */
	FR_CODE_TIMER = 1u << 6, /* sets a timer, or runs because of one */
	FR_CODE_SIGNAL = 1u << 7,
	FR_CODE_SLEEP = 1u << 8, /* sleeps for a time that the program chose */
	FR_CODE_FORK = 1u << 9,	 /* makes, ends or replaces a process */
	FR_CODE_NETWORK = 1u << 10,
	FR_CODE_SERVER = 1u << 11, /* waits for a file system that is a server: FUSE, NFS, SMB, 9p */
	FR_CODE_SYSCALL = 1u << 12,
	FR_CODE_INTERRUPT = 1u << 13,
	FR_CODE_IDLE = 1u << 14,   /* waits for work: epoll, select, wait, a pipe */
	FR_CODE_SPIN = 1u << 15,   /* waits for a lock of the kernel while it runs */
	FR_CODE_PEER = 1u << 16,   /* waits until the reader of a pipe or socket has made room */
	FR_CODE_CHILD = 1u << 17,  /* waits for a child */
	FR_CODE_FUTEX = 1u << 18,  /* waits for a word in memory: a lock, a condition, the end of a thread */
	FR_CODE_KERNEL = 1u << 19, /* is a thread of the kernel */
};

struct fr_classes {
	struct fr_buf of_frame; /* uint32_t of each frame; bit 31: is known */
	struct fr_buf of_stack; /* uint32_t of each stack; the same */
};

/* Sets *RET to the classes of all functions of STACK. Returns 0 or -ENOMEM. */
int fr_classes_of_stack(struct fr_classes *c, const struct fr_profile *p, uint32_t stack, uint32_t *ret);
void fr_classes_deinit(struct fr_classes *c);
