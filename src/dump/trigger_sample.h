/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Used in dump/ only: makes trigger samples. A cause of the dump, or a step of the sampling frequency,
 * becomes a sample of the event "flightrec:trigger". So every reader shows the cause or the step at its time.
 *
 * No kernel has a tracepoint flightrec:trigger, so each dump contains the format with which readers decode
 * these samples. The attr of the event depends only on the other events of the recording, and the id only on
 * the attr. Therefore, if flightrec-merge merges dumps of one recording, its output has one event
 * flightrec:trigger. If two of these dumps have the same trigger sample, the output has it once.
 * docs/design/50 has the reasons.
 */

#include "dump/params.h"
#include "base/buf.h"
#include "perfdata/writer.h"

#define FR_TRIGGER_SAMPLE_EVENT "flightrec:trigger"

struct fr_trigger_samples {
	struct fr_buf records; /* ordered by time; also the records of fr_trigger_samples_add_records() */
	size_t written;	       /* how many bytes of the records have been written */
	uint64_t n;	       /* number of trigger samples */
};

/* Adds the event "flightrec:trigger" to S as its last event, with its format and description. Returns 0 or a
   negative errno. */
int fr_trigger_samples_add_event(struct fr_session *s);
/* Makes the records of the N SAMPLES (borrowed). S must have the event "flightrec:trigger" as its last event.
   Returns 0 or -ENOMEM. */
int fr_trigger_samples_init(struct fr_trigger_samples *t, const struct fr_session *s,
	const struct fr_trigger_sample *samples, size_t n);
/* Adds the RECORDS, which all have the time TIME_NS, at their place. Returns 0 or -ENOMEM. */
int fr_trigger_samples_add_records(
	struct fr_trigger_samples *t, const struct fr_buf *records, uint64_t time_ns);
void fr_trigger_samples_deinit(struct fr_trigger_samples *t);
/* Returns the time of the oldest record that has not been written yet; UINT64_MAX: all are written. */
uint64_t fr_trigger_samples_next_ns(const struct fr_trigger_samples *t);
/* Writes to OUT the records up to the time UNTIL_NS that have not been written yet. Returns 0 or a negative
   errno. */
int fr_trigger_samples_write(struct fr_trigger_samples *t, struct fr_file_writer *out, uint64_t until_ns);
