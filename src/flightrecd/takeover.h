/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The samples that BPF programs make go on from one instance to the next (docs/design/96). */

#include "flightrecd/daemon.h"

/* Adopts the BPF rings of the previous instance, if there are any that can be used. Call this function
   between the open of the history and the start of the recorder. Only the thread fr-start calls it. */
void fr_daemon_adopt_bpf(struct fr_daemon *daemon);
/* Puts the BPF programs of CAPTURE into the descriptor store. Returns the number of their set; 0 if there are
   none, or if they cannot be stored. */
unsigned fr_daemon_store_bpf(struct fr_daemon *daemon, struct fr_capture *capture);
/* Removes the set of the previous capture from the store. From now on, NUMBER is the set in use. */
void fr_daemon_use_bpf(struct fr_daemon *daemon, unsigned number);

/* Enables the samples, takes over from the previous instance, and counts the gap. Returns 0; or a negative
   errno, with a message in D. */
int fr_daemon_begin_samples(struct fr_daemon *daemon, struct fr_diag *d);
