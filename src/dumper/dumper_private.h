/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Shared by the files of the dumper: dumper.c (the thread), queue.c (the jobs that wait), run.c (one job),
   kept.c (the kept dump). */

#include "base/lock.h"
#include "dumper/dumper.h"

TAILQ_HEAD(fr_job_list, fr_dump_job);

/* The kept dump: a failed dump that the dumper tries to write again. Only the dumper thread uses it. */
struct fr_kept {
	struct fr_dump_job *job; /* NULL: there is no kept dump */
	struct fr_snapshots snapshots;
	/* Results of fr_tracker_write_model(): the process model of the dump, and later side-band. */
	struct fr_buf state, since;
	struct fr_session session; /* a copy, because the next session of the dumper may lack old events */
	uint64_t samples;	   /* number of samples in the snapshot */
	uint64_t retry_ns;	   /* monotonic time of the next attempt */
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
	struct fr_session session_next; /* for the next snapshot; if it has no events, `session` is used */
	bool no_rounds; /* stays true when it is true, because the ring still has older frames */
	struct fr_dumper_stats stats; /* only the members kept…, held…, holds…, samples… and
					 writing… are used */
};

struct fr_dumper_settings fr_dumper_settings(struct fr_dumper *p);

/* The functions of run.c are for the dumper thread. This function runs JOB, and sets its outcome. */
void fr_dumper_run(struct fr_dumper *p, struct fr_dump_job *job);
/* Applies the limits. The thread calls this at its start, and then every hour. If FIRST is true, also removes
   the files that a killed recorder left. */
void fr_dumper_tidy(struct fr_dumper *p, bool first);
/* Writes SNAPSHOTS (borrowed) with the events of SESSION, as JOB says. MODEL gets P as its context. Returns 0
   or a negative errno. */
int fr_dumper_write(struct fr_dumper *p, struct fr_dump_job *job, struct fr_snapshots *snapshots,
	const struct fr_session *session, fr_dump_model model);
/* A function of the type fr_dump_model. It gets the process model from the tracker. */
int fr_dumper_model(void *p, uint64_t low_watermark_ns, uint64_t time_ns, struct fr_buf *ret_state,
	struct fr_buf *ret_since);

/* Counts the AUX data of JOB, which no file will have, as lost. */
void fr_dumper_give_up_aux(struct fr_dumper *p, const struct fr_dump_job *job);

/* The functions of kept.c are for the dumper thread. If KeepFailed= is set, and the recorder does not end
   after JOB, this function gives up the previous kept dump, and then tries to keep the data of JOB: it takes
   over SNAPSHOTS, sets it to zeros, and sets the outcome of JOB to FR_OUTCOME_KEPT. If the data cannot be
   kept, for example without memory, the caller still owns SNAPSHOTS, and the outcome of JOB does not
   change. */
void fr_kept_take(struct fr_dumper *p, struct fr_dump_job *job, struct fr_snapshots *snapshots);
/* Tries to write the kept dump again. If that fails and LAST is true, gives up the kept dump. If the kept
   dump has become a file or has been given up, returns its job, which the caller then owns. Otherwise returns
   NULL. */
struct fr_dump_job *fr_kept_retry(struct fr_dumper *p, bool last);
/* In dumper.c. Passes JOB to the main loop. COUNTED is true if JOB has a place in the queue: this place
   becomes free. */
void fr_dumper_finish(struct fr_dumper *p, struct fr_dump_job *job, bool counted);
