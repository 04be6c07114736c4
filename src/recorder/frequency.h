/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * CPUBudget=: changes the frequencies of the events, and the threshold of offcpu, as budget.h decides, logs
 * each step, and remembers the steps for dumps. Only the main thread calls these functions, except where a
 * comment says something else.
 */

#include "base/diag.h"
#include "base/lock.h"
#include "recorder/budget.h"

#include <cjson/cJSON.h>

struct fr_capture;

#define FR_FREQUENCY_STEPS 64 /* only the newest steps are remembered */
#define FR_PPM_PER_PERCENT 10000.0

struct fr_frequency_step {
	uint64_t time_ns;  /* monotonic */
	unsigned from, to; /* divisors */
	/* The members used_ppm and ppm of struct fr_budget at the time of the step. */
	uint64_t used_ppm, ppm;
};

struct fr_frequency {
	struct fr_budget budget;
	uint64_t down, up; /* numbers of steps so far */
	/* The lock protects the members below it. The main thread writes these members, and the dumper
	   thread reads them. */
	struct fr_lock lock;
	uint64_t full_hz; /* frequency of the first event that has a frequency; 0: no event has a frequency */
	uint64_t full_threshold_ns; /* threshold of the event offcpu; 0: it is not recorded */
	struct fr_frequency_step steps[FR_FREQUENCY_STEPS];
	size_t n;
};

/* CAPTURE must be open and have its full frequencies. PPM is the budget in millionths of a CPU; 0: no
   limit. */
void fr_frequency_init(struct fr_frequency *f, const struct fr_capture *capture, uint64_t ppm);
void fr_frequency_deinit(struct fr_frequency *f);
/* Compares the CPU time of this process with the budget, and makes a step of CAPTURE's frequencies if the
   budget asks for it. Call this function every few seconds. */
void fr_frequency_tick(struct fr_frequency *f, struct fr_capture *capture);
/* Divides the frequencies of CAPTURE by the current divisor. Call this function before CAPTURE replaces the
   recorded capture. Returns 0; or a negative errno, with a message in D. */
int fr_frequency_prepare(const struct fr_frequency *f, struct fr_capture *capture, struct fr_diag *d);
/* Call this function when CAPTURE has replaced the recorded capture. */
void fr_frequency_set_capture(struct fr_frequency *f, const struct fr_capture *capture);
/* Sets the new value of CPUBudget=, in millionths of a CPU. If the new value is no limit (0), CAPTURE gets
   its full frequencies. */
void fr_frequency_set_budget(struct fr_frequency *f, struct fr_capture *capture, uint64_t ppm);
/* Returns the current frequency, in Hz, of the first event that has a frequency; 0: no event has a
   frequency. */
uint64_t fr_frequency_hz(const struct fr_frequency *f);
/* Returns the current threshold of the event offcpu, in ns; 0: it is not recorded. */
uint64_t fr_frequency_threshold_ns(const struct fr_frequency *f);
/* Adds the array "frequency_steps" to META: the steps from FROM_NS to TO_NS. If the frequency was already
   reduced at FROM_NS, the array also has the last step before FROM_NS, with the member "before_window". If
   there is no step, META does not change. Any thread is allowed to call this function. */
void fr_frequency_add_steps(struct fr_frequency *f, uint64_t from_ns, uint64_t to_ns, cJSON *meta);
