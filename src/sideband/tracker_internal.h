/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Private to tracker*.c. "Tracker's": touched by its thread alone. */

#include "sideband/auxfile.h"
#include "sideband/blob.h"
#include "sideband/early_ids.h"
#include "sideband/tracker.h"
#include "sideband/model.h"
#include "sideband/queue.h"
#include "sideband/reorder.h"
#include "sideband/scan.h"

#include <pthread.h>
#include <stdatomic.h>
#include <zstd.h>

#define INJECT_RUN_MAX (60u << 10) /* below what history takes at once */

/* A model, and what is too young for it. */
struct tracker_stage {
	struct fr_model *model; /* all that is older than the low watermark */
	struct fr_reorder reorder;
	uint64_t low_watermark_ns;
};

struct tracker_compaction {
	enum { COMPACT_IDLE, COMPACT_WRITING, COMPACT_SYNCING } state;
	struct fr_model_cursor cursor; /* WRITING: in the model of now, which stands still meanwhile */
	struct fr_buf slice;
	uint64_t checkpoint_bytes, checkpoint_ns; /* of the file as it is: its size and time at its begin */
	uint64_t next_checkpoint_bytes;
	uint64_t not_before_ns, looked_ns;
	unsigned described; /* how often the file was told of other events */
};

struct fr_tracker {
	struct fr_tracker_config config;
	struct fr_early_ids *early_ids;
	struct fr_queue *fresh, *evicted;

	pthread_t thread;
	bool has_thread;
	_Atomic pid_t tid;
	_Atomic uint32_t sleep; /* futex: enum sleep_state in tracker.c */
	atomic_bool stop, scan_wanted, modules_wanted;
	atomic_bool adopting;		 /* the tail is not there yet */
	_Atomic unsigned waiters;	 /* in fr_tracker_write_model() */
	_Atomic uint64_t fresh_since_ns; /* fr_tracker_end_round() */

	pthread_mutex_t lock; /* of what follows, and of the head's model for the strings that both share */
	pthread_cond_t progress;
	bool is_started, is_unwatched; /* fr_tracker_start() has not waited for the end of the scan */
	int start_result;
	struct fr_diag start_diag;
	struct fr_blob_pool pool;
	struct tracker_stage tail;
	struct fr_session session_next; /* set_session(), until it is taken; no events: nothing to take */
	uint64_t sideband_id_next;

	/* Tracker's */
	struct fr_session session;
	struct tracker_stage head;
	uint64_t since_ns;	      /* fresh_since_ns when all that came before it had been read */
	uint64_t scan_ns_now;	      /* the time of a scan that is not over; 0: there is none */
	bool scan_is_read;	      /* it only waits for the head to reach it */
	struct fr_scan_unseen unseen; /* by the last scan */
	struct tracker_compaction compaction;
	struct fr_auxfile *file;
	struct fr_buf batch;  /* of fresh records, as large as their queue */
	struct fr_buf packed; /* one evicted section, as it came, behind its low watermark */
	uint8_t *section;     /* the same, opened: config.section_max bytes */
	ZSTD_DCtx *zstd;
	uint64_t modules_digest, modules_ns; /* of /proc/modules, and when it was looked at */
	uint64_t tidy_ns;		     /* when files of earlier runs were looked at */
	uint64_t next_scan_ns;		     /* not before */
	uint64_t retry_ns;	 /* the file could not be written: try again then; 0: it is fine */
	uint64_t retry_after_ns; /* and then wait so long, doubled each time */
	uint64_t newest_ns, round_newest_ns; /* in the file: now, and at its last FINISHED_ROUND */
	uint64_t round_bytes;		     /* at its last FINISHED_ROUND */

	/* Counters: written by one thread each, read by any. */
	_Atomic uint64_t queue_drops, records, bytes, file_bytes, write_errors, scans, damaged, scan_ns;
	_Atomic uint64_t compactions, compactions_failed, checkpoint_bytes;
	_Atomic int last_errno, compaction_errno;
	atomic_bool kernel_is_hidden, processes_are_hidden;
	_Atomic uint64_t maps_hidden;
};

/* tracker_file.c: whole records to the file; failures are counted, nothing else. */
void tracker_file_append(struct fr_tracker *k, const void *records, size_t len);
/* Where the file failed and its time has come: try it, and ask for a scan if it can be written again. */
void tracker_file_retry(struct fr_tracker *k, uint64_t now_ns);
/* Have files that fresh records tell of looked at while they are there. */
void tracker_see(struct fr_tracker *k, const void *records, size_t len);
/* A FINISHED_ROUND, where enough has been written since the last one and it is true. */
void tracker_file_round(struct fr_tracker *k);

/* tracker_model.c: one section from the queue to the tail. */
void tracker_apply_evicted(struct fr_tracker *k);
/* Lock held: what is older than LOW_WATERMARK_NS to the model. 0 or -ENOMEM. */
int tracker_advance(struct tracker_stage *s, uint64_t low_watermark_ns);
/* Records to the head; and the head up to SINCE_NS, as far as a scan and a compaction let it. */
void tracker_head_add(struct fr_tracker *k, const void *records, size_t len);
void tracker_head_advance(struct fr_tracker *k, uint64_t since_ns);
/* Records into the file, the ring and the head. All have the time TIME_NS of a hold. 0 or a negative errno.
 */
int tracker_tell(struct fr_tracker *k, const struct fr_buf *run, uint32_t n, uint64_t time_ns);

/* tracker_adopt.c: both models from the file of the instance before, and the file ready to go on. False: it
   is none of ours, and the models know nothing. */
bool tracker_adopt(struct fr_tracker *k);
/* The events that are to be from now on, where there are others: the file is told of them. */
void tracker_take_session(struct fr_tracker *k);
/* The side-band event into the file, with those of its ids that are newer than KNOWN's; NULL: with all. */
void tracker_describe(struct fr_tracker *k, const struct fr_session *known);

/* tracker_scan.c. The first one has time 0; a later one is over when tracker_scan_settle() has said who is
   gone. 0 or a negative errno with D. */
int tracker_scan_first(struct fr_tracker *k, struct fr_diag *d);
int tracker_scan_again(struct fr_tracker *k);
/* The same in two steps: its time is now; and the scan. */
void tracker_scan_hold(struct fr_tracker *k);
int tracker_scan_held(struct fr_tracker *k);
void tracker_scan_settle(struct fr_tracker *k);
/* The end of the thread: a scan that is not over gives the ring back. */
void tracker_scan_abandon(struct fr_tracker *k);

/* tracker_modules.c: modules that were loaded since the last look. */
void tracker_modules_remember(struct fr_tracker *k);
void tracker_modules_check(struct fr_tracker *k, uint64_t now_ns);

/* tracker_compact.c. One step: 0: nothing to do, 1: again at once, 2: again soon. */
int tracker_compact(struct fr_tracker *k, uint64_t now_ns);
/* The head must move on: a checkpoint that is being written is given up. */
void tracker_compact_stop_writing(struct fr_tracker *k);
/* The file is as a start has left it. */
void tracker_compact_init(struct fr_tracker *k, uint64_t now_ns);

/* tracker.c: all that waits in the queues. */
void tracker_pump(struct fr_tracker *k);
