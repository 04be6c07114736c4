/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Declarations that the files of the agent share:
 *
 *   agent.c      configuration, threads, statistics
 *   link.c       the bus thread
 *   presence.c   presence and clock
 *   commands.c   from a bell to a job
 *   answers.c    answers and index entries
 *   dumps.c      the dump threads
 *   uploads.c    the upload thread; upload.c: the steps of one upload
 *   watch.c      the watch thread; incidents.c: the brake of Action=fleet
 *   recorder.c   calls of the recorder
 *   table.c      the jobs and their files
 *
 * `lock` protects the members below it. A job belongs to the thread of its phase (job.h): only this thread
 * changes it. Other threads read, under the lock, the members `phase`, `answer` and the two versions, and the
 * owner changes these members only under the lock.
 */

#include "agent/agent.h"
#include "agent/decision.h"
#include "agent/handled.h"
#include "agent/job.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "bus/bus.h"
#include "control/client.h"
#include "fleet/clock.h"
#include "fleet/location.h"
#include "store/s3.h"

#include <stdatomic.h>

#define AGENT_DUMPS 4u	      /* dumps at a time */
#define AGENT_WAITING_MAX 64u /* commands that wait for a dump thread */
#define AGENT_JOBS_MAX 1024u  /* jobs of all phases */
#define AGENT_BELLS_MAX 64u
#define AGENT_DECISIONS_MAX 64u
#define AGENT_BUS_TIMEOUT_NS (10 * FR_NSEC_PER_SEC)
#define AGENT_COMMAND_AGE_NS (3600 * FR_NSEC_PER_SEC) /* an older command is not obeyed any more */
#define AGENT_DECISION_AGE_NS (60 * FR_NSEC_PER_SEC)
#define AGENT_CLIENTS                                                                                        \
	(AGENT_DUMPS + 4u) /* a thread has one connection to the recorder; the watch thread can have two */

struct fr_agent {
	const struct fr_fleet_config *fleet;
	const char *socket;
	char name[FR_FLEET_NAME_SIZE];
	char boot_id[FR_BOOT_ID_SIZE];
	struct fr_labels labels;
	bool has_location; /* Upload= is set */
	struct fr_fleet_location location;
	int state_fd, jobs_fd;
	pthread_t bus_thread, upload_thread, watch_thread, dump_threads[AGENT_DUMPS];
	unsigned n_threads; /* that run: in the order of the list in agent.c */
	bool is_leaving;
	atomic_bool stop; /* also `cancel` of the store */
	_Atomic uint64_t bus_beat_ns, upload_beat_ns;

	/* Only the bus thread */
	struct fr_bus *bus;
	struct fr_fleet_clock_estimator estimator;
	uint64_t presence_due_ns, bus_due_ns, down_since_ns;
	char bus_said[512]; /* the error that was logged last */

	struct fr_lock lock;
	struct fr_cond cond;
	struct fr_client *clients[AGENT_CLIENTS]; /* those that are in use: a stop breaks their calls */
	struct fr_job *jobs[AGENT_JOBS_MAX];
	size_t n_jobs;
	struct fr_handled handled;
	struct fr_fleet_clock clock;
	char bells[AGENT_BELLS_MAX][FR_FLEET_SUBJECT_SIZE];
	size_t n_bells;
	struct fr_agent_decision decisions[AGENT_DECISIONS_MAX];
	size_t n_decisions;
	bool link_came, rescan; /* read all commands that are stored */
	bool presence_now;	/* the presence has changed */
	struct fr_agent_stats stats;
};

/* agent.c */
/* Writes why the last call failed into TEXT of the statistics. Returns whether this is another text: then
   the presence is stored at once. */
bool fr_agent_set_text(struct fr_agent *a, char text[256], const char *why);
/* Waits for a signal, but not longer than until UNTIL_NS (monotonic). The caller holds the lock. */
void fr_agent_wait(struct fr_agent *a, uint64_t until_ns) FR_REQUIRES(a->lock);
uint32_t fr_agent_random(void);
/* The fleet time of now; the wall clock if the clock is not measured yet. */
uint64_t fr_agent_now_fleet(struct fr_agent *a);

