/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A BPF ring (BPF_MAP_TYPE_RINGBUF) into which the BPF programs of one CPU put samples, and the walk over it.
 */

#include "capture/ring.h"

struct fr_bpf_ring {
	int fd; /* the map */
	size_t size;
	/* Returns whether the record H, which is at the position AT of the ring, is taken. NULL: all are. */
	bool (*wants)(const struct fr_bpf_ring *r, uint64_t at, const struct perf_event_header *h);
	const void *ctx;     /* of wants() */
	void *consumer_page; /* we write the position up to which we have read */
	void *producer_page; /* the kernel's position; the data follow */
};

/* Makes and maps a ring of BYTES bytes, a power of two and at least a page. Returns 0 or a negative errno. */
int fr_bpf_ring_new(struct fr_bpf_ring *r, size_t bytes);
/* Maps the existing ring FD, and duplicates the descriptor. Returns 0; -EBADMSG if FD is not a ring; or
   another negative errno. */
int fr_bpf_ring_adopt(struct fr_bpf_ring *r, int fd);
/* Returns the position up to which the ring has been read. */
uint64_t fr_bpf_ring_consumed(const struct fr_bpf_ring *r);
void fr_bpf_ring_free(struct fr_bpf_ring *r);

/* Does the same as fr_ring_drain(). The samples are copied to BOUNCE, because a header of the ring is between
   them. OWNER counts records that are not valid. */
size_t fr_bpf_ring_drain(struct fr_bpf_ring *r, struct fr_tally *t, struct fr_counter_cell *owner,
	uint8_t *bounce, fr_run_fn sink, void *ctx);
