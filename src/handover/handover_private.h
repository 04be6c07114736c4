/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Used in handover/ only: handover.c receives and ends, open.c opens the ring, parts.c has the other rings,
 * write.c writes the state and fills the descriptor store (fd_store.h).
 */

#include "handover/fd_store.h"
#include "handover/handover.h"

/* handover.c */

/* The history of the previous instance is lost: keeps the reason for `status`, and logs it. */
void __attribute__((format(printf, 2, 3))) handover_refuse(struct fr_handover *h, const char *fmt, ...);
bool handover_has_ring(const struct fr_handover *h);
/* The ring of the previous instance is not adopted. */
void handover_drop_ring(struct fr_handover *h);
/* Closes the passed descriptors. Returns the number of those that were removed from the store. */
unsigned handover_release_passed(const struct fr_handover *h);
/* Begins the gap at the time up to which the ring is complete. If this time is unknown, the gap begins at the
   start of the first instance. If the previous instance has drained nothing, the new gap includes the gap
   before the previous instance, so that gap is subtracted. If the previous instance was killed during its
   start, its gap goes on. */
void handover_begin_gap(struct fr_handover *h);

/* parts.c */

uint64_t handover_inode(int fd); /* 0: none */
bool handover_is_part(const struct fr_state *s, const char *name);
void handover_receive_parts(struct fr_handover *h);
/* Closes the rings of the previous instance that this instance does not use. */
void handover_drop_parts(struct fr_handover *h);
/* Gives each ring of F that the store does not have yet a new number. */
void handover_fill_parts(struct fr_handover *h, const struct fr_handover_facts *f);
