/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Keeps perf maps (/tmp/perf-PID.map) open, so that a dump can read the perf map of a process that has
 * exited, for example after a crash. The dump then needs neither the path nor the process. The perf maps are
 * not copied.
 *
 *   executable memory without a file ──► open the perf map ──► EXIT: open it once more ──► close it when the
 *                                                              ring has nothing of the process any more
 *
 * The number of files is bounded in all, and for each user except root. Any thread. docs/design/42 has the
 * rules.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct fr_jit_open_files;

/* Returns NULL if there is no memory. */
struct fr_jit_open_files *fr_jit_open_files_new(void);
struct fr_jit_open_files *fr_jit_open_files_free(struct fr_jit_open_files *f);

/* RECORDS are whole records in the common layout (perfdata/record.h), at most a few seconds old. If a record
   shows that a process makes code, opens the perf map of the process. At the EXIT of the process, opens the
   perf map once more. Closes the files of processes that exited before LOW_WATERMARK_NS, because the ring has
   no record that is older than this time. Can wait for a disk. */
void fr_jit_open_files_update(
	struct fr_jit_open_files *f, const void *records, size_t len, uint64_t low_watermark_ns);

/* After this call, files of processes that exited at SINCE_NS or later are not closed, because a kept dump (a
   dump that failed and will be written again) needs them. If SINCE_NS is UINT64_MAX, there is no kept
   dump. */
void fr_jit_open_files_keep_since(struct fr_jit_open_files *f, uint64_t since_ns);

struct fr_jit_open_file {
	int fd; /* the caller closes it; -1: no file */
	uid_t uid;
	uint64_t from_ns;  /* start of the process */
	uint64_t until_ns; /* exit of the process; UINT64_MAX: the process still runs */
};

/* Finds the perf map of the process that had PID at TIME_NS. Returns 0; -ENOENT if no such file is open here;
   or another negative errno. */
int fr_jit_open_files_find(
	struct fr_jit_open_files *f, pid_t pid, uint64_t time_ns, struct fr_jit_open_file *ret);
