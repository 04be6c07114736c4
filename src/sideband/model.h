/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The process model: live processes with their threads, names, maps and namespaces; and also the maps and
 * ksymbols of the kernel, and the cgroups. All of these are as they were at one time. Each side-band record
 * that is applied to the model moves the model to a later time. The model can be written as records. From
 * these, a reader learns the state at the time of the model. Not thread-safe; the tracker owns the models.
 */

#include "perfdata/record.h"
#include "base/buf.h"

#include <stdbool.h>

struct fr_model;
struct fr_blob_pool;

/* POOL (borrowed) keeps the strings and counts the bytes. Several models of one owner may share a pool. If
   POOL is NULL, the model has its own pool. Returns 0 or -ENOMEM. */
int fr_model_new(struct fr_blob_pool *pool, struct fr_model **ret);
struct fr_model *fr_model_free(struct fr_model *m);

/* Apply one whole record in our layout. The model ignores types that describe neither processes nor the
   kernel. Returns 0 or -ENOMEM. */
int fr_model_apply(struct fr_model *m, const struct perf_event_header *record);

/* Append records that rebuild the model, all with time TIME_NS and event id ID. First come kernel maps
   (MMAP), ksymbols and cgroups. Then come for each process its FORK (misc FORK_EXEC), COMM, NAMESPACES and
   MMAP2s, and a FORK and a COMM for each of its other threads. Returns 0; or -ENOMEM, and then RET does not
   change. */
int fr_model_write(const struct fr_model *m, uint64_t time_ns, uint64_t id, struct fr_buf *ret);

/* The position in the model at which the next fr_model_write_some() begins. All zeros: the begin of the
   model. */
struct fr_model_cursor {
	int part;	/* of the model; 0: the first part */
	const void *at; /* the next element of that part */
};
/* Write the records of fr_model_write() in pieces: each call appends one piece. A piece ends as soon as it
   has LESS_THAN bytes or more. All records of a process are in the same piece. The model must not change
   between the calls. Returns 1 if there are more records; 0 if these were the last; or -ENOMEM, and then RET
   may have a part of the piece. */
int fr_model_write_some(const struct fr_model *m, struct fr_model_cursor *cursor, uint64_t time_ns,
	uint64_t id, size_t less_than, struct fr_buf *ret);

/* Call it after the records of a scan with time SCAN_NS were applied. If no record with a time of SCAN_NS or
   later describes a process, the process is gone: append EXITs of its threads. In the same way a BPF program
   is gone if no such record describes its ksymbol: append a KSYMBOL that unregisters it (but only if the scan
   saw any ksymbol). Returns 0 or -ENOMEM. */
int fr_model_write_gone(const struct fr_model *m, uint64_t scan_ns, uint64_t id, struct fr_buf *ret);

/* Returns whether START … END overlaps a map of the kernel (its text or a module) that has another name than
   NAME. */
bool fr_model_kernel_overlaps(
	const struct fr_model *m, uint64_t start, uint64_t end, const char *name, size_t len);

struct fr_model_stats {
	uint64_t processes, threads, maps, bytes;
};
void fr_model_stats(const struct fr_model *m, struct fr_model_stats *ret);
