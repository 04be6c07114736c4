/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The causes of a job, and the steps of the sampling frequency in its window, which are JSON for the file
   beside the dump, as marks in its data. */

#include "dump/dump.h"

#include <cjson/cJSON.h>

struct fr_dumper_marks {
	struct fr_trigger_sample *v; /* texts are those of the JSON, and of the array behind it */
	size_t n;
	struct fr_dumper_mark_texts *texts;
};

/* One mark for each of META's "causes" that has a time (monotonic_ns), and of its "frequency_steps". RET
 * borrows META's texts. 0 or -ENOMEM. */
int fr_dumper_marks_of(const cJSON *meta, struct fr_dumper_marks *ret);
void fr_dumper_marks_deinit(struct fr_dumper_marks *m);
#define _cleanup_dumper_marks_ _cleanup_(fr_dumper_marks_deinit)
