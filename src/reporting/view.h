/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * All that is reported, at one moment. The daemon fills it in; `status` and the metrics are made of it and of
 * nothing else. Pointers are borrowed, except where a member says otherwise. Main thread.
 */

#include "base/clock.h"
#include "base/diag.h"
#include "base/loss.h"
#include "capture/capture.h"
#include "dumper/collector.h"
#include "dumper/dumper.h"
#include "handover/handover.h"
#include "history/history.h"
#include "recorder/frequency.h"
#include "recorder/recorder.h"
#include "reporting/rates.h"
#include "sideband/tracker.h"
#include "trigger/triggers.h"

#include <cjson/cJSON.h>

#define FR_VIEW_THREADS 5
#define FR_VIEW_NOTICES 3

struct fr_view {
	uint64_t now_ns; /* monotonic; taken first */
	struct fr_clock_pair started;
	const char *boot_id, *directory;
	bool stopping;

	const struct fr_capture *capture;
	const struct fr_rates *rates;
	const struct fr_frequency *frequency;
	uint64_t lost[_FR_LOSS_MAX];
	struct fr_history_stats ring;
	struct fr_tracker_stats sideband;
	struct fr_dumper_stats dumper;
	const struct fr_counters *counters;
	const struct fr_handover *handover;
	struct fr_triggers *triggers; /* NULL: none is armed any more */
	bool has_objects;	      /* CacheObjects= is on */
	struct fr_collector_stats objects;
	uint64_t objects_max_bytes;
	struct {
		const char *name;
		pid_t tid; /* 0: there is no such thread */
	} threads[FR_VIEW_THREADS];

	/* For `status` alone. */
	struct fr_recorder_rounds rounds;
	cJSON *waiting;		/* array of the dumps that wait; taken by fr_status() */
	const cJSON *last_dump; /* outcome of the newest job; NULL: none yet */
	const char *writer;	/* how the newest file was written; "": none yet */
	/* Why something is not as configured; code 0: it is. */
	const struct fr_diag *refused;	      /* the configuration of the files */
	const struct fr_diag *ring_kept;      /* RingSize= */
	const struct fr_diag *no_collector;   /* CacheObjects= */
	pid_t disturbed_pid;		      /* as in struct fr_recording */
	const char *notices[FR_VIEW_NOTICES]; /* of other parts; NULL: none */
};

/* The object "status" of the control socket. The caller's to delete. */
cJSON *fr_status(const struct fr_view *v);
/* The whole reply of `status` during a start that does DOING. */
cJSON *fr_status_of_start(const struct fr_clock_pair *begun, const char *doing);
/* The array "notices" of STATUS, and "config_error": what is not as it should be. */
void fr_status_add_notices(const struct fr_view *v, cJSON *status);

/* The same numbers as OpenMetrics text, without a NUL, into RET (empty, the caller's to deinit). 0 or
   -ENOMEM. */
int fr_metrics(const struct fr_view *v, struct fr_buf *ret);

/* Tell the service manager: STATUS=, one line for `systemctl status`. */
void fr_notify_status(const struct fr_view *v);

/* Resident memory of this process; 0: not known. */
uint64_t fr_resident_bytes(void);
