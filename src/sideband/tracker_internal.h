/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Private to tracker*.c. All functions here run on the tracker's thread. */

#include "base/lock.h"
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

#define INJECT_RUN_MAX (60u << 10) /* less than history accepts at once */

/* A model, and the records that are too young for it. */
struct tracker_stage {
	struct fr_model *model; /* everything older than the low watermark */
	struct fr_reorder reorder;
	uint64_t low_watermark_ns;
};

struct tracker_compaction {
	enum { COMPACT_IDLE, COMPACT_WRITING, COMPACT_SYNCING } state;
	struct fr_model_cursor cursor; /* WRITING: in the head model, which must not change meanwhile */
	struct fr_buf slice;
	uint64_t checkpoint_bytes, checkpoint_ns; /* of the present file: its size and time after its start */
	uint64_t next_checkpoint_bytes;
	uint64_t not_before_ns, looked_ns;
	unsigned described; /* how often the file got other openings */
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
	atomic_bool adopting;		 /* the tail model is not complete yet */
	_Atomic unsigned waiters;	 /* threads in fr_tracker_write_model() */
	_Atomic uint64_t fresh_since_ns; /* of fr_tracker_end_round() */

	/* Protects what follows, and the head model, which shares the pool. */
	struct fr_lock lock;
	struct fr_cond progress;
	bool is_started;
	bool is_unwatched; /* fr_tracker_start() returned before the end of the scan */
	int start_result;
	struct fr_diag start_diag;
	struct fr_blob_pool pool;
	struct tracker_stage tail;
	struct fr_session session_next; /* of fr_tracker_set_session(), until it is in force; else empty */
	uint64_t sideband_id_next;

	/* Only the tracker's thread uses what follows. */
	struct fr_session session;
	struct tracker_stage head;
	uint64_t since_ns;	      /* fresh_since_ns when everything before it had been read */
	uint64_t scan_ns_now;	      /* the time of a scan that is not over; 0: there is none */
	bool scan_is_read;	      /* that scan only waits for the head model */
	struct fr_scan_unseen unseen; /* by the last scan */
	struct tracker_compaction compaction;
	struct fr_auxfile *file;
	struct fr_buf batch;  /* fresh records; has room for a full queue */
	struct fr_buf packed; /* a low watermark and an evicted section, compressed */
	uint8_t *section;     /* the same section, raw: config.section_max bytes */
	ZSTD_DCtx *zstd;
	uint64_t modules_digest, modules_ns; /* of /proc/modules, and when it was read */
	uint64_t remove_old_ns;		     /* when fr_auxfile_remove_old() was called */
	uint64_t next_scan_ns;		     /* not before */
	uint64_t retry_ns;		     /* the file failed: write it again then; 0: it is fine */
	uint64_t retry_after_ns;	     /* the pause before that, doubled each time */
	uint64_t newest_ns, round_newest_ns; /* in the file: now, and at its last FINISHED_ROUND */
	uint64_t round_bytes;		     /* at its last FINISHED_ROUND */

	/* Counters: one thread writes each, any thread reads them. */
	_Atomic uint64_t queue_drops, records, bytes, file_bytes, write_errors, scans, damaged, scan_ns;
	_Atomic uint64_t compactions, compactions_failed, checkpoint_bytes;
	_Atomic int last_errno, compaction_errno;
	atomic_bool kernel_is_hidden, processes_are_hidden;
	_Atomic uint64_t maps_hidden;
};

/* tracker_file.c: append whole records to the file. Counts a failure. */
void tracker_file_append(struct fr_tracker *t, const void *records, size_t len);
/* If the file failed and its pause is over: write again, and request a scan if that works. */
void tracker_file_retry(struct fr_tracker *t, uint64_t now_ns);
/* Append a FINISHED_ROUND if enough was written since the last one and it is true. */
void tracker_file_end_round(struct fr_tracker *t);

/* tracker_model.c: apply the section in t->packed to the tail. */
void tracker_apply_evicted(struct fr_tracker *t);
/* Move the records older than LOW_WATERMARK_NS into the model of S. 0 or -ENOMEM. */
int tracker_advance(struct fr_tracker *t, struct tracker_stage *s, uint64_t low_watermark_ns)
	FR_REQUIRES(t->lock);
/* Add records to the head; and advance the head to SINCE_NS, unless a scan or a compaction prevents it. */
void tracker_head_add(struct fr_tracker *t, const void *records, size_t len);
void tracker_head_advance(struct fr_tracker *t, uint64_t since_ns);

/* tracker_run.c: records of the tracker's own, all with the time of a freeze, or 0 for the first scan. They
   go in runs into the file, the head and the ring; those of time 0 directly into both models. */
struct tracker_run {
	struct fr_tracker *tracker;
	uint64_t time_ns;
	struct fr_buf records;
	uint32_t n;
};
/* Add RECORD. A full run is flushed first. 0 or a negative errno. */
int tracker_run_add(struct tracker_run *run, const struct perf_event_header *record);
/* 0 or a negative errno. The run is empty afterwards. */
int tracker_run_flush(struct tracker_run *run);
/* Have build-ids read and observers called for records of the file. */
void tracker_observe(struct fr_tracker *t, const void *records, size_t len);

/* tracker_adopt.c: read both models from the file of the instance before, and prepare the file for more
   records. False: it is the file of another recording, and the models are empty. */
bool tracker_adopt(struct fr_tracker *t);
/* Put the session of fr_tracker_set_session() in force, if there is one, and describe it in the file. */
void tracker_update_session(struct fr_tracker *t);
/* Append the side-band event to the file, with those of its ids that KNOWN does not have. NULL: all ids. */
void tracker_describe(struct fr_tracker *t, const struct fr_session *known);

/* tracker_scan.c. The first scan has time 0. A later one is over when tracker_scan_settle() has found the
   processes that are gone. 0 or a negative errno with D. */
int tracker_scan_first(struct fr_tracker *t, struct fr_diag *d);
/* The two steps of a later scan: the freeze, which is the scan's time; and the reading of /proc. */
void tracker_scan_freeze(struct fr_tracker *t);
int tracker_scan_read(struct fr_tracker *t);
void tracker_scan_settle(struct fr_tracker *t);
/* At the end of the thread: end an unfinished scan. */
void tracker_scan_abandon(struct fr_tracker *t);

/* tracker_modules.c: find modules that were loaded since the last look. */
void tracker_modules_remember(struct fr_tracker *t);
void tracker_modules_check(struct fr_tracker *t, uint64_t now_ns);

/* tracker_compact.c: one step of a compaction, if one runs or is due. */
void tracker_compact(struct fr_tracker *t, uint64_t now_ns);
/* Abandon a checkpoint that is being written, because the head model must change. */
void tracker_compact_stop_writing(struct fr_tracker *t);
/* To be called after the start has written the file. */
void tracker_compact_init(struct fr_tracker *t, uint64_t now_ns);

/* tracker.c: process the queues. Returns whether they had anything. */
bool tracker_pump(struct fr_tracker *t);
