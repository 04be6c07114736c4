/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The dumper thread: takes jobs in order, has the recorder make a snapshot, writes it, and keeps the
 * directory within its limits. A stuck disk stops this thread only. Every trigger has an outcome, which is
 * given back to the main loop.
 *
 *   submit ─► waiting (for its turn, for its post-trigger time) ─► written ─► done ─► reap
 *               ▲ a trigger that asks for the same joins it        │ no space, …
 *               │                                                  ▼
 *               └──────────── every 10 s, after a vacuum ─────── kept (one)
 */

#include "base/diag.h"
#include "dump/dump.h"
#include "dump/vacuum.h"
#include "recorder/recorder.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

/* How many jobs may wait; a trigger past it is suppressed, and told so. Some places are root's alone, and
   users have no more than half of them, so that nobody keeps the machine's triggers or root out. */
#define FR_DUMPER_QUEUE_MAX 16
#define FR_DUMPER_KEPT_FOR_ROOT 2
#define FR_DUMPER_USERS_MAX 8
#define FR_DUMPER_PER_USER_MAX 4
/* An automatic dump waits so long before its snapshot, as several triggers see one anomaly, each a moment
   later. Its window ends with its cause all the same. */
#define FR_DUMPER_TOGETHER_NS (50 * 1000000ULL)
/* How many triggers one file may have; what comes past it gets a file of its own. */
#define FR_DUMPER_JOIN_MAX 64

#define FR_UID_MACHINE ((uid_t)-1)

enum fr_job_kind {
	FR_JOB_DUMP,
	FR_JOB_VACUUM, /* apply limits */
	FR_JOB_REMOVE, /* named dumps */
};

enum fr_job_outcome {
	FR_OUTCOME_DONE,     /* as CODE says, and nothing of it is left */
	FR_OUTCOME_KEPT,     /* it failed; its data stays in memory and is tried again */
	FR_OUTCOME_RESCUED,  /* one that had been kept is a file now */
	FR_OUTCOME_GIVEN_UP, /* one that had been kept is lost */
};

/* What a trigger asked for. Two that are equal may become one file. */
struct fr_dump_asked {
	uint64_t last_ns;	 /* so far back from the trigger; 0: all of the ring */
	uint64_t post_ns;	 /* and so far on */
	uint64_t from_ns, to_ns; /* or just this; 0, 0: by the two above */
};

struct fr_dump_job {
	struct fr_dump_job *next;
	enum fr_job_kind kind;
	uint64_t id;
	uid_t uid;   /* of who asked: 0: root, or the recorder's own user; FR_UID_MACHINE: a trigger */
	bool shared; /* somebody else's cause is in it, too */
	uint64_t trigger_ns; /* monotonic; of the first trigger, which names the file */
	struct fr_dump_asked asked;
	uint64_t from_ns, to_ns; /* the window; 0: the oldest */
	uint64_t ready_ns;	 /* not before: the end of its post-trigger time */
	bool compress;
	struct fr_file_writer_config writer;
	cJSON *meta;	/* cause, causes, …; completed by the write */
	void **callers; /* of the main loop: who waits */
	size_t n_callers;
	bool final;	/* the main loop stops after it */
	bool automatic; /* fr_dumper_join() may add causes to it */

	struct fr_retention limits; /* FR_JOB_VACUUM */
	char **names;		    /* FR_JOB_REMOVE, NULL-terminated */

	/* outcome */
	enum fr_job_outcome outcome;
	int code;
	struct fr_dump_result result;
	struct fr_diag diag;
	uint64_t snapshot_ns;		/* end of the window to window closed */
	struct fr_vacuum_report vacuum; /* what went for it, or by it */
	bool followed;			/* the path was another directory than before */
	char *directory;	    /* NULL: the file is in the path that was configured; else it is here */
	struct fr_diag vacuum_diag; /* why old dumps could not be removed; empty: they could */
};

struct fr_dumper;

/* What may change while it runs. */
struct fr_dumper_settings {
	struct fr_retention limits;
	bool keep_failed;
};

