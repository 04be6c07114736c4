/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Private to tracker*.c. All functions here run on the tracker's thread, except tracker_advance(), which a
   thread that writes a dump may call, too. */

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

#define INJECT_RUN_MAX (60u << 10) /* bytes of records; src/history/ accepts longer runs */

/* A model, and its pending records. */
struct tracker_stage {
	struct fr_model *model; /* has all side-band older than the low watermark */
	struct fr_reorder reorder;
	uint64_t low_watermark_ns;
};

struct tracker_compaction {
	enum { COMPACT_IDLE, COMPACT_WRITING, COMPACT_SYNCING } state;
	struct fr_model_cursor cursor; /* position in the head model, which must not change in the state
					  COMPACT_WRITING */
	struct fr_buf slice;
	uint64_t checkpoint_bytes; /* size of the present file when it was new; 0: not known */
	uint64_t checkpoint_ns;	   /* time when the present file was new */
	uint64_t next_checkpoint_bytes;
	uint64_t not_before_ns, checked_ns; /* no compaction begins before the first time; at the second time
					       the name of the file was last checked */
	unsigned described;		    /* number of tracker_describe() since the file was new */
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
	_Atomic uint64_t fresh_since_ns; /* SINCE_NS of the last fr_tracker_end_round() */

	/* Protects the fields below up to sideband_id_next. It also protects the head model, because both
	   models use the same pool. */
	struct fr_lock lock;
	struct fr_cond progress;
	bool is_started;
	bool is_unwatched; /* fr_tracker_start() returned before the first scan was over */
	int start_result;
	struct fr_diag start_diag;
	struct fr_blob_pool pool;
	struct tracker_stage tail;
	struct fr_session session_next; /* set by fr_tracker_set_session(), not in force yet; else empty */
	uint64_t sideband_id_next;

