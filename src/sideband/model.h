/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The process model: live processes, their threads, names, maps and namespaces, the kernel's maps, ksymbols
 * and cgroups, as of one instant. Side-band records move it forward; it can be written as records that bring
 * a reader to that instant. Not thread-safe: the tracker owns it.
 */

#include "perfdata/record.h"
#include "base/buf.h"

#include <stdbool.h>

struct fr_model;
struct fr_blob_pool;

/* POOL holds the strings and the account of bytes; models of one owner may share it. NULL: one of its own. */
int fr_model_new(struct fr_blob_pool *pool, struct fr_model **ret);
struct fr_model *fr_model_free(struct fr_model *m);

/* Apply one whole record in our layout; types that say nothing of processes or maps are ignored. 0 or
 * -ENOMEM. */
int fr_model_apply(struct fr_model *m, const struct perf_event_header *record);

/* Append records that rebuild the state, all with time TIME_NS and event id ID: kernel map and modules
   (MMAP), ksymbols, cgroups, then for each process FORK (misc FORK_EXEC: do not clone), COMM, NAMESPACES,
   MMAP2s, and its threads. */
int fr_model_write(const struct fr_model *m, uint64_t time_ns, uint64_t id, struct fr_buf *ret);

/* The same in pieces: append about LESS_THAN bytes more at a time (a process is not cut apart). The model
   must not change in between. 1: there is more, 0: that was all, -ENOMEM. */
struct fr_model_cursor {
	int part;	/* 0, at the begin */
	const void *at; /* the next one in it */
};
int fr_model_write_some(const struct fr_model *m, struct fr_model_cursor *cursor, uint64_t time_ns,
	uint64_t id, size_t less_than, struct fr_buf *ret);

/* After a scan whose records, with time SCAN_NS, have been applied: EXITs with that time for processes that
   nothing was heard of since, and KSYMBOLs that unregister BPF programs, where the scan saw any. */
int fr_model_write_gone(const struct fr_model *m, uint64_t scan_ns, uint64_t id, struct fr_buf *ret);

/* Whether a module or the kernel's own text, of another name, is mapped in START … END. */
bool fr_model_kernel_overlaps(
	const struct fr_model *m, uint64_t start, uint64_t end, const char *name, size_t len);

struct fr_model_stats {
	uint64_t processes, threads, maps, bytes;
};
void fr_model_stats(const struct fr_model *m, struct fr_model_stats *ret);
