/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The BPF rings of the previous instance, into which its programs still write (adopt.h). Private to this
   folder. */

#include "base/diag.h"
#include "capture/bpf_fds.h"
#include "capture/bpf_ring.h"

struct fr_bpf_adopted;

struct fr_bpf_adopted_config {
	const struct fr_adoption *adoption;
	int epoll_fd; /* gets the rings */
	/* Returns the index of the cell that counts the samples of the event NAME on CPU. NAME is NULL: of an
	   event that is not known. */
	uint32_t (*find_cell)(const void *ctx, const char *name, uint32_t cpu);
	const void *ctx;
};

/* See fr_capture_adopt(). */
int fr_bpf_adopted_new(
	const struct fr_bpf_adopted_config *config, struct fr_bpf_adopted **ret, struct fr_diag *d);
struct fr_bpf_adopted *fr_bpf_adopted_free(struct fr_bpf_adopted *a);

/* The cells of the ids of the adopted events: indexes into the cells of the capture. */
const struct fr_id_table *fr_bpf_adopted_ids(const struct fr_bpf_adopted *a);
bool fr_bpf_adopted_has_id(const struct fr_bpf_adopted *a, uint64_t id);
/* Counts the losses a last time: from now on, the samples do not count, and neither do their losses. T has
   fr_bpf_adopted_ids(). */
void fr_bpf_adopted_end_losses(struct fr_bpf_adopted *a, struct fr_tally *t);
/* See fr_bpf_capture_drain(). T has fr_bpf_adopted_ids(). */
size_t fr_bpf_adopted_drain(struct fr_bpf_adopted *a, struct fr_tally *t, struct fr_counter_cell *owner,
	uint8_t *bounce, fr_run_fn sink, void *ctx);
