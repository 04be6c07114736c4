/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The side-band tracker: one thread that appends fresh side-band to perf.data.auxiliary and compacts that
 * file, moves two process models, scans /proc at the start and after a loss, and looks for new kernel
 * modules.
 *
 *   fresh ───┬──► perf.data.auxiliary
 *            └──► in order ──► model of now: for a checkpoint of the file, and for who has gone unheard
 *   evicted ────► in order ──► model at the ring's tail: what a dump begins with
 *
 * A stuck disk stops only this thread (and the dumper); what the recorder hands over waits in a bounded
 * queue, and past it is dropped, counted, and healed by a scan.
 */

#include "base/buf.h"
#include "base/diag.h"
#include "perfdata/session.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct fr_tracker;

struct fr_tracker_config {
	int dirfd;			  /* where perf.data.auxiliary is; borrowed */
	const struct fr_session *session; /* heads the auxiliary file; copied by new() */
	uint64_t sideband_id;		  /* an event id of the side-band event */
	size_t section_max; /* fr_history_section_max(): the largest raw size of an evicted section */
	size_t queue_bytes; /* fresh and evicted together; 0: 2 MiB */
	const pid_t *pids;  /* as in scan.h */
	size_t n_pids;
	uint64_t file_max_bytes;  /* compact past it; 0: never by size */
	uint64_t file_max_age_ns; /* compact what is older and has grown; 0: never by age */
	/* Go on with the auxiliary file of an instance before, of this boot, whose ring we go on with, too:
	   both models come from it, and a scan tells what changed meanwhile. Where there is no such file, as
	   without. */
	bool adopt;
	uint64_t adopt_low_watermark_ns; /* of the ring's oldest frame; 0: it has none, or is not known */
	const void *adopt_first;  /* the first record of side-band that the ring has, borrowed until the
				     tracker  is freed; NULL: it has none */
	const char *modules_path; /* like /proc/modules; NULL: that one */
	/* What the tracker itself has to say (a scan's records, after the first scan) also has to get into
	   the ring. All three are called on the tracker's thread. hold: from now until release, records with
	   the time that it returns may be injected. inject may seal and evict, so that fr_tracker_evicted()
	   is called from in here; 1: dropped. */
	uint64_t (*hold)(void *ctx);
	int (*inject)(
		void *ctx, const void *records, size_t len, uint32_t n, uint64_t first_ns, uint64_t last_ns);
	void (*release)(void *ctx);
	/* Soon after they were made, all records that go into the file. LOW_WATERMARK_NS: of the tail. NULL:
	 * nobody looks. */
	void (*see)(void *ctx, const void *records, size_t len, uint64_t low_watermark_ns);
	void *ctx;
};

/* Opens the auxiliary file (an older one is kept under its own time while sample files stand beside it), no
 * thread yet. */
int fr_tracker_new(const struct fr_tracker_config *config, struct fr_tracker **ret, struct fr_diag *d);
/* Starts the thread ("fr-tracker"), which first scans the machine; returns when that scan is in the model and
   in the file. 0; 1: it takes its time, and nobody waits for it any more; or a negative errno with D, and
   then there is no thread. With `adopt` the names of what lives are known from the file, so it returns at
   once, and whatever happens from now on is newer than what the scan will say. */
int fr_tracker_start(struct fr_tracker *k, struct fr_diag *d);
/* The thread's id, for the filters; 0 before fr_tracker_start(). */
pid_t fr_tracker_tid(const struct fr_tracker *k);
/* Build-ids of files that were mapped, read as their records came. */
struct fr_early_ids *fr_tracker_early_ids(const struct fr_tracker *k);
/* Processes what is queued, syncs and closes the file, joins. */
void fr_tracker_stop(struct fr_tracker *k);
struct fr_tracker *fr_tracker_free(struct fr_tracker *k);

/* Neither blocks. Fresh records for the file, from the recorder thread. 0; 1: the queue is full, dropped, a
   scan will follow. */
int fr_tracker_fresh(struct fr_tracker *k, const void *records, size_t len);
/* All that was handed over until now came from rounds of which the last one began at SINCE_NS (as in
   fr_history_begin_round()), and has ended: what comes from now on is not older. Recorder thread. */
void fr_tracker_round(struct fr_tracker *k, uint64_t since_ns);
/* The zstd side-band section of an evicted frame, and that frame's low watermark, for the model at the tail;
   from whichever thread seals, one call at a time (history calls with its lock held). Returns as above; LEN 0
   is fine. */
int fr_tracker_evicted(struct fr_tracker *k, const void *zstd, size_t len, uint64_t low_watermark_ns);
/* Its queue of those is half full. Any thread. */
bool fr_tracker_is_behind(const struct fr_tracker *k);
/* Other events from now on, of which SIDEBAND_ID is one of the side-band event, S's last: to be called before
   the first record of theirs. S is copied. 0 or -ENOMEM. Any thread, one at a time. */
int fr_tracker_set_session(struct fr_tracker *k, const struct fr_session *s, uint64_t sideband_id);
/* A scan soon; scans are at least a second apart. Any thread. */
void fr_tracker_request_scan(struct fr_tracker *k);

/*
 * What a dump begins with, where LOW_WATERMARK_NS is the low watermark of the oldest frame that it holds:
 * waits until all that was evicted before this call is taken in, and appends to RET_STATE  the state just
 * before the low watermark as records, all with time TIME_NS and event id ID; to RET_SINCE  what was evicted
 * and is not older than the low watermark, in order, with its own times. Kernel modules are looked after
 * first. 0, -ETIMEDOUT after TIMEOUT_NS, -ENOMEM. Any thread but the recorder's and the tracker's.
 */
int fr_tracker_model(struct fr_tracker *k, uint64_t low_watermark_ns, uint64_t time_ns, uint64_t id,
	uint64_t timeout_ns, struct fr_buf *ret_state, struct fr_buf *ret_since);

struct fr_tracker_stats {
	uint64_t records, bytes; /* written to the auxiliary file */
	uint64_t file_bytes;
	uint64_t low_watermark_ns;   /* all that is older is in the file; 0: not known */
	uint64_t scans, queue_drops; /* FR_LOSS_SIDEBAND_QUEUE: runs of records */
	uint64_t write_errors;	     /* FR_LOSS_AUXILIARY */
	int last_errno;
	uint64_t damaged;			/* evicted sections that could not be read */
	uint64_t compactions, checkpoint_bytes; /* of the file; and the size it had after the last one */
	uint64_t compactions_failed;		/* and the file of before went on */
	int compaction_errno;			/* of the last one; 0: it was done */
	uint64_t processes, threads, maps;	/* at the tail */
	uint64_t model_bytes;			/* of both models */
	uint64_t scan_ns;			/* what the last scan took */
	bool is_late;				/* the first scan still runs, though samples flow */
	bool kernel_is_hidden; /* the last scan saw no kernel addresses: kernel.kptr_restrict, CAP_SYSLOG */
	bool processes_are_hidden; /* nor all processes: hidepid=, CAP_SYS_PTRACE */
	uint64_t maps_hidden;	   /* nor the maps of so many */
};
void fr_tracker_stats(struct fr_tracker *k, struct fr_tracker_stats *ret);