/* table.c: all functions except fr_table_load() and fr_table_save() want the lock. */
int fr_table_load(struct fr_agent *a, struct fr_diag *d);
void fr_table_deinit(struct fr_agent *a);
struct fr_job *fr_table_find(struct fr_agent *a, const char *id) FR_REQUIRES(a->lock);
int fr_table_add(struct fr_agent *a, const struct fr_job *j) FR_REQUIRES(a->lock);
void fr_table_remove(struct fr_agent *a, struct fr_job *j) FR_REQUIRES(a->lock);
/* Writes the file of the job. Waits for the disk; the caller owns the job, and has not the lock. An error is
   logged. */
int fr_table_save(struct fr_agent *a, const struct fr_job *j) FR_EXCLUDES(a->lock);
int fr_table_save_handled(struct fr_agent *a) FR_EXCLUDES(a->lock);
/* Changes the phase, writes the file, and passes the job to the thread of the new phase. */
void fr_table_pass(struct fr_agent *a, struct fr_job *j, enum fr_job_phase phase) FR_EXCLUDES(a->lock);
/* Ends the job with the answer STATE: fr_table_pass() to RELEASE or END. */
void fr_table_end(struct fr_agent *a, struct fr_job *j, enum fr_fleet_state state, const char *why)
	FR_EXCLUDES(a->lock);
/* Adds up the dumps that wait for the store. */
void fr_table_uploads(struct fr_agent *a, uint64_t *ret_n, uint64_t *ret_bytes) FR_REQUIRES(a->lock);

/* The name of the file with the parts of the upload (parts.h), beside the file of the job. */
#define FR_TABLE_NAME_SIZE (FR_FLEET_ID_SIZE + 8u)
void fr_table_parts_name(const struct fr_job *j, char ret[FR_TABLE_NAME_SIZE]);

/* link.c */
void *fr_agent_bus_main(void *agent);
/* Logs an error of the bus, if it is another one than before, and makes the bus thread pause. */
void fr_agent_bus_failed(struct fr_agent *a, const struct fr_diag *d, int code);

/* presence.c: on the bus thread. Return 0 or a negative errno, after fr_agent_bus_failed(). */
int fr_agent_measure(struct fr_agent *a, unsigned times);
int fr_agent_presence(struct fr_agent *a);
void fr_agent_leave(struct fr_agent *a);

/* commands.c */
void fr_agent_on_bell(void *agent, const char *subject);
/* On the bus thread: as above. */
int fr_agent_read_commands(struct fr_agent *a);
/* Starts the jobs of the phase CHECK. */
int fr_agent_check_jobs(struct fr_agent *a);

/* answers.c: on the bus thread, as above. */
int fr_agent_send_answers(struct fr_agent *a);

/* dumps.c */
void *fr_agent_dump_main(void *agent);

/* uploads.c */
void *fr_agent_upload_main(void *agent);

/* upload.c */
struct fr_upload {
	struct fr_agent *agent;
	struct fr_job *job;
	struct fr_store *store;
	int fd;
	uint64_t bytes;
	uint64_t told_ns; /* when the progress was told last */
};
/* Brings the dump of the job to the store, from where it was. Returns 0; or a negative errno of s3.h, with a
   message in D. -ESTALE: the file is gone, so that no other try can help. */
int fr_upload_run(struct fr_upload *u, struct fr_diag *d);

/* watch.c */
void *fr_agent_watch_main(void *agent);

/* incidents.c: on the bus thread, as above. */
int fr_agent_send_incidents(struct fr_agent *a);

/* recorder.c */
/* Calls METHOD of the recorder over a connection of its own. Consumes PARAMETERS. A stop of the agent breaks
   the call: -ECANCELED. Else as fr_client_connect() and fr_client_call(). */
int fr_recorder_call(struct fr_agent *a, const char *method, cJSON *parameters, uint64_t timeout_ns,
	cJSON **ret, struct fr_diag *d);
/* Connects, and registers the connection, so that a stop breaks it. */
int fr_recorder_connect(struct fr_agent *a, struct fr_client **ret, struct fr_diag *d);
struct fr_client *fr_recorder_disconnect(struct fr_agent *a, struct fr_client *c);
/* Breaks all calls. */
void fr_recorder_break(struct fr_agent *a) FR_REQUIRES(a->lock);
/* Returns whether CODE of a call says that the recorder does not run, or has just ended. */
bool fr_recorder_is_away(int code);
