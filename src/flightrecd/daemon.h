/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The one place that joins the stages: opens them in the order of the path of a sample, runs the main loop,
 * and takes them down in reverse. Everything here is the main thread's, except where a member says otherwise.
 */

#include "base/clock.h"
#include "capture/capture.h"
#include "control/server.h"
#include "flightrecd/cgroup.h"
#include "flightrecd/collector.h"
#include "flightrecd/command.h"
#include "flightrecd/config.h"
#include "flightrecd/dumper.h"
#include "flightrecd/frequency.h"
#include "flightrecd/handover.h"
#include "flightrecd/hotplug.h"
#include "flightrecd/recorder.h"
#include "flightrecd/start.h"
#include "history/history.h"
#include "jit/open_files.h"
#include "perfdata/session.h"
#include "sideband/tracker.h"
#include "trigger/triggers.h"

#include <pthread.h>
#include <sys/signalfd.h>
#include <systemd/sd-event.h>

/* Counters at one moment, to make rates of. Two of them, RATE_PERIOD apart, are kept. */
struct fr_counter_snapshot {
	uint64_t time_ns;  /* 0: not taken */
	uint64_t cpu_ns;   /* own */
	uint64_t *samples; /* [event * n_cpus + cpu] */
};

enum fr_stop {
	FR_STOP_NO,
	FR_STOP_CLEAN,
	FR_STOP_DUMP,  /* one more dump */
	FR_STOP_MERGE, /* one more dump, then one perf.data of it all */
};

struct fr_daemon {
	struct fr_config *config; /* borrowed from main() */
	int argc;
	char **argv;

	struct fr_event_list events;
	struct fr_session session; /* of the recording, and of what the ring still has of earlier ones */
	int dirfd;
	gid_t gid; /* of files and socket; (gid_t)-1: no such group */
	char boot_id[FR_BOOT_ID_SIZE];

	struct fr_handover handover;
	/* Why the configuration that the files have is not the one in force; code 0: it is. */
	struct fr_diag refused;
	struct fr_diag ring_kept; /* why the ring has not the size of RingSize=; code 0: it has */

	struct fr_command command; /* of "-- COMMAND" */
	/* A reload changes `capture`, `history` and `lost_before` on the main thread, with this locked for
	   writing; other threads lock it to read them. Nobody waits for anything while he has it. */
	pthread_rwlock_t parts;
	/* The ring stays the one that it is. The tracker has it from a hold to the release, and may wait for
	   a disk meanwhile: the main thread waits for it for a bounded time only. Taken before `parts`. */
	pthread_mutex_t hold;
	struct fr_capture *capture;
	struct fr_history *history;
	uint64_t lost_before[_FR_LOSS_MAX]; /* by instances before, and before reloads */
	struct fr_tracker *tracker;
	struct fr_recorder *recorder;
	struct fr_dumper *dumper;
	struct fr_jit_open_files *jit_open_files;
	struct fr_collector *collector; /* NULL: CacheObjects=no, or */
	struct fr_diag no_collector;	/* why there is none */
	uint64_t sideband_id;
	pid_t disturbed_pid; /* whom the kernel's build-ids would disturb, so that they are not asked for; 0:
				nobody */

	struct fr_clock_pair begun;
	bool is_open;		/* the stages are */
	struct fr_start *start; /* NULL: it has started */
	sd_event *event;
	struct fr_arming *arming[FR_ARMING_LANES];
	char *socket, *group;	      /* of the server */
	struct fr_triggers *triggers; /* NULL: not yet, or no longer */
	uid_t tester;		      /* who tests a trigger right now; FR_UID_MACHINE: nobody */
	struct fr_watchers *watchers; /* of verbs_triggers.c; NULL: nobody has ever watched */
	struct fr_server *server;
	uint64_t watchdog_usec; /* WatchdogSec=, 0: none */
	enum fr_stop stop;
	bool final_submitted;
	int command_exit; /* the exit code of the command, once it has ended */

	struct fr_clock_pair started;
	struct fr_counter_snapshot rate[2]; /* older, newer */
	struct fr_frequency frequency;
	struct fr_hotplug hotplug;
	struct fr_cgroup cgroup;
	struct fr_http *http; /* of listener.c; NULL: not asked for */
	uint64_t next_job_id;
	/* Every trigger is one of these, or queued. A dump that failed and was kept is a failed one, and may
	   be a rescued one later. */
	uint64_t dumps_done, dumps_joined, dumps_failed, dumps_suppressed, dumps_canceled;
	uint64_t dumps_rescued, dumps_given_up, dumps_removed, dumps_not_durable;
	char writer[96];      /* how the newest file was written */
	cJSON *last_dump;     /* outcome of the newest job, NULL: none yet */
	cJSON *dumps;	      /* array of this run's dumps, newest last, bounded */
	uint64_t losses_told; /* sum of all losses that the log has spoken of */
	int compaction_told;  /* the last errno of compaction that it has */
};

void fr_daemon_init(struct fr_daemon *daemon, struct fr_config *config, int argc, char *argv[]);
/* Starts, and runs until a signal, `flightrecctl stop`, or the end of the command; as start.h has it. Returns
   an exit code. */
int fr_daemon_run(struct fr_daemon *daemon, struct fr_buf *kept, bool inherited);
void fr_daemon_close(struct fr_daemon *daemon);

