/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The one place that knows all parts and joins them. The parts know nothing of the daemon: they are handed
 * what they need, and return what they want.
 *
 *   main ─► loop ─► start, verbs ─► reload ─► reopen, resize ─► dumps, triggers, view ─► stages ─► the parts
 *
 * The functions of this folder call the daemon `m`. All of it belongs to the main thread, except where a
 * member says otherwise. During a start it belongs to the start's thread, and the main thread answers
 * `status` alone (start.h).
 */

#include "base/clock.h"
#include "base/lock.h"
#include "config/config.h"
#include "control/server.h"
#include "control/subscribers.h"
#include "dumper/collector.h"
#include "dumper/dumper.h"
#include "handover/handover.h"
#include "history/history.h"
#include "jit/open_files.h"
#include "recorder/command.h"
#include "recorder/cpu_watch.h"
#include "recorder/frequency.h"
#include "recorder/recorder.h"
#include "recorder/recording.h"
#include "reporting/http.h"
#include "reporting/losses.h"
#include "reporting/rates.h"
#include "reporting/recent_dumps.h"
#include "sideband/tracker.h"
#include "trigger/triggers.h"

#include <systemd/sd-event.h>

enum fr_stop {
	FR_STOP_NO,
	FR_STOP_CLEAN,
	FR_STOP_DUMP,  /* one more dump */
	FR_STOP_MERGE, /* one more dump, then one perf.data of everything */
};

/* Opening the events of a recorded cgroup that was created again, for example when its service restarted. */
struct fr_cgroup_retry {
	bool failed; /* the last attempt failed; that was reported */
	uint64_t tried_ns, pause_ns;
};

struct fr_daemon {
	/* The configuration in force. */
	struct fr_config *config; /* borrowed from main() */
	int argc;
	char **argv;
	struct fr_diag refused;	  /* why the files' configuration is not in force; code 0: it is */
	struct fr_diag ring_kept; /* why the ring has not the size of RingSize=; code 0: it has */

	/* Where files go. */
	int dirfd;
	gid_t gid; /* the group of files and of the socket; (gid_t)-1: no such group */
	char boot_id[FR_BOOT_ID_SIZE];

	/* The parts, in the order of the path of a sample (stages.c). */
	bool is_open;
	struct fr_handover handover;
	struct fr_command command; /* of "-- COMMAND" */
	pid_t recorded_pid;	   /* of the command, also when it has ended; 0: no command is recorded */
	/* Locked while the main thread changes `recording.capture`, `history` or `lost_before`, and while the
	   dumper thread reads them. No thread waits for anything while it has this lock. */
	struct fr_lock parts_lock;
	/* The tracker has it while the low watermark is frozen, and may wait for a disk meanwhile: the main
	   thread waits for it for a bounded time only. Taken before parts_lock. */
	struct fr_lock freeze_lock;
	struct fr_recording recording; /* its session has the events of earlier recordings, too */
	struct fr_history *history;
	uint64_t lost_before[_FR_LOSS_MAX]; /* by earlier instances and captures */
	struct fr_tracker *tracker;
	struct fr_recorder *recorder;
	struct fr_dumper *dumper;
	struct fr_jit_open_files *jit_open_files;
	struct fr_collector *collector; /* NULL: CacheObjects=no, or it failed */
	struct fr_diag no_collector;	/* why it failed */
	struct fr_frequency frequency;
	struct fr_cpu_watch *cpu_watch; /* NULL: tasks are recorded, and not CPUs */
	struct fr_cgroup_retry cgroup_retry;
	unsigned cpus_failed; /* so many CPUs that came could not be opened; that was reported */
	struct fr_arming *arming[FR_ARMING_LANES];
	struct fr_worker *change_worker;
	struct fr_triggers *triggers; /* NULL: not yet, or no longer */

	/* The loop and its clients. */
	sd_event *event;
	struct fr_change *change; /* NULL: none is being prepared */
	void (*next_change)(struct fr_daemon *daemon);
	struct fr_call **reload_calls; /* they wait for a reload that has not begun */
	size_t n_reload_calls;
	struct fr_clock_pair begun; /* when the start began */
	struct fr_start *start;	    /* NULL: it has ended */
	struct fr_clock_pair started;
	char *socket, *group; /* of the server */
	struct fr_server *server;
	struct fr_http *http;		/* NULL: not asked for */
	struct fr_subscribers watchers; /* clients that watch decisions */
	uid_t tester;			/* tests a trigger right now; FR_UID_MACHINE: nobody does */
	uint64_t watchdog_usec;		/* WatchdogSec=; 0: none */
	enum fr_stop stop;
	bool final_submitted;
	int command_exit; /* the exit code of the command, once it has ended */

	/* What is reported. */
	struct fr_rates rates;
	struct fr_counters counters;
	struct fr_recent_dumps recent_dumps;
	uint64_t losses_reported; /* sum of all losses that the log has reported */
	int compaction_reported;  /* the last errno of compaction that the log has reported */
};
