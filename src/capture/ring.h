/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * One mapped kernel ring, and the walk over its records. This folder uses it, and src/source/, where the
 * events of triggers have their own kernel rings.
 *
 *   forward:       The kernel writes at data_head. It does not overwrite the records from data_tail to
 *                  data_head. We read these records, and then move data_tail to the end of the last one.
 *   overwritable:  The kernel writes downwards from data_head, over the oldest records. We read a copy of the
 *                  ring.
 */

#include "base/loss.h"
#include "capture/ops.h"
#include "perfdata/id_table.h"

#include <linux/perf_event.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The counters of one event on one CPU. The recorder thread writes the counters; any thread can read them. */
struct fr_counter_cell {
	_Atomic uint64_t samples;
	_Atomic uint64_t lost[_FR_LOSS_MAX];
	unsigned ring; /* fr_event.ring */
};

static inline void fr_cell_add_lost(struct fr_counter_cell *c, enum fr_loss cause, uint64_t n)
{
	atomic_fetch_add_explicit(&c->lost[cause], n, memory_order_relaxed);
}

/* The parameters and counters of a walk over records. `ids` maps the id of an event to the index of the
   event's cell in `cells`. */
struct fr_tally {
	const struct fr_id_table *ids;
	struct fr_counter_cell *cells;
	struct fr_counter_cell *unknown; /* counts records of unknown events */
	bool no_build_ids;		 /* the recording did not ask for build-ids in MMAP2 records */
	enum fr_loss lost_as;		 /* the cause of loss for a LOST record in this ring */
	bool only_known;		 /* a sample of an unknown event ends a run */
	size_t run_max;			 /* most bytes in a run; 0: FR_RUN_MAX */
	/* The newest `pending` samples of the walk have the id `last_id`. They are not counted yet in their
	   cell, `last`. */
	uint64_t last_id, pending;
	struct fr_counter_cell *last;
	unsigned ring;	    /* of the newest sample of the walk */
	unsigned cpu_index; /* fr_run.cpu_index */
};

struct fr_ring {
	struct perf_event_mmap_page *page; /* NULL: no such ring */
	const uint8_t *data;
	uint64_t size;		       /* of data, a power of two */
	uint64_t tail;		       /* forward: the end of the records that were read; overwritable:
					  data_head at the last fr_ring_read_overwritable() */
	struct fr_counter_cell *owner; /* the cell of the ring's first event; it also counts losses of
					  unknown events */
	int epoll_fd;		       /* the epoll set of the ring */
	int *fds;		       /* all events that write to the ring; the ring was mapped with
					  the first event */
	size_t n_fds, polled;	       /* fds[polled] is in the epoll set; polled == n_fds: no event is */
};

/* Maps the ring of the event FD, with BYTES bytes of data. If OVERWRITE is true, maps the ring read-only, and
   so makes it overwritable. Returns 0 or a negative errno. */
int fr_ring_map(struct fr_ring *r, int fd, size_t bytes, bool overwrite);
void fr_ring_unmap(struct fr_ring *r);
/* Adds an event that writes to the ring. Returns 0 or -ENOMEM. */
int fr_ring_add_fd(struct fr_ring *r, int fd);

/* Adds one event of the ring to the epoll set: the first event, from fds[polled] on, that has not ended.
   Returns 0 or a negative errno. */
int fr_ring_add_to_epoll(struct fr_ring *r);
/* Call this function when the polled event has ended. Polls the next event of the ring instead. */
void fr_ring_handle_hang_up(struct fr_ring *r);

enum fr_walk_end {
	FR_WALK_DONE,	    /* the walk has reached the end of the memory */
	FR_WALK_FULL,	    /* the next record does not fit into this run, or goes to another ring */
	FR_WALK_CUT,	    /* the next record is longer than the rest of the memory */
	FR_WALK_TORN,	    /* the next header is not valid */
	FR_WALK_CHANGED,    /* because of another recorder, the kernel changed the next record: repair a copy
			       (docs/design/10) */
	FR_WALK_UNKNOWN_ID, /* the next record is a sample of an unknown event: skip it */
};

/* Makes one run of the records that begin at P (8-byte aligned) and end at or before END. The run can have no
   records. Returns why the run ends. */
enum fr_walk_end fr_walk_records(
	const uint8_t *p, const uint8_t *end, struct fr_tally *t, struct fr_run *run);
/* Adds the pending samples to their cell. */
void fr_tally_flush(struct fr_tally *t);

/* trailer.c: H is a whole record. If other bytes follow the sample id of H, returns the offset of the sample
   id in H. Returns 0 if the sample id is at the end of H, or if its place is not known. */
size_t fr_misplaced_trailer(const struct perf_event_header *h, const struct fr_id_table *ids);
/* Moves a misplaced sample id to the end of H. */
void fr_move_trailer_to_end(struct perf_event_header *h, const struct fr_id_table *ids);

typedef void (*fr_run_fn)(void *ctx, const struct fr_run *run);
/* Calls SINK for each run of the records between P and END, which are in memory of our own. Returns why the
   last run ends. */
enum fr_walk_end fr_walk_all(
	const uint8_t *p, const uint8_t *end, struct fr_tally *t, fr_run_fn sink, void *ctx);
/* Passes all records of a forward ring to SINK, in runs. After each run, moves data_tail, so that the kernel
   can overwrite the records of the run. BOUNCE is a buffer of FR_RUN_MAX bytes, for records that have to be
   copied. Returns the number of bytes that were read. */
size_t fr_ring_drain(struct fr_ring *r, struct fr_tally *t, uint8_t *bounce, fr_run_fn sink, void *ctx);

/* Buffers for fr_ring_read_overwritable(). */
struct fr_overwritable_room {
	uint8_t *copy;	   /* a buffer of the size of the ring */
	uint64_t *pieces;  /* fr_ring_max_pieces() offsets in COPY */
	uint8_t *reversed; /* a buffer of FR_RUN_MAX bytes */
};
size_t fr_ring_max_pieces(uint64_t ring_bytes);
/* Passes to SINK the records that came into an overwritable ring since the last call, oldest first. Returns
   the number of bytes that were read. */
size_t fr_ring_read_overwritable(struct fr_ring *r, struct fr_tally *t,
	const struct fr_overwritable_room *room, fr_run_fn sink, void *ctx);
