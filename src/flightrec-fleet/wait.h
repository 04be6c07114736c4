/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Waits for the answers to a command. */

#include "flightrec-fleet/machines.h"

struct wait {
	struct fleet *f;
	struct machines *machines;
	const char *id;
	uint64_t now_ns;   /* fleet time of the command */
	uint64_t until_ns; /* monotonic */
	bool stored;	   /* wait until the store has the dumps */
	uint64_t ignored;  /* bad messages before */
	int bell;	   /* an eventfd that the bells of the answers write */
};

/* Subscribes to the answers of W->id. Call it before the command is stored, and again if
   the id changes. Returns 0 or a negative errno. */
int wait_begin(struct wait *w, struct fr_diag *d);
/* Reads answers until all reachable machines have answered, the limit is reached, or the user presses ^C.
   Returns 0 or a negative errno. */
int wait_run(struct wait *w, struct fr_diag *d);
/* The caller frees the bus first, because its threads use W. */
void wait_end(struct wait *w);
/* Returns whether the machine has nothing more to say. */
bool wait_is_over(const struct wait *w, const struct machine *m);
