/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The descriptors of BPF programs and their rings in systemd's descriptor store (capture/bpf_fds.h). Each
 * capture has a number, which is part of the names of its descriptors:
 *
 *     flightrec-bpf-NUMBER-shared, -ring, -link, -guard, -lost, -sleeps
 *
 * Call these functions as those of handover.h.
 */

#include "base/diag.h"
#include "capture/bpf_fds.h"

#include <stdbool.h>

#define FR_BPF_STORE_PREFIX "flightrec-bpf-"

struct fr_bpf_store {
	struct fr_bpf_fds *old; /* the sets of the previous instance, oldest first; owned */
	size_t n_old;
	/* The numbers of the newest set, of the set of the capture in use, and of the set with the links of
	   the unwinder. 0: none. */
	unsigned newest, current, guards;
};

/* Returns whether NAME is the name of such a descriptor. */
bool fr_bpf_store_knows(const char *name);
/* Duplicates the descriptors that the store has passed to this process. Returns 0; or a negative errno, and S
   has no old sets then, but the number of the newest one. */
int fr_bpf_store_receive(struct fr_bpf_store *s);
/* Returns FR_BPF_FD_SLEEPS of the newest set of the previous instance, which stays S's; -1: there is none. */
int fr_bpf_store_sleeps(const struct fr_bpf_store *s);
/* Puts the descriptors FDS of a capture into the store, in addition to those that are there. Returns the
   number of the new set; or a negative errno, with a message in D, and the store does not have them. */
int fr_bpf_store_put(struct fr_bpf_store *s, const struct fr_bpf_fds *fds, struct fr_diag *d);
/* Removes the set NUMBER from the store, except the links of the unwinder. 0: does nothing. */
void fr_bpf_store_remove(struct fr_bpf_store *s, unsigned number);
/* Closes the sets of the previous instance, and removes them from the store, so that its programs end. */
void fr_bpf_store_remove_old(struct fr_bpf_store *s);
/* Removes the sets of this instance from the store. */
void fr_bpf_store_remove_own(struct fr_bpf_store *s);
/* Closes the descriptors, which stay in the store. */
void fr_bpf_store_close(struct fr_bpf_store *s);
