/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Only processes*.c include this header. */

#include "unwind/processes.h"
#include "unwind/slots.h"
#include "unwind/space.h"

/* As many slots as there are, and as many processes again that have no maps. */
#define PROCESSES_MAX (2 * FR_UNWIND_SLOTS)

struct unwind_process {
	UT_hash_handle hh;
	uint32_t pid;
	uint64_t serial;	       /* increases in the order of the list */
	struct fr_unwind_space *space; /* as the records say; NULL: no maps */
	struct fr_unwind_space *shown; /* in the slot; NULL: none */
	uint32_t *tids;		       /* the threads except the leader, sorted */
	size_t n_tids, cap_tids;
	bool leader_dead;
	bool is_dirty;	      /* is in the list of changed processes */
	bool is_dropped;      /* has had no room, until its next exec */
	uint64_t conflict_ns; /* a BPF program has changed the slot before this time; 0: no */
	struct unwind_process *prev, *next;
};

struct fr_unwind_processes {
	struct fr_unwind_shared *shared; /* borrowed, as the next two */
	struct fr_unwind_memory *memory;
	struct fr_unwind_objects *objects;
	struct unwind_process *processes; /* by pid */
	struct unwind_process *dirty;
	struct fr_unwind_space *retired; /* published, and not used by any process; by position */
	uint64_t orphans_ns; /* since when retired spaces are in slots of unknown processes; 0: none */
	uint64_t n_shown, n_dropped;
	uint64_t next_serial; /* from 1 on */
};

void unwind_mark_dirty(struct fr_unwind_processes *p, struct unwind_process *process);
void unwind_unref_space(struct fr_unwind_processes *p, struct fr_unwind_space *s);
/* Gives PROCESS no maps until it begins again. */
void unwind_drop(struct fr_unwind_processes *p, struct unwind_process *process);
/* Frees the slot of PROCESS. */
void unwind_hide(struct fr_unwind_processes *p, struct unwind_process *process);
