/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A reload that adds and drops rings. The main thread calls these functions. */

#include "flightrecd/daemon.h"

/* Makes the rings of FRESH, the next configuration, which records other events. Rings that are there already
   stay as they are, by their name. *RET gets the rings for fr_daemon_switch(). Returns 0; or a negative
   errno, with a message in D. */
int fr_daemon_prepare_rings(
	struct fr_daemon *m, const struct fr_config *fresh, struct fr_rings *ret, struct fr_diag *d);
/* Frees the rings of FROM that are not in KEPT. */
void fr_daemon_free_rings(const struct fr_rings *from, const struct fr_rings *kept);
/* Frees the rings of OLD that the daemon does not have any more, and keeps their counters. */
void fr_daemon_drop_rings(struct fr_daemon *m, const struct fr_rings *old);
