// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Compaction: perf.data.auxiliary made anew from what still matters.
 *
 *     head │ checkpoint: the model of now, just before its low watermark │ FINISHED_ROUND │ all since the low
 * watermark
 *
 * What is dropped is needed by nobody: the ring's frames carry their own side-band, and a sample file holds
 * the state at its begin. The checkpoint is written in slices with the queues drained in between; the model
 * of now stands still meanwhile, and what comes waits before it. Then what waits follows, and from there on
 * every append goes to both files, until the new one is on the disk and takes the name.
 */
#include "sideband/tracker_internal.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "perfdata/record.h"
#include "perfdata/writer.h"

#include <errno.h>

#define SLICE_BYTES (256u << 10)
#define RETRY_NS (60 * FR_NSEC_PER_SEC)
#define LOOK_NS FR_NSEC_PER_SEC
#define DESCRIBED_MAX 1000u

void tracker_compact_init(struct fr_tracker *k, uint64_t now_ns)
{
	k->compaction.checkpoint_ns = now_ns;
	k->compaction.checkpoint_bytes = fr_auxfile_bytes(k->file);
	atomic_store(&k->checkpoint_bytes, k->compaction.checkpoint_bytes);
}

static void abandon(struct fr_tracker *k, uint64_t now_ns)
{
	fr_auxfile_next_abandon(k->file);
	k->compaction.state = COMPACT_IDLE;
	k->compaction.not_before_ns = now_ns + RETRY_NS;
}

void tracker_compact_stop_writing(struct fr_tracker *k)
{
	if (k->compaction.state != COMPACT_WRITING)
		return;
	abandon(k, fr_monotonic_ns());
	/* It was not the disk: the next try may be soon. */
	k->compaction.not_before_ns = fr_monotonic_ns() + FR_NSEC_PER_SEC;
}

/* The directory may become another one, and its file go, at any time. */
static bool is_astray(struct fr_tracker *k, uint64_t now_ns)
{
	if (now_ns - k->compaction.looked_ns < LOOK_NS)
		return false;
	k->compaction.looked_ns = now_ns;
	return fr_auxfile_is_astray(k->file);
}

static bool is_due(struct fr_tracker *k, uint64_t now_ns)
{
	const struct tracker_compaction *c = &k->compaction;
	uint64_t bytes = fr_auxfile_bytes(k->file), max = k->config.file_max_bytes;
	uint64_t age = k->config.file_max_age_ns;

	if (now_ns < c->not_before_ns || k->retry_ns || k->scan_ns_now || !k->head.low_watermark_ns)
		return false;
	/* A reader has room for 16,384. */
	if (c->described >= DESCRIBED_MAX || is_astray(k, now_ns))
		return true;
	if (max && bytes > max && bytes >= 2 * c->checkpoint_bytes)
		return true;
	return age && now_ns - c->checkpoint_ns > age && bytes > c->checkpoint_bytes;
}

static int begin(struct fr_tracker *k)
{
	struct tracker_compaction *c = &k->compaction;
	int r;

	c->slice.len = 0;
	c->cursor = (struct fr_model_cursor){0};
	r = fr_pipe_append_head(&k->session, &c->slice);
	if (r == 0)
		r = fr_auxfile_next_create(k->file, c->slice.data, c->slice.len);
	if (r == 0)
		c->state = COMPACT_WRITING;
	return r;
}

/* The checkpoint is whole: what came since, and from now on both files. */
static int catch_up(struct fr_tracker *k)
{
	struct tracker_compaction *c = &k->compaction;
	int r;

	c->slice.len = 0;
	r = fr_buf_append(&c->slice, &fr_finished_round, sizeof(fr_finished_round));
	if (r == 0)
		r = fr_reorder_write(&k->head.reorder, &c->slice);
	if (r == 0)
		r = fr_auxfile_next_append(k->file, c->slice.data, c->slice.len);
	if (r == 0)
		r = fr_auxfile_next_follow(k->file);
	c->next_checkpoint_bytes = fr_auxfile_next_bytes(k->file);
	c->state = COMPACT_SYNCING;
	return r;
}

static int write_slice(struct fr_tracker *k)
{
	struct tracker_compaction *c = &k->compaction;
	int more, r;

	c->slice.len = 0;
	more = fr_model_write_some(k->head.model, &c->cursor, k->head.low_watermark_ns - 1,
		k->config.sideband_id, SLICE_BYTES, &c->slice);
	if (more < 0)
		return more;
	r = fr_auxfile_next_append(k->file, c->slice.data, c->slice.len);
	return r < 0 || more ? r : catch_up(k);
}

/* 1: the new file has taken the old one's place. */
static int finish(struct fr_tracker *k, uint64_t now_ns)
{
	struct tracker_compaction *c = &k->compaction;
	/* A file with a gap is not one to change for. */
	int r = k->retry_ns ? -EIO : fr_auxfile_next_commit(k->file);

	if (r <= 0)
		return r;
	c->state = COMPACT_IDLE;
	c->described = 0;
	c->checkpoint_ns = now_ns;
	c->checkpoint_bytes = c->next_checkpoint_bytes;
	fr_buf_deinit(&c->slice);
	/* The checkpoint's own round is one before whose end nothing but the checkpoint was. */
	k->round_newest_ns = k->newest_ns;
	k->round_bytes = fr_auxfile_bytes(k->file);
	atomic_store(&k->file_bytes, fr_auxfile_bytes(k->file));
	atomic_store(&k->checkpoint_bytes, c->checkpoint_bytes);
	atomic_fetch_add(&k->compactions, 1);
	atomic_store(&k->compaction_errno, 0);
	return 1;
}

int tracker_compact(struct fr_tracker *k, uint64_t now_ns)
{
	int r = 0;

	switch (k->compaction.state) {
	case COMPACT_IDLE:
		if (!is_due(k, now_ns))
			return 0;
		r = begin(k);
		break;
	case COMPACT_WRITING:
		r = write_slice(k);
		break;
	case COMPACT_SYNCING:
		r = finish(k, now_ns);
		break;
	}
	if (r < 0) {
		/* No loss: the file that is there goes on. */
		atomic_fetch_add(&k->compactions_failed, 1);
		atomic_store(&k->last_errno, -r);
		atomic_store(&k->compaction_errno, -r);
		abandon(k, now_ns);
	}
	return k->compaction.state == COMPACT_WRITING ? 1 : k->compaction.state == COMPACT_SYNCING ? 2 : 0;
}
