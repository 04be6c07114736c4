/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The dumper thread: takes jobs in order, has the recorder take a snapshot, writes it, and keeps the
 * directory within its limits. A disk that is stuck stops this thread alone. Each job comes back to the main
 * loop with its outcome.
 *
 *   submit ─► waiting (for its turn, for its post-trigger time) ─► written ─► done ─► reap
 *               ▲ a trigger that asks for the same coalesces       │ no space, …
 *               │                                                  ▼
 *               └──────────── every 10 s, after a vacuum ─────── kept (one)
 */

#include "dumper/job.h"
#include "recorder/recorder.h"

/* How many jobs may wait; the next one is refused. Some places are kept for root, and users have at most half
   of them, so that nobody keeps out root or the machine's triggers. */
#define FR_DUMPER_QUEUE_MAX 16
#define FR_DUMPER_KEPT_FOR_ROOT 2
#define FR_DUMPER_USERS_MAX 8
#define FR_DUMPER_PER_USER_MAX 4
/* An automatic dump waits for this time before its snapshot, because several triggers see one anomaly, each a
   moment later. Its window ends with its causes all the same. */
#define FR_DUMPER_TOGETHER_NS (50 * 1000000ULL)
/* How many causes one file may have. The next cause gets a file of its own. */
#define FR_DUMPER_COALESCE_MAX 64

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
	/* The path of dirfd; copied. If it names another directory later, dirfd becomes that directory. */
	const char *directory;
	size_t section_max;
	int level;
	bool strip_rounds;
	struct fr_jit_open_files *jit_open_files; /* borrowed */
	bool vdso_kept;				  /* as in struct fr_dump_params */
	gid_t gid;
	struct fr_dumper_settings settings;
	/* Both on the dumper thread, when the window of a job has just ended. Add to META: the losses so far;
	   the steps of the sampling frequency in the window. */
	void (*add_losses)(void *ctx, cJSON *meta);
	void (*add_steps)(void *ctx, uint64_t from_ns, uint64_t to_ns, cJSON *meta);
	void *ctx;
};

/* Start the thread. It first removes what a killed recorder left, and what is past the limits. 0 or a
   negative errno with D. */
int fr_dumper_start(const struct fr_dumper_config *config, struct fr_dumper **ret, struct fr_diag *d);
/* Finish the jobs that wait (without the rest of their post-trigger times), try the kept dump a last time,
   and end the thread. The outcomes can still be reaped. NULL-safe. */
void fr_dumper_stop(struct fr_dumper *p);
/* P is stopped, and its outcomes are reaped. NULL-safe; returns NULL. */
struct fr_dumper *fr_dumper_free(struct fr_dumper *p);

pid_t fr_dumper_tid(const struct fr_dumper *p);
/* Readable when fr_dumper_reap() has something. Borrowed. */
int fr_dumper_done_fd(const struct fr_dumper *p);

/* All that follows: main thread, except stats(). */

/* Add JOB, which is consumed for 0 and 1. 0: *RET_ID is its id; 1: it was coalesced into a waiting job, whose
 *id is RET_ID (which may be NULL); -EAGAIN: the queue is full; -EDQUOT: users have all places that they may
 *have. */
int fr_dumper_submit(struct fr_dumper *p, struct fr_dump_job *job, uint64_t *ret_id);
/* Add CAUSE (JSON, consumed for 0) of TIME_NS to an automatic dump that waits, and whose window contains that
   time, or ended less than FR_DUMPER_TOGETHER_NS before it. The window then has what both ASKED for, but the
   dump does not wait longer for it than the first cause could have asked for. 0, and *RET_ID is its id;
   -ENOENT: there is no such dump, or it has FR_DUMPER_COALESCE_MAX causes. */
int fr_dumper_coalesce(struct fr_dumper *p, cJSON *cause, const struct fr_dump_asked *asked, uint64_t time_ns,
	uint64_t *ret_id);
/* Take back the waiting dump ID: *RET is the caller's. UID 0 may take back any dump. Another user may take
   back a dump of his own that has no cause of others. 0, or with D: -ENOENT: no such dump waits, or it is the
   last one of the recorder; -EBUSY: it is being written; -EPERM. */
int fr_dumper_cancel(
	struct fr_dumper *p, uint64_t id, uid_t uid, struct fr_dump_job **ret, struct fr_diag *d);
/* The dumps that wait, in order: an array of {id, uid, ready_ns, causes, cause}. NULL: no memory. */
cJSON *fr_dumper_waiting(struct fr_dumper *p);
/* The oldest finished job, the caller's to free, or NULL. */
struct fr_dump_job *fr_dumper_reap(struct fr_dumper *p);
/* Dumps whose snapshot is not taken yet get the head of S, which is copied. 0 or -ENOMEM. */
int fr_dumper_set_session(struct fr_dumper *p, const struct fr_session *s, bool strip_rounds);
void fr_dumper_set(struct fr_dumper *p, const struct fr_dumper_settings *settings);

struct fr_dumper_stats {
	unsigned queued;       /* triggers whose dump waits or is being written */
	unsigned waiting_post; /* dumps that wait for their post-trigger time */
	bool kept;	       /* there is a kept dump */
	uint64_t kept_trigger_ns;
	uint64_t kept_bytes;	   /* of the ring */
	uint64_t samples_given_up; /* FR_LOSS_FAILED_DUMP */
	char kept_why[512];
	uint64_t writing_since_ns; /* monotonic; 0: nothing is being written */
	char writing_name[FR_DUMP_NAME_SIZE];
};
/* Any thread. */
void fr_dumper_stats(struct fr_dumper *p, struct fr_dumper_stats *ret);
