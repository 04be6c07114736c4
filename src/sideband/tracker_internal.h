/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Private to tracker*.c. All functions run on the tracker's thread. Only tracker_advance() is also called by
   threads that write a dump. */

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

/* The largest number of bytes that one call of config.inject() gets. (config.inject() accepts more.) */
#define INJECT_RUN_MAX (60u << 10)

/* A process model (sideband/model.h) and its pending records. All side-band (records that are not samples)
   that is older than the low watermark has been applied to the model. The pending records are not older, and
   wait until the low watermark reaches their time. */
struct tracker_stage {
	struct fr_model *model;
	struct fr_reorder reorder; /* the pending records */
	uint64_t low_watermark_ns;
};

/* In the queue of evicted sections: the head of each message. The compressed section follows. */
struct tracker_evicted {
	uint64_t seq, low_watermark_ns;
};

/* A compaction replaces the auxiliary file by a shorter file, the next file. The next file begins with a
   checkpoint: records that describe the head model (the processes as they are now). */
struct tracker_compaction {
	enum { COMPACT_IDLE, COMPACT_WRITING, COMPACT_SYNCING } state;
	/* Position in the head model. The head model must not change while `state` is COMPACT_WRITING. */
	struct fr_model_cursor cursor;
	struct fr_buf slice;
	/* Size of the file directly after its first scan or its checkpoint; 0: not known. */
	uint64_t checkpoint_bytes;
	uint64_t checkpoint_ns; /* time when the first scan, the adoption or the last compaction ended */
	uint64_t next_checkpoint_bytes; /* checkpoint_bytes of the next file */
	uint64_t not_before_ns;		/* no compaction begins before this time */
	uint64_t checked_ns;		/* time of the last check of the file's name */
	unsigned described;		/* number of calls of tracker_describe() for the current file */
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
	atomic_bool adopting;		 /* the adoption still runs, so the tail model is not complete */
	_Atomic unsigned waiters;	 /* threads in fr_tracker_write_model() */
	_Atomic uint64_t fresh_since_ns; /* the parameter since_ns of the last fr_tracker_end_round() */

	/* Protects the fields below up to sideband_id_next. The lock also protects the head model, because
	   both models use the same pool. */
	struct fr_lock lock;
	struct fr_cond progress;
	bool is_started;
	bool is_unwatched; /* fr_tracker_start() has stopped waiting and has returned 1 */
	int start_result;
	struct fr_diag start_diag;
	struct fr_blob_pool pool;
	struct tracker_stage tail;
	/* The session that fr_tracker_set_session() has set, and that is not used yet. Empty: there is none.
	 */
	struct fr_session session_next;
	uint64_t sideband_id_next;

	/* Only the tracker thread uses the fields below up to round_bytes. (fr_tracker_stats() also reads
	   head.low_watermark_ns, under the lock.) */
	struct fr_session session;
	struct tracker_stage head;
	uint64_t since_ns;	 /* all records that are older than this time have been read from `fresh` */
	uint64_t scan_ns_now;	 /* time of the scan that runs now; 0: no scan runs */
	bool is_observer_behind; /* the last result of config.observed() */
	bool scan_is_read;	 /* /proc has been read, and the scan waits for the head model */
	struct fr_scan_unseen unseen; /* what the last scan could not see */
	struct tracker_compaction compaction;
	struct fr_auxfile *file;
	struct fr_buf batch;  /* fresh records; has room for a full queue */
	struct fr_buf packed; /* a message of `evicted`: struct tracker_evicted, and the compressed section */
	uint8_t *section;     /* the section, decompressed; has room for config.section_max bytes */
	ZSTD_DCtx *zstd;
	uint64_t evicted_seq;	     /* the tail model has the side-band of all frames up to this one */
	uint64_t next_checkpoint_ns; /* no checkpoint of config.tail before this time */
	bool checkpoint_wanted; /* the tail model has got the maps of new modules since the last checkpoint */
	uint64_t modules_digest;  /* digest of /proc/modules */
	uint64_t modules_ns;	  /* time when /proc/modules was read for the digest */
	uint64_t remove_old_ns;	  /* time of the last fr_auxfile_remove_old() */
	uint64_t next_scan_ns;	  /* no scan before this time */
	uint64_t retry_ns;	  /* time of the next try after a failed write; 0: the last write succeeded */
	uint64_t retry_after_ns;  /* pause before the next try; each failure doubles it */
	uint64_t newest_ns;	  /* time of the newest record of the file */
	uint64_t round_newest_ns; /* newest_ns at the last FINISHED_ROUND */
	uint64_t round_bytes;	  /* size of the file at its last FINISHED_ROUND */

	/* Counters; any thread reads them. */
	_Atomic uint64_t queue_drops, records, bytes, file_bytes, write_errors, scans, damaged, scan_ns;
	_Atomic uint64_t compactions, compactions_failed, checkpoint_bytes;
	_Atomic int last_errno, compaction_errno;
	atomic_bool kernel_is_hidden, processes_are_hidden;
	_Atomic uint64_t maps_hidden;
};

/* tracker_file.c: appends whole records to the file. If that fails, or an earlier write has failed and no
   retry has succeeded yet, the records are not in the file, and the failure is counted. */
void tracker_file_append(struct fr_tracker *t, const void *records, size_t len);
/* If a write failed and the pause after it is over, tries to write again. If the retry succeeds, requests a
   scan. */
