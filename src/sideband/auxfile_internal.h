/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Private to auxfile*.c. */

#include "sideband/auxfile.h"

#include <limits.h>
#include <linux/aio_abi.h>
#include <stdbool.h>

struct fr_auxfile {
	int fd, dirfd;
	uint64_t bytes; /* size up to the end of the last whole record */
	struct {
		int fd; /* -1: there is no next file */
		uint64_t bytes;
		char tmp[NAME_MAX + 1];
		bool follows;
		int failed; /* 0, or the negative errno of an append */
		bool syncing;
		aio_context_t aio; /* 0: the kernel gave none */
		struct iocb request;
	} next;
};

/* Lock the file FD in DIRFD. Returns 0; -EBUSY: another process has the lock; or another negative errno.
   Errors set D. */
int auxfile_lock(int dirfd, int fd, struct fr_diag *d);

/* Give the name to the next file. Keep or remove the file that has the name now. Returns 0; 1: another
   process took the name first, try again; or a negative errno with D. */
int auxfile_claim_name(struct fr_auxfile *a, struct fr_diag *d);

/* auxfile_next.c: the next file has the name and becomes the present one. */
void auxfile_switch_to_next(struct fr_auxfile *a);

/* auxfile_old.c: returns whether the directory has a perf.data.sample.* (1 or 0), or a negative errno. */
int auxfile_has_samples(int dirfd);
