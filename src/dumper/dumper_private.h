/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The dumper's parts among themselves: dumper.c (thread), queue.c (jobs that wait), run.c (one
 * job), kept.c (a dump that failed). */

#include "base/lock.h"
#include "dumper/dumper.h"

struct fr_job_list {
	struct fr_dump_job *first, **last;
};

/* The kept dump. It belongs to the dumper thread. */
struct fr_kept {
	struct fr_dump_job *job; /* NULL: there is none */
	struct fr_snapshot *snapshot;
	struct fr_buf state, since; /* fr_tracker_write_model() of its oldest frame */
	struct fr_session session;  /* of the time of the dump: the dumper's session drops old events */
	uint64_t samples;	    /* in its window */
	uint64_t retry_ns;
};

struct fr_dumper {
	struct fr_dumper_config config;
	char *directory; /* config.directory, of our own */
	pthread_t thread;
	pid_t tid;
	int done_fd;
	struct fr_kept kept;
	uint64_t tidied_ns;
	struct fr_session session; /* the thread's own */

	struct fr_lock lock;
	struct fr_cond changed;
	struct fr_job_list waiting, done;
	unsigned queued;     /* jobs waiting or running */
	uint64_t running_id; /* of a dump; 0: none */
	bool stop, retry_now;
	struct fr_dumper_settings settings;
	struct fr_session session_next; /* no events: nothing to take */
	bool strip_rounds;		/* stays true, because older frames are still there */
	struct fr_dumper_stats stats;	/* the kept_, samples_ and writing_ members */
};

struct fr_dumper_settings fr_dumper_settings(struct fr_dumper *p);

/* queue.c */
void fr_jobs_init(struct fr_job_list *l);
void fr_jobs_push(struct fr_job_list *l, struct fr_dump_job *job);
void fr_jobs_push_front(struct fr_job_list *l, struct fr_dump_job *job);
/* The job that *AT points to, or NULL. */
struct fr_dump_job *fr_jobs_take(struct fr_job_list *l, struct fr_dump_job **at);

/* run.c, on the dumper thread. Run JOB to its outcome. */
void fr_dumper_run(struct fr_dumper *p, struct fr_dump_job *job);
/* At the start (FIRST: with the temporary files of a killed recorder) and every hour: apply the limits. */
void fr_dumper_tidy(struct fr_dumper *p, bool first);
/* Write SNAPSHOT (borrowed), with the events of SESSION, as JOB says. MODEL as in struct fr_dump_params, with
   P as its context. */
int fr_dumper_write(struct fr_dumper *p, struct fr_dump_job *job, struct fr_snapshot *snapshot,
	const struct fr_session *session, fr_dump_model model);
int fr_dumper_model(void *p, uint64_t low_watermark_ns, uint64_t time_ns, struct fr_buf *ret_state,
	struct fr_buf *ret_since);

/* kept.c, on the dumper thread. Keep JOB's data, if that is wanted and possible: then takes SNAPSHOT, and
   sets JOB's outcome. The dump that was kept before is given up. */
void fr_kept_take(struct fr_dumper *p, struct fr_dump_job *job, struct fr_snapshot **snapshot);
/* Write the kept dump again; LAST: give it up if that fails. Returns its job, the caller's then, if it is a
   file or was given up; otherwise NULL. */
struct fr_dump_job *fr_kept_retry(struct fr_dumper *p, bool last);
/* dumper.c. Hand JOB to the main loop. */
void fr_dumper_finish(struct fr_dumper *p, struct fr_dump_job *job, bool counted);
