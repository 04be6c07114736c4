/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The side-band tracker: one thread that appends fresh side-band to perf.data.auxiliary and compacts that
 * file, keeps two process models, scans /proc at the start and after a loss, and finds new kernel modules.
 *
 *   fresh ───┬──► perf.data.auxiliary
 *            └──► in order ──► head model: for compaction, and to find processes whose EXIT was lost
 *   evicted ────► in order ──► tail model: the begin of a dump
 *
 * A disk that hangs stops only this thread and the dumper. Records of the recorder wait in a bounded queue.
 * If the queue is full, the tracker counts a loss and repairs it by a scan.
 */

#include "base/buf.h"
#include "base/diag.h"
#include "perfdata/session.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct fr_tracker;

struct fr_tracker_config {
	int dirfd;			  /* of perf.data.auxiliary; borrowed */
	const struct fr_session *session; /* for the head of the file; fr_tracker_new() copies it */
	uint64_t sideband_id;		  /* an event id of the side-band event */
	size_t section_max; /* fr_history_section_max(): the largest raw size of an evicted section */
	size_t queue_bytes; /* of both queues together; 0: 2 MiB */
	const pid_t *pids;  /* as in struct fr_scan_config */
	size_t n_pids;
	uint64_t file_max_bytes;  /* compact a larger file; 0: never by size */
	uint64_t file_max_age_ns; /* compact an older file that has grown; 0: never by age */
	/* Continue the auxiliary file of the instance before, whose ring is continued, too. Both models come
	   from it, and a scan adds what changed meanwhile. Without such a file this is as false. */
	bool adopt;
	uint64_t adopt_low_watermark_ns; /* of the ring's oldest frame; 0: no frame, or not known */
	/* The first side-band record in the ring, borrowed until fr_tracker_free(). NULL: there is none. */
	const void *adopt_first;
	const char *modules_path; /* a file like /proc/modules; NULL: that one */
	/* The records of a later scan and of modules must also get into the ring. The tracker's thread calls
	   the next four. freeze: from now until unfreeze, records with the time that it returns may be
	   injected (docs/GLOSSARY.md). inject: 0, 1: no room, or a negative errno; it may seal and evict, so
	   it may call fr_tracker_push_evicted(). */
	uint64_t (*freeze)(void *ctx);
	int (*inject)(
		void *ctx, const void *records, size_t len, uint32_t n, uint64_t first_ns, uint64_t last_ns);
	void (*unfreeze)(void *ctx);
	/* Called for all records of the file, soon after they were made. LOW_WATERMARK_NS: of the tail model.
	   May be NULL. */
	void (*observe)(void *ctx, const void *records, size_t len, uint64_t low_watermark_ns);
	void *ctx;
};

/* Opens the auxiliary file; see fr_auxfile_open() for an old one. Starts no thread. 0 or a negative errno. */
int fr_tracker_new(const struct fr_tracker_config *config, struct fr_tracker **ret, struct fr_diag *d);
/* Starts the thread, which first scans the machine, and waits until that scan is in the models and in the
   file. With `adopt` the file already has the names, so the function returns at once; whatever happens from
   now on is newer than the scan. 0; 1: the scan takes long and goes on in the background; or a negative errno
   with D, and there is no thread. */
int fr_tracker_start(struct fr_tracker *t, struct fr_diag *d);
/* The id of the thread, for filters; 0 before fr_tracker_start(). */
pid_t fr_tracker_tid(const struct fr_tracker *t);
/* Build-ids of mapped files, read when their map records came. Borrowed. */
struct fr_early_ids *fr_tracker_early_ids(const struct fr_tracker *t);
/* Processes the queues, joins the thread, syncs and closes the file. */
void fr_tracker_stop(struct fr_tracker *t);
struct fr_tracker *fr_tracker_free(struct fr_tracker *t);

/* Recorder thread, never blocks: fresh records for the file. 0; 1: the queue is full, the loss is counted,
   and a scan will follow. */
int fr_tracker_push_fresh(struct fr_tracker *t, const void *records, size_t len);
/* Recorder thread: a round that began at SINCE_NS (as in fr_history_begin_round()) has ended, and its records
   were pushed. No later record is older than SINCE_NS. */
void fr_tracker_end_round(struct fr_tracker *t, uint64_t since_ns);
/* The compressed side-band section of an evicted frame, and the low watermark of that frame, for the tail
   model. Never blocks. Any thread, one call at a time: history calls it with its lock held. Returns as
   fr_tracker_push_fresh(); does nothing if LEN is 0. */
int fr_tracker_push_evicted(struct fr_tracker *t, const void *zstd, size_t len, uint64_t low_watermark_ns);
/* The queue of evicted sections is half full. Any thread. */
bool fr_tracker_is_behind(const struct fr_tracker *t);
/* The next records come from other openings: S (copied) is the new session, and SIDEBAND_ID an id of its
   side-band event. To be called before the first such record. 0 or -ENOMEM. Any thread, one call at a time.
 */
int fr_tracker_set_session(struct fr_tracker *t, const struct fr_session *s, uint64_t sideband_id);
/* Scan soon. Scans are at least a second apart. Any thread. */
void fr_tracker_request_scan(struct fr_tracker *t);

/*
 * Writes the begin of a dump whose oldest frame has the low watermark LOW_WATERMARK_NS. Waits until the tail
 * model has all that was evicted before this call, and looks for new kernel modules. RET_STATE: the model
 * just before the low watermark, as records with time TIME_NS and event id ID. RET_SINCE: the evicted records
 * that are not older than the low watermark, in order, with their own times. 0, -ETIMEDOUT after TIMEOUT_NS,
 * or -ENOMEM. Any thread but the recorder's and the tracker's.
 */
int fr_tracker_write_model(struct fr_tracker *t, uint64_t low_watermark_ns, uint64_t time_ns, uint64_t id,
	uint64_t timeout_ns, struct fr_buf *ret_state, struct fr_buf *ret_since);

struct fr_tracker_stats {
	uint64_t records, bytes; /* written to the auxiliary file */
	uint64_t file_bytes;
	uint64_t low_watermark_ns;   /* everything older is in the file; 0: not known */
	uint64_t scans, queue_drops; /* FR_LOSS_SIDEBAND_QUEUE: pushes that failed */
	uint64_t write_errors;	     /* FR_LOSS_AUXILIARY */
	int last_errno;
	uint64_t damaged;			/* evicted sections that could not be decompressed */
	uint64_t compactions, checkpoint_bytes; /* checkpoint_bytes: size of the file after the last one */
	uint64_t compactions_failed;		/* after each of them the old file went on */
	int compaction_errno;			/* of the last compaction; 0: it succeeded */
	uint64_t processes, threads, maps;	/* in the tail model */
	uint64_t model_bytes;			/* of both models */
	uint64_t scan_ns;			/* duration of the last scan */
	bool is_late;				/* the first scan still runs, but samples are recorded */
	bool kernel_is_hidden;			/* from the last scan: kernel.kptr_restrict, CAP_SYSLOG */
	bool processes_are_hidden;		/* hidepid=, CAP_SYS_PTRACE */
	uint64_t maps_hidden;			/* the number of processes whose maps are hidden */
};
void fr_tracker_stats(struct fr_tracker *t, struct fr_tracker_stats *ret);
