/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A process model is the state of the machine at one time: the live processes with their threads, names, maps
 * and namespaces; the maps and ksymbols of the kernel; and the cgroups. Each side-band record (mmap, comm,
 * fork, exit …) that is applied to the model moves the model to a later time. The model can be written as
 * records, from which a reader learns this state. Not thread-safe; the tracker (tracker.h) owns the models.
 */

#include "perfdata/record.h"
#include "base/buf.h"

#include <stdbool.h>

struct fr_blob;
struct fr_model;
struct fr_blob_pool;

/* POOL (borrowed) keeps the strings and counts the bytes. Several models of one owner can share a pool. If
   POOL is NULL, the model has its own pool. Returns 0 or -ENOMEM. */
int fr_model_new(struct fr_blob_pool *pool, struct fr_model **ret);
struct fr_model *fr_model_free(struct fr_model *m);

/* Applies one whole record in the common layout (perfdata/record.h). The model ignores types that describe
   neither processes nor the kernel. Returns 0 or -ENOMEM. */
int fr_model_apply(struct fr_model *m, const struct perf_event_header *record);
/* Does the same for a record in another layout: its sample id has TAIL_BYTES, and its time is TIME_NS. */
int fr_model_apply_foreign(
	struct fr_model *m, const struct perf_event_header *record, size_t tail_bytes, uint64_t time_ns);

/* Appends records that rebuild the model, all with time TIME_NS and event id ID. The kernel maps (MMAP),
   ksymbols and cgroups come first. The processes come after them: for each process its FORK (misc FORK_EXEC),
   COMM, NAMESPACES and MMAP2s, and a FORK and a COMM for each of its other threads. Returns 0 or -ENOMEM. On
   failure, RET does not change. */
int fr_model_write(const struct fr_model *m, uint64_t time_ns, uint64_t id, struct fr_buf *ret);

/* The position in the model at which the next fr_model_write_some() begins. If all members are zeros, this is
   the start of the model. */
struct fr_model_cursor {
	int part;	/* part of the model; 0: the first part */
	const void *at; /* the next element of this part */
};
/* Writes the records of fr_model_write() in pieces: each call appends one piece. A piece ends as soon as it
   has LESS_THAN bytes or more. All records of a process are in the same piece. The model must not change
   between the calls. Returns 1 if there are more records; 0 if the last record was appended; or -ENOMEM. On
   failure, RET may have a part of the piece. */
int fr_model_write_some(const struct fr_model *m, struct fr_model_cursor *cursor, uint64_t time_ns,
	uint64_t id, size_t less_than, struct fr_buf *ret);

/* Appends EXITs for the processes that a scan did not find, and KSYMBOLs that unregister the BPF programs
   that the scan did not find. Call this function after the records of the scan, whose time is SCAN_NS, were
   applied. A process or BPF program is gone if all records that describe it are older than SCAN_NS. If the
   scan found no ksymbol, no KSYMBOL is appended. Returns 0 or -ENOMEM. */
int fr_model_write_gone(const struct fr_model *m, uint64_t scan_ns, uint64_t id, struct fr_buf *ret);

/* Returns whether START … END overlaps a map of the kernel (its text or a module) that has another name than
   NAME. */
bool fr_model_kernel_overlaps(
	const struct fr_model *m, uint64_t start, uint64_t end, const char *name, size_t len);

/* A map that contains an address. */
struct fr_model_map {
	uint64_t start, end, pgoff;
	/* Identifies the file of the map: maps have the same blob if they have the same path and the same
	   build-id or inode. It belongs to the model; fr_blob_ref() keeps it. */
	struct fr_blob *file;
};
/* Finds the map of the process PID, or of the kernel, that contains ADDR. Returns whether there is one. */
bool fr_model_find_map(const struct fr_model *m, uint32_t pid, uint64_t addr, struct fr_model_map *ret);
bool fr_model_find_kernel_map(const struct fr_model *m, uint64_t addr, struct fr_model_map *ret);
/* Finds the map of the kernel whose name begins with PREFIX. */
bool fr_model_find_kernel_text(const struct fr_model *m, const char *prefix, struct fr_model_map *ret);

/* The file of a map of a process. PATH is not NUL-terminated. */
struct fr_model_file {
	const char *path;
	size_t path_len;
	const uint8_t *build_id; /* NULL: the record of the map has a device and an inode instead */
	size_t build_id_len;
};
void fr_model_describe_file(const struct fr_blob *file, struct fr_model_file *ret);

/* Returns the name of the thread TID of PID; if it has none, the name of the process; or NULL. The name
   belongs to the model and is not NUL-terminated. */
const struct fr_blob *fr_model_comm(const struct fr_model *m, uint32_t pid, uint32_t tid);

/* Returns the number of live threads of PID; 0 if there is no such process. */
uint32_t fr_model_n_threads(const struct fr_model *m, uint32_t pid);
/* Returns the path of the cgroup ID, or NULL. The path belongs to the model and is not NUL-terminated. */
const struct fr_blob *fr_model_cgroup(const struct fr_model *m, uint64_t id);
/* Returns the process that made the process PID, or 0 if PID is not in the model. */
uint32_t fr_model_parent(const struct fr_model *m, uint32_t pid);

/* Returns the name of the ksymbol (a BPF program or a trampoline) that contains ADDR, or NULL. *RET_START
   gets the address of its start. The name belongs to the model and is not NUL-terminated. */
const struct fr_blob *fr_model_find_ksymbol(const struct fr_model *m, uint64_t addr, uint64_t *ret_start);

struct fr_model_stats {
	uint64_t processes, threads, maps, bytes;
};
void fr_model_stats(const struct fr_model *m, struct fr_model_stats *ret);
