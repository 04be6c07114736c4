/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Shared by the files of the dumper: dumper.c (the thread), queue.c (the jobs that wait), run.c (one job),
   kept.c (the kept dump). */

#include "base/lock.h"
#include "dumper/dumper.h"

TAILQ_HEAD(fr_job_list, fr_dump_job);

/* The kept dump. It belongs to the dumper thread. */
struct fr_kept {
	struct fr_dump_job *job; /* NULL: there is none */
	struct fr_snapshot *snapshot;
	struct fr_buf state, since; /* the tail model, from fr_tracker_write_model() */
	struct fr_session session;  /* a copy, because the dumper's session drops old events */
	uint64_t samples;	    /* number of samples in the snapshot */
	uint64_t retry_ns;
};

struct fr_dumper {
	struct fr_dumper_config config;
	char *directory; /* a copy of config.directory */
	pthread_t thread;
	pid_t tid;
	int done_fd;
	struct fr_kept kept;
	uint64_t tidied_ns;
	struct fr_session session; /* only the dumper thread uses it */

	struct fr_lock lock;
	struct fr_cond changed;
	struct fr_job_list waiting, done;
	unsigned queued;     /* jobs that wait or run */
	uint64_t running_id; /* id of the dump that is being written; 0: none */
	bool stop, retry_now;
	struct fr_dumper_settings settings;
	struct fr_session session_next; /* for the next snapshot; without events: `session` is still valid */
	bool strip_rounds;		/* stays true, because older frames are still there */
	struct fr_dumper_stats stats;	/* only the members kept…, samples… and writing… are used */
};

struct fr_dumper_settings fr_dumper_settings(struct fr_dumper *p);

/* run.c, on the dumper thread. Run JOB to its outcome. */
void fr_dumper_run(struct fr_dumper *p, struct fr_dump_job *job);
/* Apply the limits. Called at the start, and then every hour. FIRST: also remove the files that a killed
   recorder left. */
void fr_dumper_tidy(struct fr_dumper *p, bool first);
/* Write SNAPSHOT (borrowed) with the events of SESSION, as JOB says. MODEL returns the process model (see
   struct fr_dump_params); it gets P as its context. Returns 0 or a negative errno. */
int fr_dumper_write(struct fr_dumper *p, struct fr_dump_job *job, struct fr_snapshot *snapshot,
	const struct fr_session *session, fr_dump_model model);
/* A function of the type fr_dump_model: gets the tail model from the tracker. */
int fr_dumper_model(void *p, uint64_t low_watermark_ns, uint64_t time_ns, struct fr_buf *ret_state,
	struct fr_buf *ret_since);

/* kept.c, on the dumper thread. Keep the data of JOB if KeepFailed= is set, the recorder does not end with
   JOB, and there is memory: take over *SNAPSHOT and set it to NULL, and set the outcome of JOB to KEPT. Give
   up the previous kept dump before. If the data cannot be kept, the caller still owns *SNAPSHOT, and the
   outcome of JOB does not change. */
void fr_kept_take(struct fr_dumper *p, struct fr_dump_job *job, struct fr_snapshot **snapshot);
/* Try to write the kept dump again. LAST: if that fails, give up the kept dump. If the kept dump became a
   file or is given up, returns its job, which the caller then owns. Otherwise returns NULL. */
struct fr_dump_job *fr_kept_retry(struct fr_dumper *p, bool last);
/* dumper.c. Pass JOB to the main loop. COUNTED: JOB has a place in the queue, which becomes free now. */
void fr_dumper_finish(struct fr_dumper *p, struct fr_dump_job *job, bool counted);
