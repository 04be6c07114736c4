/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Opens the parts of the daemon in the order in which a sample passes them, and closes them in reverse
   order. */

#include "flightrecd/daemon.h"

void fr_daemon_init(struct fr_daemon *daemon, struct fr_config *config, int argc, char *argv[]);
/* Opens the parts, without samples yet. On success, returns 0. On failure, closes all parts again, and
   returns a negative errno, with a message in D. Only the thread fr-start calls this function. */
int fr_stages_open(struct fr_daemon *daemon, fr_progress progress, struct fr_diag *d);
/* Closes what fr_stages_open() has opened. */
void fr_stages_close(struct fr_daemon *daemon);

/* Sets RET to the thread ids of the daemon's own threads. Returns their number. */
#define FR_OWN_TIDS_MAX 9
size_t fr_daemon_own_tids(const struct fr_daemon *daemon, pid_t ret[static FR_OWN_TIDS_MAX]);

/* Returns how to open the events of the configuration in force. Its pointers are borrowed from the daemon. */
struct fr_recording_config fr_daemon_recording_config(struct fr_daemon *daemon);

/* Returns the longest time between two rounds of the recorder. 0: the default of fr_recorder_start(). */
unsigned fr_daemon_period_ms(const struct fr_daemon *daemon);

/* Puts the current ring and the current state (the data that the next instance needs to read the ring) into
   the descriptor store of the service manager. */
void fr_daemon_store(struct fr_daemon *daemon);
/* Updates the state in the descriptor store. */
void fr_daemon_update_state(struct fr_daemon *daemon);
/* Saves the configuration in force, for the next instance. The next instance uses the saved configuration if
   the configuration in the files cannot be used. */
void fr_daemon_save_config(struct fr_daemon *daemon);

/* Returns pointers (borrowed) to the parts that count losses. */
struct fr_loss_counters fr_daemon_losses(struct fr_daemon *daemon);
