/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The cgroup that is recorded, when it is made anew. A service that is restarted has a cgroup of the same
 * path and of another identity, of which the events that are open hear nothing: so they are opened anew, as a
 * reload does. What its tasks did until then is not there, and counted (FR_LOSS_CGROUP_CAME). Main thread.
 */

#include <stdbool.h>
#include <stdint.h>

struct fr_daemon;

struct fr_cgroup {
	bool failed; /* it could not be opened anew, and that was told */
	uint64_t tried_ns, pause_ns;
};

/* Every FR_RATE_PERIOD_NS. */
void fr_cgroup_tick(struct fr_daemon *daemon);
