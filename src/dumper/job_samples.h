/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Makes trigger samples (samples of the event "flightrec:trigger") from the JSON of a job: one sample for
   each cause, for each step of the sampling frequency, and for each switch of an event. */

#include "dump/dump.h"

#include <cjson/cJSON.h>

struct fr_job_samples {
	struct fr_trigger_sample *v; /* their texts belong to the JSON and to `texts` */
	size_t n;
	struct fr_job_sample_texts *texts;
};

/* Makes one sample for each item of "causes" in META that has a time (monotonic_ns), and for each item of
   "frequency_steps" and "switches" in META that is in the window. RET borrows the texts of META. Returns 0 or
   -ENOMEM. */
int fr_job_samples_init(struct fr_job_samples *ret, const cJSON *meta);
void fr_job_samples_deinit(struct fr_job_samples *s);
