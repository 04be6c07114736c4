/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The events of a capture whose samples are made by BPF programs (src/bpf/capture.bpf.c): one BPF ring for
 * each sampled CPU, and one link for each opened event. Private to this folder.
 */

#include "capture/bpf_fds.h"
#include "capture/bpf_ring.h"
#include "base/diag.h"
#include "capture/event.h"

#include <sys/types.h>

struct fr_bpf_capture;
struct fr_unwinder;

struct bpf_object;

struct fr_bpf_capture_config {
	const struct fr_unwinder *unwinder; /* NULL: no event has `unwind` */
	int switches_fd;		    /* the map of the switches; -1: nothing is switched */
	/* The event offcpu, or NULL: its threshold, and the tasks (off_cpu.h). */
	const struct fr_event *off_cpu;
	const pid_t *pids;
	size_t n_pids;
	bool enable_on_exec;
	int cgroup_fd;
	int sleeps_fd;			       /* see struct fr_capture_config */
	const struct fr_bpf_capture *previous; /* a capture whose sleeps are still to be recorded; or NULL */
	const int *cpus;		       /* the CPUs that get a ring */
	size_t n_cpus;
	size_t ring_bytes, wakeup_bytes;
	int epoll_fd; /* gets the rings */
};

/* Loads the programs and makes the rings. Returns 0; or a negative errno, with a message in D. */
int fr_bpf_capture_new(
	const struct fr_bpf_capture_config *config, struct fr_bpf_capture **ret, struct fr_diag *d);
struct fr_bpf_capture *fr_bpf_capture_free(struct fr_bpf_capture *b);

/* Lets the open but not yet loaded OBJECT use the rings and the switches, and the maps of the unwinder if
   there is one. Returns 0 or a negative errno. */
int fr_bpf_capture_share_maps(const struct fr_bpf_capture *b, struct bpf_object *object);

/* Lets the program make the samples of the event E on CPU, which is open as FD with the id ID, and whose
   losses CELL counts. Returns 0; or a negative errno, with a message in D. */
int fr_bpf_capture_add(struct fr_bpf_capture *b, const struct fr_event *e, int fd, int cpu, uint64_t id,
	struct fr_counter_cell *cell, struct fr_diag *d);

/* Does the same for an event of offcpu on CPU. */
int fr_bpf_capture_add_off_cpu(struct fr_bpf_capture *b, const struct fr_event *e, int cpu, uint64_t id,
	struct fr_counter_cell *cell, struct fr_diag *d);

/* These functions change the programs of offcpu, if B has them; B may be NULL. Any thread. */
void fr_bpf_capture_enable(struct fr_bpf_capture *b);
void fr_bpf_capture_disable(struct fr_bpf_capture *b);
void fr_bpf_capture_set_threshold(struct fr_bpf_capture *b, uint64_t ns);
/* The same as fr_capture_open_waits(). */
int fr_bpf_capture_open_waits(const struct fr_bpf_capture *b);

/* Drains the rings, and counts the losses. OWNER counts records that are not valid. Returns the number of
   bytes. Recorder thread. */
size_t fr_bpf_capture_drain(struct fr_bpf_capture *b, struct fr_tally *t, struct fr_counter_cell *owner,
	uint8_t *bounce, fr_run_fn sink, void *ctx);

/* Notes, for the next instance, that the samples of B count from SINCE_NS on. */
void fr_bpf_capture_begin(struct fr_bpf_capture *b, uint64_t since_ns);
/* Does not count the losses so far. */
void fr_bpf_capture_forget_losses(struct fr_bpf_capture *b);
bool fr_bpf_capture_has_begun(const struct fr_bpf_capture *b);
/* Appends the descriptors of B to F: see fr_capture_bpf_fds(). Returns 0 or -ENOMEM. */
int fr_bpf_capture_fds(const struct fr_bpf_capture *b, struct fr_bpf_fds *f);
struct fr_bpf_shared *fr_bpf_capture_shared(struct fr_bpf_capture *b);
