/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Which object files the samples of a perf.data of ours are in, by their addresses and call chains.
 *
 * An address counts for every object that its process ever had there up to that point of the file: a few too
 * many where maps were replaced, and none too few.
 */

#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FR_OBJECT_ID_MAX 20

struct fr_object {
	const char *path; /* as the record has it: "/usr/lib/x.so", "[vdso]", "/tmp/x (deleted)" */
	uint8_t id[FR_OBJECT_ID_MAX];
	size_t id_len; /* 0: the record brought none, and */
	uint64_t ino;  /* it is a file of this inode */
	pid_t pid;     /* a process that mapped it, at start … end */
	uint64_t start, end;
	bool hit;
};

struct fr_hits {
	struct fr_object **v; /* each hit one once */
	size_t n;
	bool kernel; /* samples are in the kernel, too */
	bool cut;    /* there were more maps than we keep */
	struct fr_hits_private *private;
};

/* Read all of PATH. 0 or a negative errno, with D. Blocks; takes as long as reading the file does. */
int fr_hits_read(const char *path, struct fr_hits **ret, struct fr_diag *d);
struct fr_hits *fr_hits_free(struct fr_hits *h);
