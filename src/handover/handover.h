/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * From one instance to the next, through systemd's descriptor store: the ring's memfd, and the state, which
 * says how to read it (state.h). An instance that finds them adopts them, however the one before ended.
 *
 *   receive ─► unite_session ─► open_history ─► store ─► update … ─► (the next instance)
 *
 * Nothing here keeps a recorder from starting: if a history cannot be adopted, the log says why and recording
 * begins anew. Without a store (no service of systemd, or "flightrecd -- COMMAND") all of this does nothing.
 * The thread of the start until store() has returned, then the main thread.
 */

#include "base/buf.h"
#include "base/diag.h"
#include "handover/state.h"
#include "history/history.h"

#include <stdbool.h>

struct fr_handover {
	bool on;		   /* there is a store */
	struct fr_state_file file; /* fd -1: not there yet */
	struct fr_state state;	   /* of the previous instance; then what was written last */
	int ring_fd;		   /* of the previous instance; -1: none, or taken */
	int next_fd;		   /* a ring that was about to replace ring_fd; -1: none, or taken */
	bool adopted;		   /* the ring of the previous instance is ours */
	bool same_directory;	   /* and so is the auxiliary file */
	unsigned ring_number;	   /* in the ring's name */
	bool settled, written;	   /* in this run */
	struct fr_history_adopted history;
	struct fr_buf first_sideband; /* the first side-band record in the ring; empty: there is none */
	char refused[256];	      /* why not; empty: there was nothing, or it was adopted */
};

/* What update() and store() write. All borrowed for the call. */
struct fr_handover_facts {
	int dirfd;
	const char *boot_id;
	uint64_t started_ns; /* monotonic */
	const struct fr_counters *counters;
	const struct fr_session *session;
	const struct fr_history *history;
	const uint64_t *lost; /* _FR_LOSS_MAX; NULL: as it was */
};

/* Look for what the previous instance left. WANTED false: do not. What was left stays in the store until the
   first fr_handover_store(), so this may be called again in the same process. */
void fr_handover_receive(struct fr_handover *h, bool wanted, const char *boot_id);
/* Add the events of the previous instance to SESSION, and its counters and losses to those of the caller. 0
   or -ENOMEM. */
int fr_handover_unite_session(struct fr_handover *h, struct fr_session *session, struct fr_counters *counters,
	uint64_t lost[static _FR_LOSS_MAX]);
/* What the configuration asks of the ring. */
struct fr_handover_ring {
	uint64_t bytes;	    /* RingSize= */
	const char *origin; /* of RingSize=, for errors; or NULL */
	int dirfd;	    /* where the auxiliary file is */
	/* The configuration in force is already that of the previous instance: there is no other one to go
	   back to. */
	bool last_try;
};
/* The ring of the previous instance, or an empty one, into *RET. As fr_history_new(). */
int fr_handover_open_history(struct fr_handover *h, const struct fr_history_config *config,
	const struct fr_handover_ring *ring, struct fr_history **ret, struct fr_diag *d);
/* FD is a ring that is about to replace the one of now: both are in the store until the next store(). */
void fr_handover_add_ring(struct fr_handover *h, int fd);
/* Put ring and state into the store: before the first record that needs them, and when another ring has
   replaced the previous one. */
void fr_handover_store(struct fr_handover *h, const struct fr_handover_facts *facts);
/* The configuration of the previous instance, as config/saved.h has it (RET may be NULL). 0; -ENOENT or
   another negative errno: there is no history to adopt. */
int fr_handover_config(struct fr_buf *ret);
/* CONFIG (taken, as config/saved.h has it) is the last good one. */
void fr_handover_set_config(struct fr_handover *h, struct fr_buf *config);
/* Samples flow: the gap has ended. True: there was one, and it counts as a restart. */
bool fr_handover_end_gap(struct fr_handover *h);
/* Write the state if it differs from what was written last. */
void fr_handover_update(struct fr_handover *h, const struct fr_handover_facts *facts);
/* The history is in a file now: no instance is to adopt it. */
void fr_handover_forget(struct fr_handover *h);
void fr_handover_close(struct fr_handover *h);
