/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The process model: live processes with their threads, names, maps and namespaces, and the kernel's maps,
 * ksymbols and cgroups, as of one moment. Side-band records move it forward. It can be written as records
 * that bring a reader to that moment. Not thread-safe; the tracker owns it.
 */

#include "perfdata/record.h"
#include "base/buf.h"

#include <stdbool.h>

struct fr_model;
struct fr_blob_pool;

/* POOL (borrowed) keeps the strings and counts the bytes. Models of one owner may share it. NULL: the model
   has its own pool. 0 or -ENOMEM. */
int fr_model_new(struct fr_blob_pool *pool, struct fr_model **ret);
struct fr_model *fr_model_free(struct fr_model *m);

/* Apply one whole record in our layout. The model ignores types that describe neither processes nor the
   kernel. 0 or -ENOMEM. */
int fr_model_apply(struct fr_model *m, const struct perf_event_header *record);

/* Append records that rebuild the model, all with time TIME_NS and event id ID: kernel maps (MMAP), ksymbols,
   cgroups; then for each process FORK (misc FORK_EXEC), COMM, NAMESPACES, its MMAP2s, and its threads. 0, or
   -ENOMEM and RET is as before. */
int fr_model_write(const struct fr_model *m, uint64_t time_ns, uint64_t id, struct fr_buf *ret);

/* The same in pieces of about LESS_THAN bytes. A process is not split. The model must not change between the
   calls. 1: there is more; 0: that was all; -ENOMEM. */
struct fr_model_cursor {
	int part;	/* 0: start at the beginning */
	const void *at; /* the next element of that part */
};
int fr_model_write_some(const struct fr_model *m, struct fr_model_cursor *cursor, uint64_t time_ns,
	uint64_t id, size_t less_than, struct fr_buf *ret);

/* Append EXITs for the processes that no record has described since SCAN_NS, and KSYMBOLs that unregister
   such BPF programs if the scan saw any ksymbol. To be called after the records of a scan, which have the
   time SCAN_NS, were applied. 0 or -ENOMEM. */
int fr_model_write_gone(const struct fr_model *m, uint64_t scan_ns, uint64_t id, struct fr_buf *ret);

/* The kernel's text or a module with another name than NAME is mapped in START … END. */
bool fr_model_kernel_overlaps(
	const struct fr_model *m, uint64_t start, uint64_t end, const char *name, size_t len);

struct fr_model_stats {
	uint64_t processes, threads, maps, bytes;
};
void fr_model_stats(const struct fr_model *m, struct fr_model_stats *ret);
