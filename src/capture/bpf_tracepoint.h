/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The tracepoints of a capture whose samples are made by BPF programs (docs/design/14): which ones they are,
 * and their programs. The samples come through the BPF rings of bpf_capture.h. Private to this folder.
 */

#include "base/diag.h"
#include "bpf/tracepoint.h"
#include "capture/bpf_fds.h"
#include "capture/config.h"
#include "capture/ring.h"
#include "capture/target.h"

struct fr_bpf_capture;
struct fr_bpf_tracepoints;
struct fr_event;
struct fr_session;

/* One tracepoint that a program records. */
struct fr_bpf_plan {
	uint32_t event;
	enum fr_bpf_tracepoint_kind kind;
	uint32_t call; /* the number of the system call, for FR_BPF_CALL_ENTER and FR_BPF_CALL_EXIT */
	char name[64]; /* without its system */
	struct fr_bpf_tracepoint entry;
	size_t instance;  /* of the BPF object */
	int holder, link; /* descriptors; -1: not open */
};

/* bpf_choose.c: decides how a program can record the tracepoint E, and fills RET (but not `event`). Returns 1
   if a program records E; 0 if perf does; or a negative errno, with a message in D: a term asks for a
   program, but no program can record E. */
int fr_bpf_plan_event(const struct fr_event *e, const struct fr_capture_config *config,
	const struct fr_target *t, struct fr_bpf_plan *ret, struct fr_diag *d);

/* The parameters of fr_bpf_tracepoints_new(). The arrays are borrowed. */
struct fr_bpf_tracepoints_config {
	const struct fr_event *events;
	size_t n_events;
	const int *cpus;
	size_t n_cpus; /* of `cpus` and of `cells` */
	size_t n_sampled;
	struct fr_counter_cell *cells; /* [event * n_cpus + cpu] */
	int cgroup_fd;		       /* -1: none */
};
/* Takes the N plans PLANS, which are on the heap; also after an error. Loads and attaches the programs, which
   do not record yet. CAPTURE has the rings. Returns 0; or a negative errno, with a message in D. */
int fr_bpf_tracepoints_new(const struct fr_bpf_tracepoints_config *config, struct fr_bpf_plan *plans,
	size_t n, const struct fr_bpf_capture *capture, struct fr_bpf_tracepoints **ret, struct fr_diag *d);
struct fr_bpf_tracepoints *fr_bpf_tracepoints_free(struct fr_bpf_tracepoints *b);

/* Calls FN with the id of each event on each CPU. If FN returns a negative value, stops and returns it. */
typedef int (*fr_bpf_id_fn)(void *ctx, uint64_t id, uint32_t event, uint32_t cpu_index);
int fr_bpf_tracepoints_foreach_id(const struct fr_bpf_tracepoints *b, fr_bpf_id_fn fn, void *ctx);

/* Appends the links, and the map with the losses, to F. Writes the first ids to SHARED. Returns 0 or -ENOMEM.
 */
struct fr_bpf_shared;
int fr_bpf_tracepoints_fds(
	const struct fr_bpf_tracepoints *b, struct fr_bpf_shared *shared, struct fr_bpf_fds *f);
/* The lowest bits of the id of such a tracepoint are the number of the CPU. */
#define FR_BPF_ID_CPU_BITS 13

/* Makes no records of the N threads TIDS of this process. Returns 0, or -E2BIG if there are too many. */
int fr_bpf_tracepoints_exclude(struct fr_bpf_tracepoints *b, const pid_t *tids, size_t n);
void fr_bpf_tracepoints_enable(struct fr_bpf_tracepoints *b, bool enable);
/* Does not count the losses so far. */
void fr_bpf_tracepoints_forget_losses(struct fr_bpf_tracepoints *b);
/* Counts the losses. At most ten times a second, makes a system call for each program. Recorder thread. */
void fr_bpf_tracepoints_count_lost(struct fr_bpf_tracepoints *b);
