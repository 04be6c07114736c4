/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The rings of a recorder: `default`, and those of the sections [Ring NAME]. Each ring is a struct fr_history
 * with its own size and eviction. All have the same rounds and snapshots.
 *
 * The side-band has one place, because it describes the processes for all rings. If there is only the ring
 * `default`, its frames have the side-band, too (docs/adr/0001). If there are more rings, the oldest samples
 * can be in any of them, so the side-band has a ring of its own (docs/adr/0006).
 */

#include "history/history.h"

#define FR_RINGS_MAX 16u
#define FR_RING_LABEL_SIZE 16

struct fr_rings {
	struct fr_history *ring[FR_RINGS_MAX]; /* ring[0] is `default` */
	char name[FR_RINGS_MAX][FR_RING_LABEL_SIZE];
	unsigned n;
	struct fr_history *sideband;	 /* NULL: ring[0] has the side-band */
	struct fr_history_stats dropped; /* the counters of rings that are not there any more */
};

/* Returns the ring that has the side-band. */
static inline struct fr_history *fr_rings_sideband(const struct fr_rings *r)
{
	return r->sideband ? r->sideband : r->ring[0];
}

/* NAME: at most FR_RING_LABEL_SIZE - 1 characters. */
void fr_rings_set_name(struct fr_rings *r, unsigned ring, const char *name);
/* Gives R the rings of FROM, except that of the side-band and the first one, which are the same in both, and
   which other threads read. */
void fr_rings_take_named(struct fr_rings *r, const struct fr_rings *from);

/* These functions do the same for each ring as the functions of the same name in history/history.h. */
void fr_rings_begin_round(const struct fr_rings *r, uint64_t since_ns);
void fr_rings_end_round(const struct fr_rings *r);
void fr_rings_seal(const struct fr_rings *r);
/* Returns the largest value of a ring. */
size_t fr_rings_section_max(const struct fr_rings *r);
/* Returns the smallest value of a ring. */
size_t fr_rings_append_max(const struct fr_rings *r);

/* Adds up the statistics of all rings. The times are those of the oldest and of the newest sample of all, and
   the smallest low watermark. */
void fr_rings_stats(const struct fr_rings *r, struct fr_history_stats *ret);
/* Adds the counters of H, a ring that R does not have any more, to R. Its samples count as evicted. */
void fr_rings_count_dropped(struct fr_rings *r, struct fr_history *h);
/* Copies the side-band in the frames of S to TO, which is to become the ring of the side-band. The frames
   stay pinned. No other thread uses TO. AFTER_SEQ: only of frames with a larger sequence number. Sets
   *RET_SEQ to the largest one of S. Returns 0 or a negative errno. */
int fr_rings_copy_sideband(struct fr_snapshot *s, size_t section_max, uint64_t after_seq,
	struct fr_history *to, uint64_t *ret_seq);
/* Makes TO the ring of the side-band: copies the side-band of ring[0] to it. No other thread uses the rings.
   Returns 0; or a negative errno, and TO is freed. */
int fr_rings_move_sideband(struct fr_rings *r, struct fr_history *to);

/* Snapshots of all rings of the same moment. */
struct fr_snapshots {
	struct fr_snapshot
		*of[FR_RINGS_MAX + 1]; /* of each ring; the last one is that of the ring for side-band */
	char name[FR_RINGS_MAX][FR_RING_LABEL_SIZE];
	unsigned n;
	unsigned n_rings;  /* without the ring for side-band */
	unsigned sideband; /* the index of the snapshot with the side-band */
};

/* Returns 0, and the caller calls fr_snapshots_free(); or -ENOMEM. The rules of fr_history_snapshot() hold.
 */
int fr_rings_snapshot(const struct fr_rings *r, struct fr_snapshots *ret);
/* Makes S from one snapshot, which S then owns. */
void fr_snapshots_of_one(struct fr_snapshots *s, struct fr_snapshot *snapshot);
void fr_snapshots_free(struct fr_snapshots *s); /* S may be all zeros */
/* Returns the low watermark of the side-band: from this time on, a reader finds the names of all samples. */
uint64_t fr_snapshots_low_watermark(const struct fr_snapshots *s);
/* Returns the low watermark of the oldest frame of all. */
uint64_t fr_snapshots_oldest_ns(const struct fr_snapshots *s);
void fr_snapshots_keep_pinned(struct fr_snapshots *s, bool keep);
void fr_snapshots_rewind(struct fr_snapshots *s);
void fr_snapshots_size(const struct fr_snapshots *s, uint64_t *ret_frames, uint64_t *ret_bytes);
/* Retains each snapshot (fr_snapshot_retain()). Returns 0, and sets
   *RET_LOST to the number of samples that S no longer has, or that are older than its side-band; 1 if there
   is no snapshot left; -EBUSY or -ENOMEM. If the function does not return 0, the caller must free S. */
int fr_snapshots_retain(struct fr_snapshots *s, uint64_t *ret_lost);
uint64_t fr_snapshots_evicted_samples(struct fr_snapshots *s);
void fr_snapshots_unpin(struct fr_snapshots *s);
