/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Private to auxfile*.c. */

#include "sideband/auxfile.h"

#include <limits.h>
#include <linux/aio_abi.h>
#include <stdbool.h>

#define SAMPLE_PREFIX "perf.data.sample."
#define TMP_PREFIX "." FR_AUXFILE_NAME "."

struct fr_auxfile {
	int fd, dirfd;
	uint64_t bytes; /* up to the end of the last whole record */
	struct {
		int fd; /* -1: there is none */
		uint64_t bytes;
		char tmp[NAME_MAX + 1];
		bool follows;
		int failed; /* a negative errno of an append */
		bool syncing;
		aio_context_t aio; /* 0: the kernel has none to give */
		struct iocb request;
	} next;
};

/* Take the lock of FD, which is a file in DIRFD. -EBUSY: another process has it. Negative errno with D. */
int auxfile_lock(int dirfd, int fd, struct fr_diag *d);

/* The next file of A gets the name, and what has it is put away. 0; 1: somebody was quicker, try again; or a
   negative errno with D. */
int auxfile_take_name(struct fr_auxfile *a, struct fr_diag *d);

/* auxfile_tidy.c: whether a perf.data.sample.* is there; 1, 0 or a negative errno. */
int auxfile_has_samples(int dirfd);
/* Temporary files of a run that was killed. */
void auxfile_remove_temporary(int dirfd);

/* auxfile_next.c: the next file, which has the name now, is the present one. */
void auxfile_next_take(struct fr_auxfile *a);
