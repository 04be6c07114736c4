/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The dumper thread takes one job after the other. For each dump, it asks the recorder for a snapshot (pinned
 * frames of the ring) and writes the snapshot to a file. It also keeps the directory within its limits. If a
 * disk hangs, only this thread waits. Each job comes back to the main loop with its outcome. If a dump cannot
 * be written, the dumper can keep its snapshot and try again later (KeepFailed=): this is the kept dump.
 *
 *   submit ─► waiting (for its turn, for its post-trigger time) ─► written ─► done ─► reap
 *               ▲ other causes are coalesced while it waits        │ no space, …
 *               │                                                  ▼
 *               └──────────── every 10 s, after a vacuum ─────── kept (one)
 */

#include "dumper/job.h"
#include "recorder/recorder.h"

/* The queue has this number of places. Each job that waits or runs has a place. A job that finds no free
   place is refused. */
#define FR_DUMPER_QUEUE_MAX 16
/* Only jobs of root and of the recorder's own user get these last places. */
#define FR_DUMPER_RESERVED_FOR_ROOT 2
/* All other users together get at most this number of places, and each user at most FR_DUMPER_PER_USER_MAX.
   So there are always places for the dumps of triggers. */
#define FR_DUMPER_USERS_MAX 8
#define FR_DUMPER_PER_USER_MAX 4
/* How long an automatic dump (a dump that the source of a trigger asked for) waits before its snapshot.
   Several triggers can see the same anomaly, one after the other, and their causes then become one dump. The
   wait does not make the window longer. */
#define FR_DUMPER_TOGETHER_NS (50 * 1000000ULL)
/* How many causes one dump may have. The next cause makes another dump. */
#define FR_DUMPER_COALESCE_MAX 64

struct fr_dumper;

/* Settings that may change while the dumper runs. */
struct fr_dumper_settings {
	struct fr_retention limits;
	bool keep_failed;
	uint64_t aux_window_ns; /* AuxWindow=; 0: all */
};

struct fr_dumper_config {
	struct fr_recorder *recorder; /* borrowed, like `tracker`: free the dumper before the two */
	struct fr_tracker *tracker;
	const struct fr_session *session; /* copied by fr_dumper_start() */
	int dirfd;
	/* The path of dirfd; copied. If the path names another directory later, dirfd becomes a descriptor of
	   that directory. */
	const char *directory;
	size_t section_max;
	int level;
	bool no_rounds;
	struct fr_jit_open_files *jit_open_files; /* borrowed */
	bool vdso_kept;				  /* as in struct fr_dump_params */
	gid_t gid;
	struct fr_dumper_settings settings;
	/* The dumper thread calls the next two functions when it has made the snapshot for a dump.
	   add_losses() adds to META the losses that have occurred. add_steps() adds the steps of the sampling
	   frequency from FROM_NS to TO_NS. */
	void (*add_losses)(void *ctx, cJSON *meta);
	void (*add_steps)(void *ctx, uint64_t from_ns, uint64_t to_ns, cJSON *meta);
	/* Takes a reference to each AUX area of the recording. The dumper thread calls this function before
	   the snapshot. Returns 0 or -ENOMEM. */
	int (*ref_aux)(void *ctx, struct fr_aux_areas *ret);
	/* Opens a descriptor of the waits that have not ended (fr_capture_open_waits()). The dumper thread
	   calls this function before the snapshot. Returns a negative errno on failure; -ENOENT: waits are
	   not recorded. */
	int (*open_waits)(void *ctx);
	void *ctx;
};

/* Starts the dumper thread. The thread first removes the unfinished files that a killed recorder left, and
   applies the limits. Returns 0; or a negative errno, with a message in D. */
int fr_dumper_start(const struct fr_dumper_config *config, struct fr_dumper **ret, struct fr_diag *d);
/* Lets the thread run all jobs that wait, also before the ends of their post-trigger times (the times after
   the trigger that their windows cover). The thread then tries to write the kept dump a last time, and ends.
   fr_dumper_reap() still returns the jobs. P may be NULL. */
void fr_dumper_stop(struct fr_dumper *p);
/* Call this after fr_dumper_stop(), when fr_dumper_reap() has returned all jobs. P may be NULL. Returns
   NULL. */
struct fr_dumper *fr_dumper_free(struct fr_dumper *p);

