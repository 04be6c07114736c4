/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The processes and their executable maps, from side-band in the order of time, and the slots by which BPF
 * programs find them.
 *
 *   record ──► apply: process → space ──► publish: memory, slot ──► reclaim: what no slot has any more
 *
 * A space that the process does not use any more can still be in the slot of a child that a BPF program has
 * made (src/bpf/unwind-maps.bpf.c). So it is freed only when no slot has it. Not thread-safe.
 */

#include "unwind/objects.h"

struct fr_unwind_processes;

int fr_unwind_processes_new(struct fr_unwind_shared *shared, struct fr_unwind_memory *memory,
	struct fr_unwind_objects *objects, struct fr_unwind_processes **ret);
/* Leaves the processes in the slots, because BPF programs can live on. */
struct fr_unwind_processes *fr_unwind_processes_free(struct fr_unwind_processes *p);

/* Applies a whole record in the common layout. Returns 0 or -ENOMEM. */
int fr_unwind_processes_apply(struct fr_unwind_processes *p, const struct perf_event_header *h);
/* Returns whether fr_unwind_processes_apply() needs H, a whole record in the common layout. Any thread. */
bool fr_unwind_processes_need(const struct perf_event_header *h);

/* Brings all changes to the slots. All records that are older than SINCE_NS were applied. When there is no
   room, evicts tables; then the process gets no maps. */
void fr_unwind_processes_publish(struct fr_unwind_processes *p, uint64_t since_ns, uint64_t now_ns);
/* Waits for BPF programs, and frees spaces and other memory that they do not find any more. */
void fr_unwind_processes_reclaim(struct fr_unwind_processes *p, uint64_t now_ns);
bool fr_unwind_processes_has_garbage(const struct fr_unwind_processes *p);
/* Moves the spaces out of excess chunks, at the next publish. */
void fr_unwind_processes_leave_excess(struct fr_unwind_processes *p);

/* Finds a process other than NOT that has mapped the object NUMBER. Returns false if there is none. */
bool fr_unwind_processes_find_map(const struct fr_unwind_processes *p, uint32_t number, pid_t not, pid_t *ret,
	struct fr_unwind_map *ret_map);

struct fr_unwind_processes_stats {
	uint64_t processes; /* that have maps */
	uint64_t dropped;   /* had no room */
};
void fr_unwind_processes_stats(const struct fr_unwind_processes *p, struct fr_unwind_processes_stats *ret);