	/* Only the tracker thread uses the fields below up to round_bytes. (fr_tracker_stats() also reads
	   head.low_watermark_ns, under the lock.) */
	struct fr_session session;
	struct tracker_stage head;
	uint64_t since_ns;    /* a former fresh_since_ns: all older records have been read from `fresh` */
	uint64_t scan_ns_now; /* time of the scan that is not over yet; 0: there is none */
	bool scan_is_read;    /* /proc is read, and the scan waits for the head model */
	struct fr_scan_unseen unseen; /* what the last scan could not see */
	struct tracker_compaction compaction;
	struct fr_auxfile *file;
	struct fr_buf batch;  /* fresh records; has room for a full queue */
	struct fr_buf packed; /* the low watermark of an evicted section, and that section, compressed */
	uint8_t *section;     /* that section, decompressed; room for config.section_max bytes */
	ZSTD_DCtx *zstd;
	uint64_t modules_digest, modules_ns; /* digest of /proc/modules, and when it was read */
	uint64_t remove_old_ns;		     /* time of the last fr_auxfile_remove_old() */
	uint64_t next_scan_ns;		     /* no scan before this time */
	uint64_t retry_ns;	  /* time of the next try after a failed write; 0: no write failed */
	uint64_t retry_after_ns;  /* pause before a try, doubled each time */
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

/* tracker_file.c: append whole records to the file. If that fails, or an earlier write has failed and no
   retry has succeeded yet, the records are not in the file, and the failure is counted. */
void tracker_file_append(struct fr_tracker *t, const void *records, size_t len);
/* If a write failed and the pause after it is over, try to write again. If that works, request a scan. */
void tracker_file_retry(struct fr_tracker *t, uint64_t now_ns);
/* Append a FINISHED_ROUND if a reader may rely on it (see tracker_file.c), and enough was written since the
   last one. */
void tracker_file_end_round(struct fr_tracker *t);

/* tracker_model.c: apply the section in t->packed to the tail model. */
void tracker_apply_evicted(struct fr_tracker *t);
/* If LOW_WATERMARK_NS is later than the low watermark of S, raise it to this time. Apply the pending records
   that are older than the low watermark to the model (all pending records, if they are too many bytes).
   Returns 0 or -ENOMEM. */
int tracker_advance(struct fr_tracker *t, struct tracker_stage *s, uint64_t low_watermark_ns)
	FR_REQUIRES(t->lock);
/* tracker_head_add() adds records to the pending records of the head model. tracker_head_advance() advances
   the head model to SINCE_NS. But during a scan it advances the model at most to the time of the scan, and
   while a checkpoint is written it does nothing (unless too many bytes are pending). */
void tracker_head_add(struct fr_tracker *t, const void *records, size_t len);
void tracker_head_advance(struct fr_tracker *t, uint64_t since_ns);

/* tracker_run.c: records that the tracker makes. A run collects records that all have one time, and writes
   them together. TIME_NS 0: the records are of the first scan and go into the file and both models. Any other
   TIME_NS is the time of a freeze, or later, and the records go into the file, the head model and the
   ring. */
struct tracker_run {
	struct fr_tracker *tracker;
	uint64_t time_ns;
	struct fr_buf records;
	uint32_t n;
};
/* Add a copy of RECORD to RUN. If RUN has no room for it, RUN is flushed first. Returns 0 or a negative
   errno. */
int tracker_run_add(struct tracker_run *run, const struct perf_event_header *record);
/* Write the records of RUN to the file, and to the models and the ring as described above. RUN is empty
   afterwards. Returns 0 or a negative errno. */
int tracker_run_flush(struct tracker_run *run);
/* RECORDS were written to the file. Read the build-ids of the files that they map, and call
   config.observe(). */
void tracker_observe(struct fr_tracker *t, const void *records, size_t len);

/* tracker_adopt.c: read both models from the file of the previous instance, and prepare the file for more
   records. Returns false if the file belongs to another recording or cannot be read. Then the file was
   replaced, and the models are empty. */
bool tracker_adopt(struct fr_tracker *t);
/* If fr_tracker_set_session() has set a session, use this session from now on and describe it in the file. */
void tracker_update_session(struct fr_tracker *t);
/* Append a description of the side-band events to the file. It has only those of their ids that KNOWN does
   not have; if KNOWN is NULL, it has all ids. */
void tracker_describe(struct fr_tracker *t, const struct fr_session *known);

/* tracker_scan.c: the first scan, whose records have time 0. Returns 0 or a negative errno with D. */
int tracker_scan_first(struct fr_tracker *t, struct fr_diag *d);
/* A later scan has three steps. 1. tracker_scan_freeze() freezes the ring; the time of the freeze is the time
   of the scan. 2. tracker_scan_read() reads /proc. Returns 0; or a negative errno, and then the scan is over.
   3. tracker_scan_settle(), which follows. */
void tracker_scan_freeze(struct fr_tracker *t);
int tracker_scan_read(struct fr_tracker *t);
/* If /proc was read and the head model can reach the time of the scan, write EXITs for the processes that are
   gone, and end the scan. */
void tracker_scan_settle(struct fr_tracker *t);
/* If a scan is not over yet, end it. This unfreezes the ring. */
void tracker_scan_end(struct fr_tracker *t);

/* tracker_modules.c: tracker_modules_remember() stores which modules are loaded now. tracker_modules_check()
   finds modules that were loaded since then. */
void tracker_modules_remember(struct fr_tracker *t);
void tracker_modules_check(struct fr_tracker *t, uint64_t now_ns);

/* tracker_compact.c: do the next step of a compaction. If there is none, begin one if it is due. */
void tracker_compact(struct fr_tracker *t, uint64_t now_ns);
/* The head model must change. If a checkpoint is being written, abandon it. */
void tracker_compact_stop_writing(struct fr_tracker *t);
/* Call it after the first records of the file were written. */
void tracker_compact_init(struct fr_tracker *t, uint64_t now_ns);

/* tracker.c: process the messages in both queues. Returns whether there were any. */
bool tracker_pump(struct fr_tracker *t);
