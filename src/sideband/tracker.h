/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The side-band tracker: one thread that handles side-band (records that are not samples, such as mmap, comm
 * and fork). It appends fresh side-band to perf.data.auxiliary, compacts this file (replaces it by a shorter
 * one), keeps two process models (sideband/model.h), scans /proc at the start and after a loss, and finds new
 * kernel modules.
 *
 *   fresh ───┬──► perf.data.auxiliary
 *            └──► in order ──► head model: for compaction, and to find processes whose EXIT was lost
 *   evicted ────► in order ──► tail model: a dump begins with the records of this model
 *
 * Fresh side-band comes from the kernel rings, and evicted side-band from frames (compressed chunks of
 * records) that the ring evicts. The head model shows the processes as they are now. The tail model shows
 * them as they were at the low watermark of the oldest frame: a time such that no record in this frame or a
 * later frame is older. A disk that hangs stops only this thread and the dumper. It does not stop the
 * recorder, because what the recorder sends to the tracker waits in two bounded queues. If a queue is full,
 * the loss is counted, and a scan repairs it.
 */

#include "base/buf.h"
#include "base/diag.h"
#include "crashmem/tail.h"
#include "perfdata/session.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct fr_tracker;

struct fr_tracker_config {
	int dirfd;			  /* directory of perf.data.auxiliary; borrowed */
	const struct fr_session *session; /* the file begins with a description of its events; copied */
	uint64_t sideband_id;		  /* an event id of the side-band event */
	size_t section_max; /* fr_history_section_max(): the largest raw size of an evicted section */
	size_t queue_bytes; /* size of both queues together; 0: 2 MiB */
	const pid_t *pids;  /* processes to scan, as in struct fr_scan_config */
	size_t n_pids;
	uint64_t file_max_bytes;  /* compact the file if it is larger; 0: never because of its size */
	uint64_t file_max_age_ns; /* compact a file of this age that has grown; 0: never because of its age */
	/* True: continue the ring and the auxiliary file of the previous instance. The tracker reads both
	   models from the file. After that, a scan finds what has changed since the end of the file. If there
	   is no such file, or this process is not allowed to write it, `adopt` has no effect. */
	bool adopt;
	uint64_t adopt_low_watermark_ns; /* low watermark of the oldest frame; 0: no frame, or not known */
	/* The tail in the crash memory (crashmem/tail.h), borrowed; NULL: none. fr_tracker_push_evicted()
	   appends to it, and the thread writes its checkpoints. EVICTED_SEQ is the sequence number of the
	   frame before the oldest frame of the ring; 0: the ring is new. */
	struct fr_tail *tail;
	uint64_t evicted_seq;
	/* The first side-band record in the ring, borrowed until fr_tracker_free(). NULL: the ring has no
	   side-band record. */
	const void *adopt_first;
	const char *modules_path; /* a file like /proc/modules; NULL: /proc/modules */
	/* The tracker thread calls the functions freeze, inject, unfreeze and observe. With freeze(),
	   inject() and unfreeze() it puts records into the ring: the records of new modules, and of all scans
	   except the first scan. */
	/* Freezes the ring and returns the time of the freeze. Until unfreeze(), no new chunk of the ring
	   gets a low watermark later than this time, so records with this time or a later time can be
	   injected. */
	uint64_t (*freeze)(void *ctx);
	/* Injects N records, LEN bytes in all, whose times are FIRST_NS to LAST_NS. Returns 0; 1 if the ring
	   has no room; or a negative errno. It can seal a chunk (compress it into a frame) and evict frames,
	   and so can call fr_tracker_push_evicted(). */
	int (*inject)(
		void *ctx, const void *records, size_t len, uint32_t n, uint64_t first_ns, uint64_t last_ns);
	void (*unfreeze)(void *ctx);
	/* Gets all records of the auxiliary file soon after they were made, and the low watermark of the tail
	   model. May be NULL. */
	void (*observe)(void *ctx, const void *records, size_t len, uint64_t low_watermark_ns);
	/* Called after observe(): it has got all side-band that is older than SINCE_NS. Returns whether the
	   observer has so much to do that a scan shall wait for it. May be NULL. */
	bool (*observed)(void *ctx, uint64_t since_ns);
	/* Called when side-band was lost, before the scan that repairs the loss. Any thread. May be NULL. */
	void (*lost)(void *ctx);
	/* Called when observe() has got all records of a scan that began at SCAN_NS. May be NULL. */
	void (*scanned)(void *ctx, uint64_t scan_ns);
	/* Called on the tracker thread when modules were loaded or unloaded. May be NULL. Side-band waits in
	   the queues meanwhile, so the function may take some tenths of a second, but not more. */
	void (*modules_changed)(void *ctx);
	void *ctx;
};

/* Opens the auxiliary file; fr_auxfile_open() describes what happens to an old file. Starts no thread.
   Returns 0 or a negative errno. */
