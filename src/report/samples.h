/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* All samples of a recording in memory, by threads, for formats that begin a thread only when the one before is complete.
   Not thread-safe. */

#include "report/profile.h"

struct fr_kept_sample {
	uint64_t time, period;
	uint32_t task, stack, event;
};

struct fr_samples {
	struct fr_kept_sample *v; /* sorted by pid, tid, event and time */
	size_t n, cap;
	uint64_t first_ns, last_ns;
};

/* A part of the samples with one pid and tid, and with one event. */
struct fr_samples_part {
	const struct fr_kept_sample *v;
	size_t n;
	uint32_t pid, tid, event;
	const char *comm; /* the last name of the thread */
};

/* Reads the recording of P. Returns 0; or a negative errno, with a message in D: -EFBIG if there are more than 2^24
   samples. The caller frees RET. */
int fr_samples_read(struct fr_profile *p, struct fr_samples *ret, struct fr_diag *d);
/* Gets the part that begins at *AT, and moves *AT to the next one. Returns false at the end. */
bool fr_samples_next(const struct fr_profile *p, const struct fr_samples *s, size_t *at, struct fr_samples_part *ret);
void fr_samples_deinit(struct fr_samples *s);