struct fr_dumper_config {
	struct fr_recorder *recorder; /* borrowed, as the tracker; free the dumper first */
	struct fr_tracker *tracker;
	const struct fr_session *session; /* copied by start() */
	int dirfd;
	const char
		*directory; /* the path of it; copied. Where that becomes another directory, so does dirfd */
	size_t section_max;
	int level;
	bool strip_rounds;
	struct fr_jit_held *jit_held; /* borrowed */
	bool vdso_kept;		      /* as in fr_dump_params */
	gid_t gid;
	struct fr_dumper_settings settings;
	/* The losses so far, into a job's meta, when its window has just closed: on the dumper thread. */
	void (*add_losses)(void *ctx, cJSON *meta);
	/* And the steps of the sampling frequency in its window, from the oldest that the ring has. */
	void (*add_steps)(void *ctx, uint64_t from_ns, uint64_t to_ns, cJSON *meta);
	void *ctx;
};

/* RET's done descriptor becomes readable when fr_dumper_reap() has something. The first that the thread does
   is to remove what a killed recorder left, and what is past the limits. */
int fr_dumper_start(const struct fr_dumper_config *config, struct fr_dumper **ret, struct fr_diag *d);
/* Finishes what is queued (what waits for its post-trigger time, now), tries what is kept a last time, and
   ends the thread; the outcomes can still be reaped. NULL-safe. */
void fr_dumper_stop(struct fr_dumper *p);
struct fr_dumper *fr_dumper_free(struct fr_dumper *p); /* stopped, and reaped */

pid_t fr_dumper_tid(const struct fr_dumper *p);
int fr_dumper_done_fd(const struct fr_dumper *p);

/* queue.c */
/* Consumes JOB. 0; 1: it has joined one that waits, whose id is *RET_ID; -EAGAIN where the queue is full,
   -EDQUOT where users have all that they may, and JOB stays the caller's. RET_ID (may be NULL) is set for 0
   and 1. Main thread. */
int fr_dumper_submit(struct fr_dumper *p, struct fr_dump_job *job, uint64_t *ret_id);
/* Add CAUSE (JSON, consumed where it is 0) of TIME_NS to an automatic dump that waits and whose window has
   that instant, or ended less than FR_DUMPER_TOGETHER_NS before it. Its window has then what both ASKED for,
   but ends no later than it did where it would have to wait longer. 0 with its number; -ENOENT: there is
   none, or it has FR_DUMPER_JOIN_MAX already. Main thread. */
int fr_dumper_join(struct fr_dumper *p, cJSON *cause, const struct fr_dump_asked *asked, uint64_t time_ns,
	uint64_t *ret_id);
/* Take back the waiting dump ID: *RET is the caller's. UID 0 may take back any dump. Another user may take
   back a dump of his own that has no cause of others. 0, or with D: -ENOENT: no such dump waits, or it is the
   last one of the recorder; -EBUSY: it is being written; -EPERM. Main thread. */
int fr_dumper_cancel(
	struct fr_dumper *p, uint64_t id, uid_t uid, struct fr_dump_job **ret, struct fr_diag *d);
/* The dumps that wait, in their order: an array of {id, uid, ready_ns, causes, cause}; NULL: no memory. */
cJSON *fr_dumper_waiting(struct fr_dumper *p);
/* The oldest finished job, the caller's to free, or NULL. */
struct fr_dump_job *fr_dumper_reap(struct fr_dumper *p);
/* The head of dumps whose snapshot is not taken yet is S, which is copied. 0 or -ENOMEM. Main thread. */
int fr_dumper_set_session(struct fr_dumper *p, const struct fr_session *s, bool strip_rounds);
void fr_dumper_set(struct fr_dumper *p, const struct fr_dumper_settings *settings);

struct fr_dumper_stats {
	unsigned queued;       /* triggers whose dump waits or is being written */
	unsigned waiting_post; /* dumps that wait for their post-trigger time */
	bool kept;	       /* one that failed is held in memory */
	uint64_t kept_trigger_ns;
	uint64_t kept_bytes;	   /* of the ring */
	uint64_t samples_given_up; /* FR_LOSS_FAILED_DUMP */
	char kept_why[512];
	uint64_t writing_since_ns; /* monotonic; 0: nothing is being written */
	char writing_name[FR_DUMP_NAME_SIZE];
};
void fr_dumper_stats(struct fr_dumper *p, struct fr_dumper_stats *ret);

/* A job of KIND, zeroed; NULL: no memory. */
struct fr_dump_job *fr_dump_job_new(enum fr_job_kind kind);
int fr_dump_job_add_caller(struct fr_dump_job *job, void *caller);
struct fr_dump_job *fr_dump_job_free(struct fr_dump_job *job);
