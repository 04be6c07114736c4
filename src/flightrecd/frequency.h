/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * CPUBudget=: what budget.h says is done to the events, told, and remembered for the dumps.
 */

#include "base/diag.h"
#include "flightrecd/budget.h"
#include "flightrecd/openmetrics.h"

#include <cjson/cJSON.h>
#include <pthread.h>

struct fr_capture;
struct fr_daemon;

#define FR_FREQUENCY_STEPS 64

struct fr_frequency_step {
	uint64_t time_ns;  /* monotonic */
	unsigned from, to; /* divisors */
	uint64_t used_ppm, ppm;
};

struct fr_frequency {
	struct fr_budget budget;
	uint64_t down, up;    /* steps so far */
	pthread_mutex_t lock; /* what follows, which the dumper reads: written by the main thread, with it */
	uint64_t full_hz;     /* of the first event with a frequency; 0: none has */
	struct fr_frequency_step steps[FR_FREQUENCY_STEPS];
	size_t n;
};

/* Main thread. The capture is open; none of its events was stepped. */
void fr_frequency_init(struct fr_daemon *daemon);
void fr_frequency_deinit(struct fr_daemon *daemon);
/* Every FR_RATE_PERIOD_NS. */
void fr_frequency_tick(struct fr_daemon *daemon);
/* CAPTURE, not enabled yet, is to take the place of the daemon's: with the divisor of now. A negative errno
 * with D. */
int fr_frequency_prepare(struct fr_daemon *daemon, struct fr_capture *capture, struct fr_diag *d);
/* It has taken it. */
void fr_frequency_capture_changed(struct fr_daemon *daemon);
/* CPUBudget= is another one. */
void fr_frequency_reload(struct fr_daemon *daemon, uint64_t ppm);
/* "frequency" of `status`. */
void fr_frequency_status(struct fr_daemon *daemon, cJSON *status);
void fr_frequency_metrics(struct fr_daemon *daemon, struct fr_openmetrics *o);
/* "frequency_steps" into META: those from FROM_NS to TO_NS, and where the frequency is not the full one at
   FROM_NS, the one that made it so, with "before_window". Nothing where there is none. Any thread. */
void fr_frequency_add_steps(void *daemon, uint64_t from_ns, uint64_t to_ns, cJSON *meta);
