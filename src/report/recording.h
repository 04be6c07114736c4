/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A recording is a perf.data file that is read from its start to its end, in the order of time: a dump, a
 * merged file, or a file of perf record. While it is read, a process model has the state of the machine at
 * the time of the current record. The file may be damaged or hostile, as in perfdata/reader.h. Not
 * thread-safe. All functions can wait for a disk.
 */

#include "base/diag.h"
#include "perfdata/reader.h"
#include "perfdata/sample.h"
#include "perfdata/tracepoint_format.h"
#include "sideband/model.h"

struct fr_recording;

/* An event of the file. It belongs to the recording. */
struct fr_recording_event {
	const char *name; /* "cpu-clock", "sched:sched_switch", "flightrec:offcpu" */
	const struct perf_event_attr *attr;
	const struct fr_tracepoint_format
		*format;  /* of the raw data; NULL: it has none, or it is not known */
	bool is_sideband; /* has no samples */
};

/* A record of the file. It is valid until the next fr_recording_next(). */
struct fr_recorded {
	uint64_t time; /* ns, on the clock of the events; a record without a time has that of the record
			  before */
	const struct perf_event_header *record;
	bool is_sample;
	uint32_t event; /* of a sample: its number, for fr_recording_event() */
	struct fr_sample_fields sample;
};

/* Opens PATH. The caller frees RET. Returns 0; or a negative errno, with a message in D. */
int fr_recording_open(const char *path, struct fr_recording **ret, struct fr_diag *d);
/* Accepts NULL; returns NULL. */
struct fr_recording *fr_recording_free(struct fr_recording *r);

/* Reads the next record. A side-band record has been applied to the model. Samples that are malformed, or
   whose event is unknown, are counted and skipped. Returns 1; 0 at the end; or a negative errno. */
int fr_recording_next(struct fr_recording *r, struct fr_recorded *ret);

/* The model at the time of the current record. It belongs to R. */
const struct fr_model *fr_recording_model(const struct fr_recording *r);
size_t fr_recording_n_events(const struct fr_recording *r);
const struct fr_recording_event *fr_recording_event(const struct fr_recording *r, size_t i);
/* Returns whether a sample of E is a wait of a thread, which has ended or not. */
bool fr_recording_event_is_wait(const struct fr_recording_event *e);
/* Returns whether the periods of the samples of E are in ns. */
bool fr_recording_event_is_time(const struct fr_recording_event *e);
/* Returns whether the samples of E show how long code ran: those of the clocks, and of cycles. */
bool fr_recording_event_is_cpu(const struct fr_recording_event *e);
/* Returns the time in ns that a sample of such an event stands for. PERIOD is that of the sample; 0: the
 * usual one. */
uint64_t fr_recording_event_ns(const struct fr_recording_event *e, uint64_t period);
/* Gets the times of the first and the last sample, from the head of the file. If the head does not have them,
   reads the whole file. Returns 0; -ENODATA if there are no samples with times; or another negative errno.
   All have a message in D. */
int fr_recording_window(
	const struct fr_recording *r, uint64_t *ret_from_ns, uint64_t *ret_to_ns, struct fr_diag *d);
/* Returns the wall time minus the time on the clock of the events, in ns; 0 if the head does not have it. */
int64_t fr_recording_wall_offset(const struct fr_recording *r);
/* Returns how many CPUs the machine had, or 0 if the head does not have it. The number can be any: the file
   may be hostile. */
uint32_t fr_recording_n_cpus(const struct fr_recording *r);
const struct fr_session *fr_recording_session(const struct fr_recording *r);
/* Returns the number of skipped samples. */
uint64_t fr_recording_skipped(const struct fr_recording *r);
/* See fr_reader_damage() and fr_reader_progress(). */
const struct fr_damage *fr_recording_damage(const struct fr_recording *r);
void fr_recording_progress(const struct fr_recording *r, uint64_t *ret_done, uint64_t *ret_total);

/* Reads a field of the raw data of SAMPLE, which is of EVENT. A number of less than 8 bytes is extended by
   its sign if it has one. Returns false if the event has no such field, or the sample is too short. */
bool fr_recorded_number(const struct fr_recording_event *event, const struct fr_sample_fields *sample,
	const char *field, uint64_t *ret);
/* Returns the text of a field, which is not NUL-terminated and is empty if there is no such field. The text
   can be an array of char or have a variable length (__data_loc). */
const char *fr_recorded_text(const struct fr_recording_event *event, const struct fr_sample_fields *sample,
	const char *field, size_t *ret_len);
