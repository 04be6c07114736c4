/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * All samples of a recording, by threads, for formats that begin a thread only when the one before is
 * complete. A limited number of them is in memory. When there are more, they are sorted and appended to a
 * file as a run. Because the recording is read in the order of time, the samples of a thread are those of the
 * first run, then those of the second run, and so on. Not thread-safe.
 */

#include "report/profile.h"
#include "report/spill.h"

struct fr_kept_sample {
	uint64_t time, period;
	uint32_t task, stack, event;
};

struct fr_samples_run;

struct fr_samples {
	struct fr_kept_sample *v; /* sorted by pid, tid, event and time */
	size_t n, cap;
	uint64_t first_ns, last_ns;
	struct fr_samples_run *runs;
	size_t n_runs;
	struct fr_spill spill; /* the runs; if there is none, all samples are in `v` */
	int error;	       /* the first error of reading `spill`; 0: none */
};

/* A part of the samples with one pid and tid, and with one event. */
struct fr_samples_part {
	struct fr_samples *samples;
	size_t n;
	uint64_t period; /* of all samples together */
	uint32_t pid, tid, event;
	const char *comm, *process; /* the last names of the thread, and of its process */
};

/* The place in a part at which its samples are read. It begins as zeros. */
struct fr_samples_place {
	size_t run, n;
};

/* Reads the recording of P. Returns 0; or a negative errno, with a message in D. The caller frees RET. */
int fr_samples_read(struct fr_profile *p, struct fr_samples *ret, struct fr_diag *d);
/* Gets the next part. Returns false at the end, and if the samples cannot be read. */
bool fr_samples_next(const struct fr_profile *p, struct fr_samples *s, struct fr_samples_part *ret);
/* Returns the next sample of PART, which is the part that fr_samples_next() returned last, in the order of
   time; or NULL at the end, and if it cannot be read. It is valid until the next call. */
const struct fr_kept_sample *fr_samples_get(
	const struct fr_samples_part *part, struct fr_samples_place *place);
/* Returns 0; or a negative errno, with a message in D, if samples could not be read. Call it after the
   last part. */
int fr_samples_check(const struct fr_samples *s, struct fr_diag *d);
void fr_samples_deinit(struct fr_samples *s);
