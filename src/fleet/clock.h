/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Estimates the offset between CLOCK_MONOTONIC of this machine and the clock of the fleet (the broker's),
   from messages that this machine stored. No thread, no I/O: the caller passes all times. */

#include "fleet/message.h"

#define FR_FLEET_CLOCK_KEEP 16u
/* How much the rates of two clocks can differ: half of what NTP corrects at most. An old measurement gets
   less exact by this much. */
#define FR_FLEET_CLOCK_DRIFT_PPM 250u

struct fr_fleet_clock_estimator {
	struct {
		uint64_t before_ns, after_ns; /* monotonic */
		uint64_t stored_ns;	      /* fleet time */
	} v[FR_FLEET_CLOCK_KEEP];
	size_t n, next;
};

/* Adds a measurement: the broker gave a message the time STORED_NS. The message was sent after BEFORE_NS, and
   its acknowledgement came before AFTER_NS (monotonic). */
void fr_fleet_clock_add(
	struct fr_fleet_clock_estimator *e, uint64_t before_ns, uint64_t after_ns, uint64_t stored_ns);
/* Forgets all measurements, for example because another broker answers, or the machine slept. */
void fr_fleet_clock_reset(struct fr_fleet_clock_estimator *e);
/* Writes the estimate for the monotonic time NOW_NS, when the wall clock shows WALL_NS. error_ns is
   UINT64_MAX if there is no measurement. Measurements that contradict each other (the broker's clock was set)
   do not count: only the newest ones that agree. */
void fr_fleet_clock_get(const struct fr_fleet_clock_estimator *e, uint64_t now_ns, uint64_t wall_ns,
	struct fr_fleet_clock *ret);
/* Convert between the two clocks; saturating. */
uint64_t fr_fleet_clock_to_monotonic(const struct fr_fleet_clock *c, uint64_t fleet_ns);
uint64_t fr_fleet_clock_to_fleet(const struct fr_fleet_clock *c, uint64_t monotonic_ns);
