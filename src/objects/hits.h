/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Finds the objects that the samples of a perf.data file hit: the address of a sample, or an address in its
 * call chain, is in a map of the object.
 *
 * An address hits all objects that the process or its parents mapped there, according to the records before
 * the sample. So if a map was replaced, the result also has the old object. The result misses objects only if
 * there are more maps or objects than the limits in hits.c.
 */

#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FR_OBJECT_ID_MAX 20

struct fr_object {
	const char *path; /* as in the record of the map: "/usr/lib/x.so", "[vdso]", "/tmp/x (deleted)" */
	uint8_t id[FR_OBJECT_ID_MAX];
	size_t id_len; /* 0: the record of the map has an inode, and no build-id */
	uint64_t ino;
	pid_t pid; /* a process that mapped the object at start … end */
	uint64_t start, end;
	bool hit;
};

struct fr_hits {
	struct fr_object **v; /* the objects that are hit, each once */
	size_t n;
	bool kernel; /* true: samples hit the kernel, too */
};

/* Reads the file PATH. Returns 0; or a negative errno, with a message in D. Can wait for a disk. */
int fr_hits_read(const char *path, struct fr_hits **ret, struct fr_diag *d);
struct fr_hits *fr_hits_free(struct fr_hits *h);
