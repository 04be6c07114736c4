/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Perf maps of processes that will have exited when a dump is made, as after a crash: each is held open from
 * when its process is seen to make code, so that neither its path, nor the process, nor its root have to be
 * there later. Looked for once more when the process exits. Nothing is copied: the file is its owner's.
 *
 *   side-band ──► executable memory without a file ──► its perf map is opened ──► EXIT ──► kept
 *                                   until the ring holds nothing of the process any more ──┘
 *
 * Bounded in files, also for each user who is not root. Any thread.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct fr_jit_open_files;

struct fr_jit_open_files *fr_jit_open_files_new(void); /* NULL: no memory */
struct fr_jit_open_files *fr_jit_open_files_free(struct fr_jit_open_files *h);

/* Look at RECORDS, whole ones in our layout, soon after they were made. What exited before LOW_WATERMARK_NS
   is let go of. Blocks on files. */
void fr_jit_open_files_update(
	struct fr_jit_open_files *h, const void *records, size_t len, uint64_t low_watermark_ns);

/* What exited at SINCE_NS or later stays, as a dump that could not be written yet has more than the ring.
   UINT64_MAX: there is none. */
void fr_jit_open_files_keep_since(struct fr_jit_open_files *h, uint64_t since_ns);

struct fr_jit_open_file {
	int fd; /* the caller's; -1: none */
	uid_t uid;
	uint64_t from_ns, until_ns; /* when the process lived; UINT64_MAX: it does */
};

/* The perf map of the process that was PID at TIME_NS. 0 or a negative errno; -ENOENT: none is held. */
int fr_jit_open_files_find(
	struct fr_jit_open_files *h, pid_t pid, uint64_t time_ns, struct fr_jit_open_file *ret);

/* How many are held; for tests. */
size_t fr_jit_open_files_count(struct fr_jit_open_files *h);
