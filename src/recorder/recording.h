/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The events of a configuration, opened: what a start, a reload and a reopen do alike. Nothing is enabled
 * yet, and no thread runs.
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
	/* The kernel's build-ids would disturb the perf events of this process, so files are read for them;
	   0: the kernel gives them. */
	pid_t disturbed_pid;
};

struct fr_recording_config {
	const struct fr_config *config; /* all borrowed for the call */
	const char *cpus;		/* instead of CPUs=; NULL: all */
	pid_t command_pid;		/* of "-- COMMAND"; 0: none */
	int argc;			/* of the recorder, for the head of its files */
	char *const *argv;
};

/* Open the events and describe them for the head of a file. RET is zeroed before. 0 or a negative errno with
   D, and then RET is closed. */
int fr_recording_open(const struct fr_recording_config *c, struct fr_recording *ret, struct fr_diag *d);
/* NULL members are no harm. RECORDING is zeroed. */
void fr_recording_close(struct fr_recording *recording);

/* The id that S gives to side-band records: the side-band event is the last one. */
uint64_t fr_session_sideband_id(const struct fr_session *s);
