/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Only unwinder*.c include this header. */

#include "unwind/unwinder.h"
#include "base/buf.h"
#include "base/lock.h"
#include "sideband/reorder.h"
#include "unwind/kernel.h"
#include "unwind/tables.h"
#include "unwind/throttle.h"

#define UNWIND_QUEUE_BYTES (64u << 20)

struct fr_unwinder {
	struct fr_unwind_kernel kernel;
	struct fr_unwind_memory *memory; /* this and the next members until RECLAIM_NS: of the thread */
	struct fr_unwind_objects *objects;
	struct fr_unwind_processes *processes;
	struct fr_unwind_tables tables;
	struct fr_unwind_throttle throttle; /* of all work for tables */
	uint64_t held_back;
	bool holds_back;
	struct fr_reorder order;
	uint64_t applied_ns; /* all older records were applied */
	uint64_t look_ns;    /* time of the next look at what BPF programs need */
	uint64_t reclaim_ns; /* do not wait for BPF programs before this time */
	pthread_t thread;
	bool has_thread;

	struct fr_lock lock;
	struct fr_cond changed;
	/* Guarded by the lock. */
	pid_t tid;
	bool stop;
	struct fr_buf incoming; /* records that the thread has not got yet */
	size_t pending_bytes;	/* records that the thread has not applied yet */
	uint64_t since_ns;	/* of the last fr_unwinder_end_round() */
	uint64_t memory_bytes;	/* as fr_unwind_memory_max() */
	uint64_t cpu_budget_ppm;
	bool is_distrusted;
	bool wants_scan;      /* the unwinder itself has lost records */
	uint64_t no_scan_ns;  /* ask for no scan before this time */
	uint64_t distrust_ns; /* time of the last loss */
	uint64_t trust_ns;    /* rounds that end behind this time are right again */
	struct fr_unwinder_stats stats;
};

/* The thread: runs until u->stop. */
void *unwind_run(void *unwinder);
void unwind_distrust(struct fr_unwinder *u) FR_REQUIRES(u->lock);
