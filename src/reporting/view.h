/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Everything that the recorder reports, read at one moment. The daemon sets the members. `status` and the
 * metrics are made from this struct only. Pointers are borrowed, except where a comment says otherwise. Only
 * the main thread uses this code.
 */

#include "base/clock.h"
#include "base/diag.h"
#include "base/loss.h"
#include "capture/aux.h"
#include "capture/capture.h"
#include "crashmem/tail.h"
#include "dumper/collector.h"
#include "dumper/dumper.h"
#include "handover/handover.h"
#include "history/rings.h"
#include "recorder/frequency.h"
#include "recorder/recorder.h"
#include "recorder/switching.h"
#include "reporting/rates.h"
#include "sideband/tracker.h"
#include "trigger/triggers.h"
#include "unwind/unwinder.h"

#include <cjson/cJSON.h>

#define FR_VIEW_THREADS 6
#define FR_VIEW_NOTICES 3

struct fr_view {
	uint64_t now_ns; /* monotonic; read before all other members */
	struct fr_clock_pair started;
	const char *boot_id, *directory;
	bool stopping;

	const struct fr_capture *capture;
	const struct fr_rates *rates;
	const struct fr_frequency *frequency;
	const struct fr_switching *switching;
	uint64_t lost[_FR_LOSS_MAX];
	struct fr_history_stats ring; /* all rings together */
	struct fr_ring_view {
		const char *name;
		struct fr_history_stats stats;
	} rings[FR_RINGS_MAX];
	unsigned n_rings;
	struct fr_history_stats sideband_ring; /* size_bytes 0: there is none */
	const char *ring_memory;	       /* RingMemory=; "": none */
	bool ring_survives;		       /* the ring survives a crash of the machine */
	struct fr_tail_stats tail;	       /* only with RingMemory= */
	uint64_t ring_period_ns;	       /* the longest time between two rounds */
	struct fr_tracker_stats sideband;
	struct fr_dumper_stats dumper;
	const struct fr_counters *counters;
	const struct fr_handover *handover;
	struct fr_triggers *triggers; /* NULL: the triggers are closed */
	bool unwinds;		      /* an unwinder runs; `unwind` has its numbers */
	struct fr_unwinder_stats unwind;
	bool has_objects; /* CacheObjects= is on */
	struct fr_collector_stats objects;
	uint64_t objects_max_bytes;
	struct {
		const char *name;
		pid_t tid; /* 0: the thread does not run */
	} threads[FR_VIEW_THREADS];

	/* Only `status` needs the following members. */
	struct fr_recorder_rounds rounds;
	cJSON *waiting;		/* array of the dumps that wait; fr_status() takes it over */
	const cJSON *last_dump; /* outcome of the newest job; NULL: none yet */
	const char *writer;	/* how the newest file was written; "": none yet */
	/* Each of the next members of type struct fr_diag says why something is not as configured. If its
	   `code` is 0, there is no such problem. */
	const struct fr_diag *refused;	      /* why the configuration in the files is not in force */
	const struct fr_diag *ring_kept;      /* RingSize= */
	const struct fr_diag *no_memory;      /* RingMemory= */
	const struct fr_diag *no_collector;   /* CacheObjects= */
	struct fr_diag no_unwinder;	      /* CallGraph=unwind */
	const char *notices[FR_VIEW_NOTICES]; /* notices of other parts; NULL: none */
};

/* Returns the object "status" of the control socket. The caller deletes it. */
cJSON *fr_status(const struct fr_view *v);
/* Returns the whole reply to `status` during a start; the caller deletes it. DOING says what the start does
   now. */
cJSON *fr_status_of_start(const struct fr_clock_pair *begun, const char *doing);
/* Adds to STATUS the array "notices", with a text for each thing that is not as it should be. If the
   configuration in the files is not in force, also adds the object "config_error". */
void fr_status_add_notices(const struct fr_view *v, cJSON *status);

/* Sets RET, which is empty, to the numbers of V as OpenMetrics text, without a NUL. The caller frees RET.
   Returns 0 or -ENOMEM. */
int fr_metrics(const struct fr_view *v, struct fr_buf *ret);

/* Sends STATUS= to the service manager: one line for `systemctl status`. */
void fr_notify_status(const struct fr_view *v);

/* Returns the resident memory of this process in bytes; 0: unknown. */
uint64_t fr_resident_bytes(void);
