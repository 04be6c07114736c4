/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The daemon: the one struct that has all parts. The code of the parts does not know this struct: the
 * functions of this folder pass to each part what the part needs.
 *
 *   main ─► loop ─► start, verbs ─► reload ─► reopen, resize ─► change, dumps, triggers, view
 *        ─► switches, stages ─► ring_memory, stacks, takeover
 *
 * In the .c files of this folder, a variable that points to the daemon is named `m`. The members of the
 * daemon belong to the main thread, except where a comment says otherwise. During a start, the members belong
 * to the thread fr-start, and the main thread answers only `status` (start.h).
 */

#include "base/clock.h"
#include "base/lock.h"
#include "config/config.h"
#include "crashmem/tail.h"
#include "control/server.h"
#include "control/subscribers.h"
#include "dumper/collector.h"
#include "dumper/dumper.h"
#include "handover/handover.h"
#include "history/rings.h"
#include "jit/open_files.h"
#include "recorder/command.h"
#include "recorder/cpu_watch.h"
#include "recorder/frequency.h"
#include "recorder/recorder.h"
#include "recorder/recording.h"
#include "recorder/switching.h"
#include "metrics/http.h"
#include "reporting/losses.h"
#include "reporting/rates.h"
#include "reporting/recent_dumps.h"
#include "sideband/tracker.h"
#include "trigger/triggers.h"
#include "unwind/unwinder.h"

#include <stdatomic.h>
#include <systemd/sd-event.h>

enum fr_stop {
	FR_STOP_NO,
	FR_STOP_CLEAN,
	FR_STOP_DUMP,  /* one more dump */
	FR_STOP_MERGE, /* one more dump, and after it a merge of all files into one perf.data */
};

/* The attempts to open the events of the recorded cgroup again, after the cgroup was removed and created
   again. For example, a restart of the recorded service removes and creates its cgroup. */
struct fr_cgroup_retry {
	bool failed; /* the last attempt failed, and this has been logged */
	uint64_t tried_ns, pause_ns;
};

struct fr_daemon;

/* Tells `status` what the start does now. DOING is a string literal. Any thread may call this function. */
typedef void (*fr_progress)(struct fr_daemon *daemon, const char *doing);

struct fr_daemon {
	/* The configuration in force. */
	struct fr_config *config; /* borrowed from main() */
	int argc;
	char **argv;
	struct fr_diag refused;	  /* why the configuration in the files is not in force; code 0: it is */
	struct fr_diag ring_kept; /* why the ring does not have the size of RingSize=; code 0: it does */

	/* The directory of the files, and their group. */
	int dirfd;
	gid_t gid; /* the group of files and of the socket; (gid_t)-1: there is none */
	char boot_id[FR_BOOT_ID_SIZE];

	/* The parts, in the order of the path of a sample (stages.c). */
	bool is_open;
	struct fr_handover handover;
	struct fr_command command; /* of "-- COMMAND" */
	pid_t recorded_pid;	   /* pid of the command, also after its end; 0: no command is recorded */
	/* Locked while the main thread changes `recording.capture`, `rings` or `lost_before`, and while the
	   dumper thread reads these members. */
	struct fr_lock parts_lock;
	/* The tracker holds this lock while it scans /proc, and low watermarks are frozen (docs/GLOSSARY.md).
	   During a scan, the tracker can wait for a disk, so the main thread waits for this lock only for a
	   bounded time. A thread that takes both locks takes freeze_lock before parts_lock. */
	struct fr_lock freeze_lock;
	struct fr_recording recording; /* the session also has the events of earlier recordings */
	struct fr_crashmem *memory;    /* RingMemory=; NULL: the ring is in a memfd */
	struct fr_diag no_memory;      /* why RingMemory= is not used; code 0: it is used, or not asked for */
	struct fr_tail *tail;	       /* the process model at the ring's tail, in `memory`; or NULL */
	struct fr_rings rings;
	uint64_t lost_before[_FR_LOSS_MAX]; /* losses of earlier instances and captures */
	struct fr_tracker *tracker;
	struct fr_recorder *recorder;
	struct fr_dumper *dumper;
	struct fr_jit_open_files *jit_open_files;
	/* NULL: no event has needed it yet, or it could not be started. Once it is started, it stays. The
	   thread that opens events sets it. */
	struct fr_unwinder *_Atomic unwinder;
	struct fr_diag no_unwinder;	/* why it could not be started; under parts_lock */
	struct fr_collector *collector; /* NULL: CacheObjects=no, or it could not be started */
	struct fr_diag no_collector;	/* why the collector could not be started */
	struct fr_frequency frequency;
	struct fr_switches *switches;
	struct fr_switching switching;
	sd_event_source *switch_timer;	/* to the end of a switch; NULL: no switch ends */
	struct fr_cpu_watch *cpu_watch; /* NULL: tasks are recorded, and not CPUs; or there was no memory */
	struct fr_cgroup_retry cgroup_retry;
	unsigned cpus_failed; /* number of CPUs that came online and are not recorded yet; this has been
				 logged */
	struct fr_arming *arming[FR_ARMING_LANES];
	struct fr_worker *change_worker;
	struct fr_triggers *triggers; /* NULL: not created yet, or closed */

	/* The loop and its clients. */
	sd_event *event;
	struct fr_change *change; /* NULL: no change is being prepared */
	void (*next_change)(struct fr_daemon *daemon);
	struct fr_call **reload_calls; /* the calls that wait for a reload that has not begun yet */
	size_t n_reload_calls;
	struct fr_clock_pair begun; /* when the start began */
	struct fr_start *start;	    /* NULL: the start has ended */
	struct fr_clock_pair started;
	char *socket, *group; /* copies of the strings that the server borrows */
	struct fr_server *server;
	struct fr_http *http;		/* NULL: MetricsListen= is empty */
	struct fr_subscribers watchers; /* clients that get each decision */
	uid_t tester;			/* the user who tests a trigger now; FR_UID_MACHINE: nobody does */
	uint64_t watchdog_usec;		/* WatchdogSec=; 0: there is no watchdog */
	enum fr_stop stop;
	bool final_submitted;
	int command_exit; /* the exit code of the command, once it has ended */

	/* Data for the log, `status` and the metrics. */
	struct fr_rates rates;
	struct fr_counters counters;
	struct fr_counters rescued; /* of a start, until fr_daemon_count_rescued() adds them to `counters` */
	struct fr_recent_dumps recent_dumps;
	uint64_t losses_reported; /* sum of all losses that the log has reported */
	int compaction_reported;  /* the last errno of compaction that the log has reported */
};
