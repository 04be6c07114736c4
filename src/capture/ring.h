/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * One mapped ring of the kernel, and the walk over the records in it. Between the files of this folder, and
 * for trigger/, whose events have rings of their own.
 *
 *   forward:    the kernel writes at data_head, we read from data_tail; it never overtakes us
 *   overwrite:  the kernel writes downwards from data_head, over the oldest; we only look
 */

#include "capture/capture.h"
#include "capture/id_table.h"

#include <linux/perf_event.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fr_counter_cell {
	_Atomic uint64_t samples;
	_Atomic uint64_t lost[_FR_LOSS_MAX];
};

/* Only the recorder thread adds samples, so that no locked instruction is needed. */
static inline void fr_cell_add_samples(struct fr_counter_cell *c, uint64_t n)
{
	atomic_store_explicit(&c->samples, atomic_load_explicit(&c->samples, memory_order_relaxed) + n,
		memory_order_relaxed);
}

static inline void fr_cell_add_lost(struct fr_counter_cell *c, enum fr_loss cause, uint64_t n)
{
	atomic_fetch_add_explicit(&c->lost[cause], n, memory_order_relaxed);
}

/* Where records are counted. CELLS is indexed by the ids' slots. */
struct fr_tally {
	const struct fr_id_table *ids;
	struct fr_counter_cell *cells;
	struct fr_counter_cell *stray; /* for what belongs to no event that is known */
	bool no_build_ids;	       /* map records are not to have any */
	enum fr_loss lost_as;	       /* what a LOST record means in this ring */
	bool only_known;	       /* a sample of no event that is known ends a run */
	size_t run_max;		       /* 0: FR_RUN_MAX */
	/* Samples of the last id, not yet added to its cell. */
	uint64_t last_id, pending;
	struct fr_counter_cell *last;
};

struct fr_ring {
	struct perf_event_mmap_page *page; /* NULL: no such ring */
	const uint8_t *data;
	uint64_t size;		       /* of data, a power of two */
	uint64_t tail;		       /* forward: read up to here; overwrite: the head at the last look */
	struct fr_counter_cell *owner; /* of the first event: losses that name none */
	int epoll_fd;		       /* its set */
	int *fds;		       /* every event that writes here, the one that it is mapped by first */
	size_t n_fds, polled;	       /* fds[polled] is in the epoll set, none where polled == n_fds */
};

/* Map FD's ring of BYTES, readable only for one that the kernel overwrites. 0 or a negative errno. */
int fr_ring_map(struct fr_ring *r, int fd, size_t bytes, bool overwrite);
void fr_ring_unmap(struct fr_ring *r);
int fr_ring_add_fd(struct fr_ring *r, int fd);

/* Poll on the events of R from fds[polled] on, the first that can be added. 0 or a negative errno. */
int fr_ring_add_to_epoll(struct fr_ring *r);
/* The polled event has ended: on to the next one. */
void fr_ring_handle_hang_up(struct fr_ring *r);

enum fr_walk_end {
	FR_WALK_DONE,	 /* at the end of the memory */
	FR_WALK_FULL,	 /* the next record does not fit into the run any more */
	FR_WALK_CUT,	 /* the next record has more bytes than are left */
	FR_WALK_TORN,	 /* the next header is none */
	FR_WALK_SPOILT,	 /* the next record bears traces of other listeners of the kernel: to be mended */
	FR_WALK_FOREIGN, /* the next record is a sample of no event that is known: to be left out */
};

/* One run from P (8-byte aligned) on, at most to END; RUN has no record where the first is not whole. */
enum fr_walk_end fr_walk(const uint8_t *p, const uint8_t *end, struct fr_tally *t, struct fr_run *run);
void fr_tally_flush(struct fr_tally *t);

/* Whether the kernel left H's trailer, with an id that IDS knows, before the record's end: see trailer.c. H
 * is whole. */
bool fr_trailer_is_early(const struct perf_event_header *h, const struct fr_id_table *ids);
/* Move it to the end. Not in the ring: its data is mapped read-only, whatever mmap() was asked for. */
void fr_trailer_settle(struct perf_event_header *h, const struct fr_id_table *ids);

/* Hand out what lies between tail and HEAD of a forward ring, in runs. BOUNCE has FR_RUN_MAX bytes. SINK gets
   each run; data_tail is released after it. Returns the number of bytes. */
typedef void (*fr_run_fn)(void *ctx, const struct fr_run *run);
size_t fr_ring_drain(struct fr_ring *r, struct fr_tally *t, uint8_t *bounce, fr_run_fn sink, void *ctx);

/* Hand out what an overwrite ring has that is newer than at the last call, oldest first. */
struct fr_look_room {
	uint8_t *copy;	 /* as large as the ring */
	uint64_t *marks; /* fr_ring_marks() of them */
	uint8_t *out;	 /* FR_RUN_MAX bytes */
};
size_t fr_ring_marks(uint64_t ring_bytes);
size_t fr_ring_look(
	struct fr_ring *r, struct fr_tally *t, const struct fr_look_room *room, fr_run_fn sink, void *ctx);
