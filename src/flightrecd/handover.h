/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * From one instance to the next, through systemd's descriptor store: the ring's memfd, and beside it what
 * says how to read it (state.h). An instance that finds them goes on with them, however the one before ended.
 * Nothing here stops a recorder from starting: what cannot be gone on with is said, and it begins anew.
 * Without a store (no service of systemd, or "flightrecd -- COMMAND") nothing happens. Main thread.
 */

#include "flightrecd/state.h"
#include "history/history.h"

#include <cjson/cJSON.h>
#include <stdbool.h>

struct fr_daemon;

struct fr_handover {
	bool on;		   /* there is a store */
	struct fr_state_file file; /* fd -1: not there yet */
	struct fr_state state;	   /* of the instance before; then what was written last */
	int ring_fd;		   /* of the instance before; -1: none, or taken */
	int next_fd;		   /* of the one that was to take over from it; -1: none, or taken */
	bool adopted;		   /* the ring of the instance before is ours */
	bool same_directory;	   /* and so is the auxiliary file */
	unsigned ring_number;	   /* in the ring's name */
	bool settled, written;	   /* in this run */
	struct fr_history_adopted what;
	struct fr_buf first; /* the first record of side-band in it; empty: there is none */
	char refused[256];   /* why not; empty: there was nothing, or it was adopted */
};

/* Looks for what the instance before left. Until the first fr_handover_store() that stays as it is, so that
   this may be called again by another daemon of this process. */
void fr_handover_receive(struct fr_daemon *daemon);
/* What it counted, and its events into the daemon's session, which describe() has filled. -ENOMEM. */
int fr_handover_take_over(struct fr_daemon *daemon);
/* Its ring, or an empty one. As fr_history_new(). */
int fr_handover_open_history(
	struct fr_daemon *daemon, const struct fr_history_config *config, struct fr_diag *d);
/* FD, of the ring that is to take over, into the store: with the old one it is all of the history. */
void fr_handover_add_ring(struct fr_daemon *daemon, int fd);
/* Ring and state into the store: before the first record that needs them, and when the ring is another one.
 */
void fr_handover_store(struct fr_daemon *daemon);
/* The configuration that the instance before went by, as config_kept.h has it (RET may be NULL). 0; -ENOENT
   or another negative errno: there is no history to go on with. Whatever DAEMON did with it. */
int fr_handover_config(struct fr_buf *ret);
/* That of now is the last good one. */
void fr_handover_keep_config(struct fr_daemon *daemon);
/* Samples flow: the gap, if there was one, has ended. */
void fr_handover_record(struct fr_daemon *daemon);
/* What may have changed is written down. */
void fr_handover_update(struct fr_daemon *daemon);
/* The history is in a file now, and nobody is to go on with it. */
void fr_handover_forget(struct fr_daemon *daemon);
void fr_handover_close(struct fr_daemon *daemon);

/* "adopted" into STATUS, where a ring was, and how long the gaps were into a "restart" of META's losses. */
void fr_handover_add_status(const struct fr_daemon *daemon, cJSON *status);
void fr_handover_add_gap(const struct fr_daemon *daemon, cJSON *loss);
