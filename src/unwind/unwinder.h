/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The unwinder keeps what BPF programs need to walk the user stacks of all processes: for each process its
 * executable maps, and for each ELF object a table that says how to find the caller of each address. A thread
 * of its own, fr-unwinder, makes the tables: first for the objects that BPF needed most often. The memory of
 * tables and maps is bounded; the tables that were not needed for the longest time leave first.
 *
 * The maps of the processes come from side-band. BPF programs of the unwinder note at once that a process has
 * changed its executable maps, so that no stack is unwound by old maps (struct fr_unwind_change).
 *
 * The BPF programs of captures share the maps of the unwinder (fr_unwinder_share_maps()), so a reload keeps
 * them.
 */

#include "base/diag.h"
#include "bpf/unwind.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct fr_unwinder;
struct bpf_object;

struct fr_unwinder_config {
	uint64_t memory_bytes;	 /* the most bytes of tables and maps; 0: 64 MiB */
	uint64_t cpu_budget_ppm; /* CPUBudget=, in millionths of a CPU; 0: no limit. To make tables, the
				    thread uses at most half of it (unwind/throttle.h). */
};

/* Loads the BPF programs that watch changes of maps, and starts the thread. Returns 0; or a negative errno,
   with a message in D that says why stacks cannot be unwound here: no BTF, no capability. */
int fr_unwinder_start(const struct fr_unwinder_config *config, struct fr_unwinder **ret, struct fr_diag *d);
/* Ends the thread and frees U. Tables and maps stay as they are, for BPF programs that live on because
   another process has their links (capture/bpf_fds.h); the kernel frees them with the last program. NULL is
   allowed; returns NULL. */
struct fr_unwinder *fr_unwinder_stop(struct fr_unwinder *u);
pid_t fr_unwinder_tid(const struct fr_unwinder *u);
/* Changes the bounds while the unwinder runs. Any thread. */
void fr_unwinder_set(struct fr_unwinder *u, const struct fr_unwinder_config *config);

/* Lets the open but not yet loaded OBJECT use the unwinder's maps in place of its own maps with the same
   names. Returns 0 or a negative errno. */
int fr_unwinder_share_maps(const struct fr_unwinder *u, struct bpf_object *object);
/* Sets RET to the links of the programs that note changes of maps, which stay the unwinder's. While they
   live, stacks are not unwound by old maps, even if no process tells the unwinder of the changes. Returns
   their number. U is NULL: there are none. */
#define FR_UNWINDER_LINKS_MAX 4
size_t fr_unwinder_links(const struct fr_unwinder *u, int ret[static FR_UNWINDER_LINKS_MAX]);

/* Gets side-band: LEN bytes of whole records in the common layout, in any order of times. Copies them, and
   never waits. One thread at a time. */
void fr_unwinder_update(struct fr_unwinder *u, const void *records, size_t len);
/* All side-band that is older than SINCE_NS was in a call of fr_unwinder_update() before this call. The same
   thread as for fr_unwinder_update(). Returns whether the unwinder has lost records by itself, so that only a
   scan of /proc brings back its trust; at most once in a minute. */
bool fr_unwinder_end_round(struct fr_unwinder *u, uint64_t since_ns);

/* Returns whether the queue of records is more than half full. Any thread. */
bool fr_unwinder_is_behind(const struct fr_unwinder *u);

/* Side-band was lost, so the maps of any process can be wrong: until fr_unwinder_trust(), no process is
   unwound by its maps where a BPF program has ever seen a change of them. Any thread. */
void fr_unwinder_distrust(struct fr_unwinder *u);
/* All records of a scan of /proc, which began at SCAN_NS, were in calls of fr_unwinder_update() before this
   call. The maps are right again after the next round that ends behind SCAN_NS, unless side-band was lost
   after SCAN_NS. The same thread as for fr_unwinder_update(). */
void fr_unwinder_trust(struct fr_unwinder *u, uint64_t scan_ns);

struct fr_unwinder_stats {
	uint64_t walks[_FR_UNWIND_RESULTS]; /* of all CPUs */
	uint64_t frames;
	uint64_t memory_bytes, memory_max_bytes; /* of tables and maps */
	uint64_t processes, objects, tables;
	uint64_t tables_made, tables_evicted, tables_failed, tables_ns; /* tables_ns: time to make them */
	uint64_t tables_held_back; /* how often a table was wanted, but the CPU time for tables was used up */
	bool holds_back;	   /* that is so now */
	uint64_t processes_dropped; /* no room for the maps of so many processes */
	uint64_t queue_drops; /* records that did not fit into the queue; the maps are distrusted then */
	/* False: this kernel cannot run BPF programs at the entry and exit of its functions, so no change of
	   maps is noted except an exec. For the length of a round, a walk can then miss a new map. */
	bool notes_changes;
};
/* Any thread. */
void fr_unwinder_stats(const struct fr_unwinder *u, struct fr_unwinder_stats *ret);
