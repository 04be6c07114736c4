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

struct fr_bpf_capture;
struct fr_unwinder;

struct fr_bpf_capture_config {
	const struct fr_unwinder *unwinder;
	const int *cpus; /* the CPUs that get a ring */
	size_t n_cpus;
	size_t ring_bytes, wakeup_bytes;
	int epoll_fd; /* gets the rings */
};

/* Loads the programs and makes the rings. Returns 0; or a negative errno, with a message in D. */
int fr_bpf_capture_new(
	const struct fr_bpf_capture_config *config, struct fr_bpf_capture **ret, struct fr_diag *d);
struct fr_bpf_capture *fr_bpf_capture_free(struct fr_bpf_capture *b);

/* Lets the program make the samples of the event E on CPU, which is open as FD with the id ID, and whose
   losses CELL counts. Returns 0; or a negative errno, with a message in D. */
int fr_bpf_capture_add(struct fr_bpf_capture *b, const struct fr_event *e, int fd, int cpu, uint64_t id,
	struct fr_counter_cell *cell, struct fr_diag *d);

/* Drains the rings, and counts the losses. OWNER counts records that are not valid. Returns the number of
   bytes. Recorder thread. */
size_t fr_bpf_capture_drain(struct fr_bpf_capture *b, struct fr_tally *t, struct fr_counter_cell *owner,
	uint8_t *bounce, fr_run_fn sink, void *ctx);

/* Notes, for the next instance, that the samples of B count from SINCE_NS on. */
void fr_bpf_capture_begin(struct fr_bpf_capture *b, uint64_t since_ns);
bool fr_bpf_capture_has_begun(const struct fr_bpf_capture *b);
/* See fr_capture_bpf_fds(). */
int fr_bpf_capture_fds(const struct fr_bpf_capture *b, struct fr_bpf_fds *ret);
