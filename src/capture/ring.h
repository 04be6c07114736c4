/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * One mapped kernel ring, and the walk over its records. For this folder and for source/, whose events have
 * other rings.
 *
 *   forward:       The kernel writes at data_head. It does not overwrite the records from data_tail to
 *                  data_head. We read these records, and then move data_tail behind them.
 *   overwritable:  The kernel writes downwards from data_head, over the oldest records. We copy the ring.
 */

#include "base/loss.h"
#include "capture/ops.h"
#include "perfdata/id_table.h"

#include <linux/perf_event.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The counters of one event on one CPU. The recorder thread writes them, any thread reads them. */
struct fr_counter_cell {
	_Atomic uint64_t samples;
	_Atomic uint64_t lost[_FR_LOSS_MAX];
};

static inline void fr_cell_add_lost(struct fr_counter_cell *c, enum fr_loss cause, uint64_t n)
{
	atomic_fetch_add_explicit(&c->lost[cause], n, memory_order_relaxed);
}

/* The parameters and counters of a walk over records. IDS gives the slot of an id, which is the index of its
   cell in CELLS. */
struct fr_tally {
	const struct fr_id_table *ids;
	struct fr_counter_cell *cells;
	struct fr_counter_cell *unknown; /* counts records of unknown events */
	bool no_build_ids;		 /* we did not ask for build-ids in map records */
	enum fr_loss lost_as;		 /* the cause of loss for a LOST record in this ring */
	bool only_known;		 /* a sample of an unknown event ends a run */
	size_t run_max;			 /* most bytes in a run; 0: FR_RUN_MAX */
	/* PENDING samples of LAST_ID are not counted in the cell LAST yet. */
	uint64_t last_id, pending;
	struct fr_counter_cell *last;
};

struct fr_ring {
	struct perf_event_mmap_page *page; /* NULL: no such ring */
	const uint8_t *data;
	uint64_t size;		       /* of data, a power of two */
	uint64_t tail;		       /* forward: read up to here; overwritable: data_head of the last
					  fr_ring_read_overwritable() */
	struct fr_counter_cell *owner; /* cell of the first event; also for losses of unknown events */
	int epoll_fd;		       /* the epoll set of the ring */
	int *fds;		       /* all events that write to the ring; the first one was mapped */
	size_t n_fds, polled;	       /* fds[polled] is in the epoll set; polled == n_fds: no event is */
};

/* Map the ring of FD with BYTES of data. OVERWRITE: it is overwritable, so map it read-only. Returns 0 or a
   negative errno. */
int fr_ring_map(struct fr_ring *r, int fd, size_t bytes, bool overwrite);
void fr_ring_unmap(struct fr_ring *r);
/* Add an event that writes to the ring. Returns 0 or -ENOMEM. */
int fr_ring_add_fd(struct fr_ring *r, int fd);

/* Add one event of the ring to the epoll set: the first one from fds[polled] on that has not ended. Returns 0
   or a negative errno. */
int fr_ring_add_to_epoll(struct fr_ring *r);
/* The polled event has ended: poll the next one instead. */
void fr_ring_handle_hang_up(struct fr_ring *r);

enum fr_walk_end {
	FR_WALK_DONE,	    /* the memory ends here */
	FR_WALK_FULL,	    /* the next record does not fit into this run */
	FR_WALK_CUT,	    /* the next record is longer than the rest of the memory */
	FR_WALK_TORN,	    /* the next header is not valid */
	FR_WALK_CHANGED,    /* another recorder changed the next record: repair a copy (docs/design/10) */
	FR_WALK_UNKNOWN_ID, /* the next record is a sample of an unknown event: skip it */
};

/* Make one run of the records from P (8-byte aligned) on, at most to END. RUN may get no records. Returns why
   the run ends. */
enum fr_walk_end fr_walk_records(
	const uint8_t *p, const uint8_t *end, struct fr_tally *t, struct fr_run *run);
/* Add the pending samples to their cell. */
void fr_tally_flush(struct fr_tally *t);

/* trailer.c: returns the offset of the sample id of the whole record H if other bytes follow the sample id; 0
   if the sample id is at the end of H, or its place is not known. */
size_t fr_misplaced_trailer(const struct perf_event_header *h, const struct fr_id_table *ids);
/* Move a misplaced sample id to the end of H. */
void fr_move_trailer_to_end(struct perf_event_header *h, const struct fr_id_table *ids);

typedef void (*fr_run_fn)(void *ctx, const struct fr_run *run);
/* Pass all records of a forward ring to SINK, in runs. After each run, data_tail is moved, so that the kernel
   may overwrite the run. BOUNCE has FR_RUN_MAX bytes. Returns the number of bytes. */
size_t fr_ring_drain(struct fr_ring *r, struct fr_tally *t, uint8_t *bounce, fr_run_fn sink, void *ctx);

/* Buffers for fr_ring_read_overwritable(). */
struct fr_overwritable_room {
	uint8_t *copy;	   /* a buffer of the size of the ring */
	uint64_t *pieces;  /* fr_ring_max_pieces() offsets in COPY */
	uint8_t *reversed; /* a buffer of FR_RUN_MAX bytes */
};
size_t fr_ring_max_pieces(uint64_t ring_bytes);
/* Pass to SINK the records that came into an overwritable ring since the last call, oldest first. Returns the
   number of bytes. */
size_t fr_ring_read_overwritable(struct fr_ring *r, struct fr_tally *t,
	const struct fr_overwritable_room *room, fr_run_fn sink, void *ctx);