/* daemon.c: opens the stages; nothing is sampled yet. On failure D, and none of them is left. Not only on the
   main thread, which has the loop and the control socket. */
int fr_daemon_open(struct fr_daemon *daemon, struct fr_diag *d);

/* dumps.c */
/* All borrowed. */
struct fr_dump_request {
	const struct fr_cause *cause; /* its instant is the trigger's */
	uid_t uid;		      /* of who asked; (uid_t)-1: not a person */
	struct fr_dump_asked asked;
	bool automatic; /* of a source: other causes may join it while it waits for its post-trigger time */
	bool no_compression; /* whatever Compression= says */
	void *caller;	     /* NULL, or handed to fr_verb_job_done() */
};
/* 0 with the number of the dump (RET_ID may be NULL); 1: it has joined that one; -EAGAIN: the queue is full,
   -EDQUOT: users have all of it that they may, and counted as suppressed; -ENOMEM. Who asks passed the policy
   already. */
int fr_daemon_dump(struct fr_daemon *daemon, const struct fr_dump_request *request, uint64_t *ret_id);
/* CALL's peer takes dump ID back, which waits; who waits for it is told. As fr_dumper_cancel(), with D. */
int fr_daemon_cancel(struct fr_daemon *daemon, struct fr_call *call, uint64_t id, struct fr_diag *d);
/* The dumps that wait, as `status` has them. */
cJSON *fr_daemon_waiting(struct fr_daemon *daemon);
/* What trigger NAME asks for by its section, or else by [Dump]. */
struct fr_dump_asked fr_daemon_asked(const struct fr_daemon *daemon, const char *name);
/* Takes the outcomes of finished jobs: log, memory, answer to who waits. */
void fr_daemon_reap(struct fr_daemon *daemon);

/* loop.c: what the verbs may ask for. */
void fr_daemon_feed_watchdog(struct fr_daemon *daemon);
void fr_daemon_stop(struct fr_daemon *daemon, enum fr_stop how);
/* STATUS= for the service manager. */
void fr_daemon_notify_status(struct fr_daemon *daemon);
/* What is open goes: samples flow, triggers are armed. 0 or a negative errno with D. */
int fr_daemon_go(struct fr_daemon *daemon, struct fr_diag *d);
/* A signal came. */
void fr_daemon_take_signal(struct fr_daemon *daemon, const struct signalfd_siginfo *si);
/* Whether this is the end of the service, and no restart, as far as anybody tells. */
bool fr_daemon_service_ends(void);
/* reload.c: reads the configuration again. What has become other is in RET->changed, what could not (and why,
   or that it waits for a restart) in RET->waiting: arrays of lines. Other events, buffers and CPUs are
   recorded from one instant on, the ring keeps what fits. 0, or a negative errno with D, and then what is
   recorded is what was. */
struct fr_reloaded {
	cJSON *changed, *waiting;
};
int fr_daemon_reload(struct fr_daemon *daemon, struct fr_reloaded *ret, struct fr_diag *d);
/* WHY the configuration of before stays, into RET and the log. */
void fr_daemon_refuse_config(struct fr_diag *ret, const struct fr_diag *why);
/* The ring of the instance before has the size that it had; now it gets that of RingSize=, or stays. */
void fr_daemon_fit_ring(struct fr_daemon *daemon);
void fr_reloaded_deinit(struct fr_reloaded *what);
/* The same events on CPUS (borrowed; a list, or NULL: all), since N times something CAME (FR_LOSS_CPU_CAME,
   FR_LOSS_CGROUP_CAME). As above: 0, or a negative errno with D. */
int fr_daemon_reopen(struct fr_daemon *daemon, char *cpus, enum fr_loss came, unsigned n, struct fr_diag *d);

/* daemon.c: what a start and a reload do alike. Each 0 or a negative errno with D. */
int fr_daemon_parse_events(const struct fr_config *config, struct fr_event_list *ret, struct fr_diag *d);
/* RET_DISTURBED as the member. */
int fr_daemon_open_capture(struct fr_daemon *daemon, const struct fr_config *config,
	const struct fr_event_list *events, struct fr_capture **ret, pid_t *ret_disturbed, struct fr_diag *d);
/* Those of the recorder's threads. Returns how many. */
#define FR_OWN_TIDS_MAX 7
size_t fr_daemon_own_tids(const struct fr_daemon *daemon, pid_t ret[static FR_OWN_TIDS_MAX]);

/* verbs.c */
int fr_verbs_serve(struct fr_daemon *daemon, struct fr_diag *d);
/* Answers one who waits for JOB. */
void fr_verb_job_done(struct fr_daemon *daemon, struct fr_call *call, const struct fr_dump_job *job);

/* status.c */
cJSON *fr_status(struct fr_daemon *daemon);
void fr_status_tick(struct fr_daemon *daemon); /* every FR_RATE_PERIOD_NS */
#define FR_RATE_PERIOD_NS (5 * FR_NSEC_PER_SEC)
void fr_status_losses(struct fr_daemon *daemon, uint64_t ret[static _FR_LOSS_MAX]); /* since the start */
uint64_t fr_status_resident_bytes(void);
uint64_t fr_status_total_losses(struct fr_daemon *daemon);
/* "losses" into META: an array of {cause, event, cpu, count}. From any thread: reads counters only. */
void fr_status_add_losses(void *daemon, cJSON *meta);
