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
		bool follows; /* fr_auxfile_append() also appends to the next file */
		int failed;   /* 0, or the negative errno of an append to the next file */
		bool syncing;
		aio_context_t aio; /* context of the asynchronous sync; 0: there is no context */
		struct iocb request;
	} next;
};

/* Locks FD, a file in the directory DIRFD. Returns 0; -EBUSY if another process has the lock; or another
   negative errno. On failure, D gets a message. */
int auxfile_lock(int dirfd, int fd, struct fr_diag *d);

/* Renames the next file to perf.data.auxiliary. A file that has this name already is renamed or removed as
   fr_auxfile_open() does it with an old file. Returns 0; 1 if another process changed the directory at the
   same time, and the caller should try again; or a negative errno, with a message in D. */
int auxfile_claim_name(struct fr_auxfile *a, struct fr_diag *d);

/* auxfile_next.c: closes the current file. The next file, which already has the name perf.data.auxiliary,
   becomes the current file. */
void auxfile_switch_to_next(struct fr_auxfile *a);

/* auxfile_old.c: returns 1 if the directory has a perf.data.sample.*; 0 if it has no such file; or a negative
   errno. */
int auxfile_has_samples(int dirfd);