void tracker_file_retry(struct fr_tracker *t, uint64_t now_ns);
/* Appends a FINISHED_ROUND record if its promise to readers is true now (tracker_file.c describes the
   promise), and if enough bytes were written since the last FINISHED_ROUND. */
void tracker_file_end_round(struct fr_tracker *t);

/* tracker_model.c: applies the section in t->packed to the tail model. */
void tracker_apply_evicted(struct fr_tracker *t);
/* Raises the low watermark of S to LOW_WATERMARK_NS, unless it is later already. Then applies the pending
   records of S that are older than its low watermark to its model. If the pending records have too many
   bytes, applies all of them. Returns 0 or -ENOMEM. */
int tracker_advance(struct fr_tracker *t, struct tracker_stage *s, uint64_t low_watermark_ns)
	FR_REQUIRES(t->lock);
/* tracker_head_add() adds records to the pending records of the head model. tracker_head_advance() advances
   the head model to SINCE_NS. During a scan, it advances the model at most to the time of the scan. While a
   checkpoint is written, it does nothing, unless too many bytes are pending. */
void tracker_head_add(struct fr_tracker *t, const void *records, size_t len);
void tracker_head_advance(struct fr_tracker *t, uint64_t since_ns);

/* tracker_run.c: records that the tracker makes. A run collects records that all have the time TIME_NS, and
   writes them together. If TIME_NS is 0, the records are from the first scan, and go into the file and both
   models. Otherwise the ring is frozen: no new chunk of the ring gets a low watermark later than the time of
   the freeze. TIME_NS is the time of the freeze, or later, and the records go into the file, the head model
   and the ring. */
struct tracker_run {
	struct fr_tracker *tracker;
	uint64_t time_ns;
	struct fr_buf records;
	uint32_t n;
	unsigned waits; /* of a scan: how often it has waited for the observer */
};
/* Adds a copy of RECORD to RUN. If RUN has no room for it, RUN is flushed first. Returns 0 or a negative
   errno. */
int tracker_run_add(struct tracker_run *run, const struct perf_event_header *record);
/* Writes the records of RUN to the file, and to the models and the ring as described above. RUN is empty
   afterwards. Returns 0 or a negative errno. */
int tracker_run_flush(struct tracker_run *run);
/* Call this function after RECORDS were written to the file. Reads the build-ids of the files that RECORDS
   map, and calls config.observe(). */
void tracker_observe(struct fr_tracker *t, const void *records, size_t len);

/* tracker_adopt.c: reads both models from the file of the previous instance, and prepares the file for more
   records. Returns false if the file belongs to another recording or cannot be read. In this case, the
   function has replaced the file (or has removed its records), and the models are empty. */
bool tracker_adopt(struct fr_tracker *t);
/* If fr_tracker_set_session() has set a session, uses this session from now on and describes it in the
   file. */
void tracker_update_session(struct fr_tracker *t);
/* Appends a description of the side-band events to the file: their attributes and ids. The description has
   the ids that are not in KNOWN. If KNOWN is NULL, the description has all ids. */
void tracker_describe(struct fr_tracker *t, const struct fr_session *known);

/* tracker_scan.c: the first scan, whose records have time 0. Returns 0; or a negative errno, with a message
   in D. */
int tracker_scan_first(struct fr_tracker *t, struct fr_diag *d);
/* A later scan has three steps. First, tracker_scan_freeze() freezes the ring. The time of the freeze is the
   time of the scan. Second, tracker_scan_read() reads /proc. It returns 0; or a negative errno, after it has
   ended the scan. Third, tracker_scan_settle() below ends the scan. */
void tracker_scan_freeze(struct fr_tracker *t);
int tracker_scan_read(struct fr_tracker *t);
/* If /proc has been read and the head model can reach the time of the scan, writes EXITs for the processes
   that are gone, and ends the scan. Otherwise does nothing. */
void tracker_scan_settle(struct fr_tracker *t);
/* If a scan is not over yet, ends it. This unfreezes the ring. */
void tracker_scan_end(struct fr_tracker *t);

/* tracker_modules.c: tracker_modules_remember() stores which modules are loaded now. tracker_modules_check()
   finds modules that were loaded after that, and writes records for them. */
void tracker_modules_remember(struct fr_tracker *t);
void tracker_modules_check(struct fr_tracker *t, uint64_t now_ns);

/* tracker_compact.c: does the next step of the compaction. If no compaction runs, begins a compaction if it
   is due. */
void tracker_compact(struct fr_tracker *t, uint64_t now_ns);
/* If a checkpoint is being written, abandons the compaction. Call this function before the head model
   changes, because a checkpoint must show the head model of one time; and when the session has changed. */
void tracker_compact_stop_writing(struct fr_tracker *t);
/* Stores the time and the size of the file. tracker_compact() compares them with later values to decide
   whether a compaction is due. Call this function after the first records of the file were written. */
void tracker_compact_init(struct fr_tracker *t, uint64_t now_ns);

/* tracker_checkpoint.c: writes a checkpoint of config.tail if one is due. */
void tracker_checkpoint(struct fr_tracker *t, uint64_t now_ns);
/* Returns the time when tracker_checkpoint() has to be called; UINT64_MAX if no checkpoint is due. */
uint64_t tracker_checkpoint_due_ns(const struct fr_tracker *t);

/* tracker.c: processes the messages in both queues. Returns whether there were any. */
bool tracker_pump(struct fr_tracker *t);