pid_t fr_dumper_tid(const struct fr_dumper *p);
/* Returns a borrowed descriptor. It is readable when fr_dumper_reap() has a job to return. */
int fr_dumper_done_fd(const struct fr_dumper *p);

/* The following functions are for the main thread, except fr_dumper_stats(), which any thread may call. */

/* Adds JOB. RET_ID may be NULL. Returns 0 if JOB (consumed) waits now: *RET_ID is the id of JOB. Returns 1 if
   the cause of JOB (consumed) was added to a dump that waits already: *RET_ID is the id of that dump. On
   failure, the caller still owns JOB: -EAGAIN if the queue is full; -EDQUOT if the user of JOB already has
   FR_DUMPER_PER_USER_MAX places for jobs of this kind, or all users have FR_DUMPER_USERS_MAX places together;
   or -ENOMEM. */
int fr_dumper_submit(struct fr_dumper *p, struct fr_dump_job *job, uint64_t *ret_id);
/* Adds CAUSE (JSON), which happened at TIME_NS, to an automatic dump that waits, if its window contains
   TIME_NS or ended at most FR_DUMPER_TOGETHER_NS before TIME_NS. ASKED is the window that the trigger of
   CAUSE asks for. The window of the dump grows: it then covers TIME_NS and the time that ASKED wants before
   TIME_NS. If TIME_NS is at most FR_DUMPER_TOGETHER_NS after the first trigger of the dump, the window also
   covers the post-trigger time of ASKED. Returns 0 if CAUSE is consumed: *RET_ID is the id of the dump.
   Returns -ENOENT if there is no such dump, or if each such dump has FR_DUMPER_COALESCE_MAX causes. */
int fr_dumper_coalesce(struct fr_dumper *p, cJSON *cause, const struct fr_dump_asked *asked, uint64_t time_ns,
	uint64_t *ret_id);
/* Cancels the dump ID, which waits. UID 0 may cancel any dump. Another user may cancel their own dump, if it
   has no cause of another user. Returns 0, and the caller owns *RET, the job of the dump. On failure, returns
   one of these values, with a message in D: -ENOENT if no dump with this ID waits, or if the recorder ends
   after the dump; -EBUSY if the dump is being written; -EPERM if UID may not cancel the dump. */
int fr_dumper_cancel(
	struct fr_dumper *p, uint64_t id, uid_t uid, struct fr_dump_job **ret, struct fr_diag *d);
/* Returns the dumps that wait, in order: an array of {id, uid, ready_ns, causes, cause}. "causes" is the
   number of causes, and "cause" is the first cause. There is no "uid" if no user asked for the dump. The
   caller deletes the array. Returns NULL if there is no memory. */
cJSON *fr_dumper_waiting(struct fr_dumper *p);
/* Returns the oldest finished job, which the caller frees, or NULL. */
struct fr_dump_job *fr_dumper_reap(struct fr_dumper *p);
/* Uses a copy of S (the events of the recording) for all dumps whose snapshot has not been made yet.
   NO_ROUNDS is as in struct fr_dump_params. Returns 0 or -ENOMEM. */
int fr_dumper_set_session(struct fr_dumper *p, const struct fr_session *s, bool no_rounds);
void fr_dumper_set(struct fr_dumper *p, const struct fr_dumper_settings *settings);

struct fr_dumper_stats {
	unsigned queued;       /* jobs that wait or run */
	unsigned waiting_post; /* dumps that wait for their post-trigger time */
	bool kept;	       /* there is a kept dump */
	uint64_t kept_trigger_ns;
	uint64_t kept_bytes;	   /* bytes of the ring that the kept dump uses */
	uint64_t samples_given_up; /* the loss FR_LOSS_FAILED_DUMP */
	uint64_t aux_given_up;	   /* the loss FR_LOSS_AUX: copies of AUX areas that were not written */
	char kept_why[512];
	uint64_t held, held_bytes; /* the dumps that are held (dump/hold.h), and their bytes */
	/* Held dumps that were removed because the disk had no room, and holds that have ended because nobody
	   has uploaded the dump in time; since the start. */
	uint64_t held_removed, holds_expired;
	uint64_t writing_since_ns; /* monotonic; 0: nothing is being written */
	char writing_name[FR_DUMP_NAME_SIZE];
};
void fr_dumper_stats(struct fr_dumper *p, struct fr_dumper_stats *ret);
