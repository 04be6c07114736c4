/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Passes the ring from one instance to the next, through systemd's descriptor store. The store has the memfd
 * of the ring, and the state, which tells how to read the ring (state.h). An instance that finds both adopts
 * them, even if the previous instance was killed.
 *
 *   receive ─► unite_session ─► open_history ─► store ─► update … ─► (the next instance)
 *
 * If the history of the previous instance is damaged, the log says why, and recording begins with an empty
 * ring. There is no store if this process is not a service of systemd, or if it runs as "flightrecd --
 * COMMAND". Without a store, these functions do nothing, and open_history() makes an empty ring. Call these
 * functions on the thread of the start until the first store() has returned, and on the main thread after
 * that.
 */

#include "base/buf.h"
#include "base/diag.h"
#include "handover/state.h"
#include "history/history.h"

#include <stdbool.h>

struct fr_handover {
	bool on;		   /* true: there is a store */
	struct fr_state_file file; /* the memfd of the state; fd -1: not created yet */
	struct fr_state state;	   /* first the state of the previous instance, later the newest state */
	int ring_fd;		   /* the ring of the previous instance; -1: none, or owned by history/ */
	int next_fd;		   /* the new ring of an interrupted resize; -1: none, or owned by history/ */
	bool adopted;		   /* this instance uses the ring of the previous instance */
	bool same_directory;	   /* the auxiliary file of the previous instance is in the same directory */
	unsigned ring_number;	   /* the number in the name of the ring in the store */
	bool settled, written;	   /* store() was called; update() has written the last set_config() */
	struct fr_history_adopted history;
	struct fr_buf first_sideband; /* the first side-band record in the ring; empty: there is none */
	char refused[256];	      /* why the ring was not adopted; empty: adopted, or there was no ring */
};

/* What update() and store() write. All pointers are borrowed for the call. */
struct fr_handover_facts {
	int dirfd;
	const char *boot_id;
	uint64_t started_ns; /* monotonic */
	const struct fr_counters *counters;
	const struct fr_session *session;
	const struct fr_history *history;
	const uint64_t *lost; /* _FR_LOSS_MAX losses; NULL: the losses in the state do not change */
};

/* Look in the store for the state and the ring of the previous instance, unless WANTED is false. The
   descriptors that the store has passed to this process stay open until open_history() makes an empty ring,
   or until store(). Before that, this function can be called again. */
void fr_handover_receive(struct fr_handover *h, bool wanted, const char *boot_id);
/* If there is a ring to adopt, add the events of the previous instance to SESSION, and set COUNTERS and LOST
   to those of the previous instance. If the tracepoint formats of the previous instance are damaged, its ring
   will not be adopted; this is not an error. Returns 0 or -ENOMEM. */
int fr_handover_unite_session(struct fr_handover *h, struct fr_session *session, struct fr_counters *counters,
	uint64_t lost[static _FR_LOSS_MAX]);
/* What the configuration in force says about the ring. */
struct fr_handover_ring {
	uint64_t bytes;	    /* RingSize= */
	const char *origin; /* where RingSize= is set, for messages; or NULL */
	int dirfd;	    /* the directory of the auxiliary file */
	/* The configuration in force is already that of the previous instance, so there is no other
	   configuration to try. */
	bool last_try;
};
/* Set *RET to the ring of the previous instance, or to an empty ring. Returns 0 or a negative errno with D.
   If the ring of the previous instance is intact but cannot be adopted with this configuration, the function
   fails; but if `last_try` is set, it makes an empty ring. */
int fr_handover_open_history(struct fr_handover *h, const struct fr_history_config *config,
	const struct fr_handover_ring *ring, struct fr_history **ret, struct fr_diag *d);
/* Put FD into the store: a new ring, to which a resize moves the frames of the current ring. Both rings are
   in the store until the next store(). */
void fr_handover_add_ring(struct fr_handover *h, int fd);
/* Put the ring and the state into the store. Call it before samples flow. Call it again when another ring has
   replaced the current one, and when the session has other events. */
void fr_handover_store(struct fr_handover *h, const struct fr_handover_facts *facts);
/* Set RET (may be NULL) to the configuration of the previous instance, in the format of config/saved.h.
   Returns 0; or -ENOENT or another negative errno if there is no history to adopt. */
int fr_handover_config(struct fr_buf *ret);
/* Remember CONFIG (taken; in the format of config/saved.h) as the last good configuration. CONFIG is written
   by the next store() or update(). */
void fr_handover_set_config(struct fr_handover *h, struct fr_buf *config);
/* Call it when samples flow: the gap since the previous instance has ended. Returns true if a ring was
   adopted, and then counts the gap and a restart. */
bool fr_handover_end_gap(struct fr_handover *h);
/* Write the state if it differs from the state that was written last. Main thread. */
void fr_handover_update(struct fr_handover *h, const struct fr_handover_facts *facts);
/* Remove the ring and the state from the store. Call it when the history is in a file, so that no other
   instance adopts it. */
void fr_handover_forget(struct fr_handover *h);
void fr_handover_close(struct fr_handover *h);
