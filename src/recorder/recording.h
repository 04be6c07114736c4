/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Opens the events of a configuration, at a start, a reload or a reopen. The functions enable no event and
 * start no thread.
 */

#include "capture/capture.h"
#include "capture/event.h"
#include "config/config.h"
#include "perfdata/session.h"

#include <sys/types.h>

struct fr_recording {
	struct fr_event_list events;
	struct fr_capture *capture;
	struct fr_session session;
};

struct fr_recording_config {
	const struct fr_config *config;	   /* all pointers are borrowed for the call */
	const char *cpus;		   /* used instead of CPUs= of the configuration; NULL: all CPUs */
	const struct fr_capture *previous; /* the capture that the recording replaces, or NULL */
	int sleeps_fd;			   /* see struct fr_capture_config */
	struct fr_switches *switches;	   /* the same */
	/* Returns the unwinder, which outlives the recording; or NULL if stacks cannot be unwound by tables
	   here. Called only if an event needs it. */
	const struct fr_unwinder *(*unwinder)(void *ctx);
	void *ctx;
	pid_t command_pid; /* the process of "-- COMMAND"; 0: there is none */
	int argc;	   /* argc and argv: the command line of the recorder, for the
			      heads of files */
	char *const *argv;
};

/* Opens the events, and describes them for the head of a file. Before the call, the caller sets RET to zeros.
   Returns 0; or a negative errno, with a message in D. On an error, RET is closed. */
int fr_recording_open(const struct fr_recording_config *c, struct fr_recording *ret, struct fr_diag *d);
/* Frees the members of RECORDING, and sets RECORDING to zeros. */
void fr_recording_close(struct fr_recording *recording);

/* Writes what is recorded, for messages: "cpu-clock, sched:sched_switch and 7 more on 2 CPUs". */
void fr_recording_describe(const struct fr_recording *recording, char *ret, size_t size);

/* Returns the first id of the side-band event, which is the last event of S. */
uint64_t fr_session_sideband_id(const struct fr_session *s);
