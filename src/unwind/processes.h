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

/* A process that has mapped an object. Later processes have greater serials, from 1 on. */
struct fr_unwind_found {
	uint64_t serial;
	pid_t pid;
	uint64_t start, end; /* the first map of the object */
};
/* Finds the first MAX processes from the serial FROM on that have mapped the object NUMBER, in the order of
   their serials. Returns how many these are. */
size_t fr_unwind_processes_find_maps(const struct fr_unwind_processes *p, uint32_t number, uint64_t from,
	struct fr_unwind_found *ret, size_t max);
/* Returns the serial of the next new process. */
uint64_t fr_unwind_processes_next_serial(const struct fr_unwind_processes *p);

struct fr_unwind_processes_stats {
	uint64_t processes; /* that have maps */
	uint64_t dropped;   /* had no room */
};
void fr_unwind_processes_stats(const struct fr_unwind_processes *p, struct fr_unwind_processes_stats *ret);
