/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The process model: live processes with their threads, names, maps and namespaces, and the maps of the
 * kernel, ksymbols and cgroups, all at one moment. Each side-band record that is applied to the model moves
 * it to a later moment. The model can be written as records, from which a reader learns the state of its
 * moment. Not thread-safe; the tracker owns it.
 */

#include "perfdata/record.h"
#include "base/buf.h"

#include <stdbool.h>

struct fr_model;
struct fr_blob_pool;

/* POOL (borrowed) keeps the strings and counts the bytes. Several models of one owner may share a pool. POOL
   NULL: the model has its own pool. Returns 0 or -ENOMEM. */
int fr_model_new(struct fr_blob_pool *pool, struct fr_model **ret);
struct fr_model *fr_model_free(struct fr_model *m);

/* Apply one whole record in our layout. The model ignores types that describe neither processes nor the
   kernel. Returns 0 or -ENOMEM. */
int fr_model_apply(struct fr_model *m, const struct perf_event_header *record);

/* Append records that rebuild the model, all with time TIME_NS and event id ID. First come kernel maps
   (MMAP), ksymbols and cgroups; then for each process its FORK (misc FORK_EXEC), COMM, NAMESPACES, MMAP2s and
   threads. Returns 0; or -ENOMEM, and then RET does not change. */
int fr_model_write(const struct fr_model *m, uint64_t time_ns, uint64_t id, struct fr_buf *ret);

/* A position of fr_model_write_some() in the model. All zeros: the begin of the model. */
struct fr_model_cursor {
	int part;	/* 0: start at the beginning */
	const void *at; /* the next element of that part */
};
/* Write the records of fr_model_write() in pieces: each call appends one piece of about LESS_THAN bytes. All
   records of a process are in the same piece. The model must not change between the calls. Returns 1 if there
   are more records; 0 if these were the last; or -ENOMEM. */
int fr_model_write_some(const struct fr_model *m, struct fr_model_cursor *cursor, uint64_t time_ns,
	uint64_t id, size_t less_than, struct fr_buf *ret);

/* Call it after the records of a scan with time SCAN_NS were applied. A process that no record of SCAN_NS or
   later has described is gone: append its EXITs. BPF programs without such a record are also gone: if the
   scan saw any ksymbol, append KSYMBOLs that unregister them. Returns 0 or -ENOMEM. */
int fr_model_write_gone(const struct fr_model *m, uint64_t scan_ns, uint64_t id, struct fr_buf *ret);

/* Returns whether START … END overlaps a map of the kernel (its text or a module) whose name is not NAME. */
bool fr_model_kernel_overlaps(
	const struct fr_model *m, uint64_t start, uint64_t end, const char *name, size_t len);

struct fr_model_stats {
	uint64_t processes, threads, maps, bytes;
};
void fr_model_stats(const struct fr_model *m, struct fr_model_stats *ret);