int fr_tracker_new(const struct fr_tracker_config *config, struct fr_tracker **ret, struct fr_diag *d);
/* Starts the thread and waits until its first scan of the machine is in the models and in the file. With
   `adopt`, waits only until the ring is frozen: the file already has the names, and the thread scans in the
   background. Returns 0; 1 if the wait took longer than 10 s: the thread goes on in the background; or a
   negative errno, with a message in D: the thread has ended. */
int fr_tracker_start(struct fr_tracker *t, struct fr_diag *d);
/* Returns the id of the thread, for filters that exclude it; 0 before fr_tracker_start(). */
pid_t fr_tracker_tid(const struct fr_tracker *t);
/* Returns the build-ids that the tracker has read when it got map records. Borrowed. */
struct fr_early_ids *fr_tracker_early_ids(const struct fr_tracker *t);
/* Processes the rest of the queues, joins the thread, and syncs and closes the file. */
void fr_tracker_stop(struct fr_tracker *t);
struct fr_tracker *fr_tracker_free(struct fr_tracker *t);

/* Queues fresh records for the file and the head model. Recorder thread; never blocks. Returns 0; or 1 if the
   queue is full: the records are lost, the loss is counted, and a scan will follow. */
int fr_tracker_push_fresh(struct fr_tracker *t, const void *records, size_t len);
/* Tells the tracker that all records of a round were pushed. The round began at SINCE_NS (see
   fr_history_begin_round()), so records that are pushed after this call are not older than SINCE_NS. Recorder
   thread. */
void fr_tracker_end_round(struct fr_tracker *t, uint64_t since_ns);
/* Queues the compressed side-band section of the evicted frame SEQ, and the low watermark of that frame, for
   the tail model, and appends both to config.tail. LEN can be 0; without config.tail, such a call does
   nothing. Any thread; src/history/ makes only one call at a time, perhaps while it holds its lock. Never
   blocks. Returns the same values as fr_tracker_push_fresh(). */
int fr_tracker_push_evicted(
	struct fr_tracker *t, uint64_t seq, uint64_t low_watermark_ns, const void *zstd, size_t len);
/* Returns whether the queue of evicted sections is more than half full. Any thread. */
bool fr_tracker_is_behind(const struct fr_tracker *t);
/* Call this function after the events were opened again, before the first record of the new openings is
   pushed. S (copied) is the session that describes the new openings. SIDEBAND_ID is an event id of its
   side-band event. Any thread, one call at a time. Returns 0 or -ENOMEM. */
int fr_tracker_set_session(struct fr_tracker *t, const struct fr_session *s, uint64_t sideband_id);
/* Requests a scan. The scan begins at least a second after the end of the last scan. Any thread. */
void fr_tracker_request_scan(struct fr_tracker *t);

/*
 * Writes the side-band that comes before the first frame of a dump. LOW_WATERMARK_NS is the low watermark of
 * this frame. Waits until the tail model has all side-band that was evicted before this call, and until the
 * tracker has searched for new kernel modules.
 *
 * RET_STATE gets records with time TIME_NS and event id ID. They describe the tail model just before the low
 * watermark. RET_SINCE gets the side-band that was evicted already but is not older than the low watermark,
 * sorted by time. Such side-band exists because frames overlap in time.
 *
 * Returns 0; -ETIMEDOUT after TIMEOUT_NS; or -ENOMEM. On failure, RET_STATE and RET_SINCE do not change. Any
 * thread except the recorder and the tracker.
 */
int fr_tracker_write_model(struct fr_tracker *t, uint64_t low_watermark_ns, uint64_t time_ns, uint64_t id,
	uint64_t timeout_ns, struct fr_buf *ret_state, struct fr_buf *ret_since);

struct fr_tracker_stats {
	uint64_t records, bytes; /* written to the auxiliary file */
	uint64_t file_bytes;
	/* Low watermark of the head model: the file has all older side-band. 0: not known. */
	uint64_t low_watermark_ns;
	uint64_t scans, queue_drops; /* queue_drops: failed pushes, FR_LOSS_SIDEBAND_QUEUE */
	uint64_t write_errors;	     /* failed writes, FR_LOSS_AUXILIARY */
	int last_errno;
	uint64_t damaged;			/* evicted sections that could not be decompressed */
	uint64_t compactions, checkpoint_bytes; /* checkpoint_bytes: size of the file after a compaction */
	uint64_t compactions_failed;		/* after a failure the tracker keeps the old file */
	int compaction_errno;			/* error of the last compaction; 0: it succeeded */
	uint64_t processes, threads, maps;	/* in the tail model */
	uint64_t model_bytes;			/* bytes of both models */
	uint64_t scan_ns;			/* duration of the last scan */
	bool is_late;		   /* fr_tracker_start() returned 1, and the first scan still runs */
	bool kernel_is_hidden;	   /* last scan: no kernel addresses (kernel.kptr_restrict, no CAP_SYSLOG) */
	bool processes_are_hidden; /* last scan: some processes are hidden (hidepid=, no CAP_SYS_PTRACE) */
	uint64_t maps_hidden;	   /* last scan: the number of processes whose maps are hidden */
};
void fr_tracker_stats(struct fr_tracker *t, struct fr_tracker_stats *ret);
