// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Compaction writes perf.data.auxiliary again, without records of processes that are gone (docs/design/34).
 * The new file is called the next file until it replaces the current file:
 *
 *     head │ checkpoint: the head model just before its low watermark │ FINISHED_ROUND │ records since then
 */
#include "sideband/tracker_internal.h"
#include "base/clock.h"
#include "perfdata/writer.h"

#include <errno.h>

#define SLICE_BYTES (256u << 10)
#define RETRY_NS (60 * FR_NSEC_PER_SEC)
#define CHECK_NS FR_NSEC_PER_SEC
#define DESCRIBED_MAX 1000u

void tracker_compact_init(struct fr_tracker *t, uint64_t now_ns)
{
	t->compaction.checkpoint_ns = now_ns;
	t->compaction.checkpoint_bytes = fr_auxfile_bytes(t->file);
	atomic_store(&t->checkpoint_bytes, t->compaction.checkpoint_bytes);
}

static void abandon(struct fr_tracker *t, uint64_t now_ns)
{
	fr_auxfile_next_abandon(t->file);
	t->compaction.state = COMPACT_IDLE;
	t->compaction.not_before_ns = now_ns + RETRY_NS;
}

void tracker_compact_stop_writing(struct fr_tracker *t)
{
	if (t->compaction.state != COMPACT_WRITING)
		return;
	abandon(t, fr_monotonic_ns());
	/* abandon() sets a long pause, for failures of the disk. The disk did not fail here, so a second is
	   enough. */
	t->compaction.not_before_ns = fr_monotonic_ns() + FR_NSEC_PER_SEC;
}

/* Returns whether the file has lost its name. Another program can replace the directory or remove the file at
   any time, so the name is checked once a second. Returns false between two checks. */
static bool is_displaced(struct fr_tracker *t, uint64_t now_ns)
{
	if (now_ns - t->compaction.checked_ns < CHECK_NS)
		return false;
	t->compaction.checked_ns = now_ns;
	return fr_auxfile_is_displaced(t->file);
}

static bool is_due(struct fr_tracker *t, uint64_t now_ns)
{
	const struct tracker_compaction *c = &t->compaction;
	uint64_t bytes = fr_auxfile_bytes(t->file), max = t->config.file_max_bytes;
	uint64_t age = t->config.file_max_age_ns;

	if (now_ns < c->not_before_ns || t->retry_ns || t->scan_ns_now || !t->head.low_watermark_ns)
		return false;
	/* Each reopening adds descriptions of events to the file, and a reader accepts at most 16,384
	   events. */
	if (c->described >= DESCRIBED_MAX || is_displaced(t, now_ns))
		return true;
	if (max && bytes > max && bytes >= 2 * c->checkpoint_bytes)
		return true;
	return age && now_ns - c->checkpoint_ns > age && bytes > c->checkpoint_bytes;
}

static int start_writing(struct fr_tracker *t)
{
	struct tracker_compaction *c = &t->compaction;
	int r;

	c->slice.len = 0;
	c->cursor = (struct fr_model_cursor){0};
	r = fr_pipe_append_head(&t->session, &c->slice);
	if (r == 0)
		r = fr_auxfile_next_create(t->file, c->slice.data, c->slice.len);
	if (r == 0)
		c->state = COMPACT_WRITING;
	return r;
}

/* Appends the pending records of the head model to the next file. After that, new records go to the current
   file and to the next file. Call this function when the checkpoint in the next file is complete. */
static int follow_present(struct fr_tracker *t)
{
	struct tracker_compaction *c = &t->compaction;
	int r;

	c->slice.len = 0;
	r = fr_buf_append(&c->slice, &fr_finished_round, sizeof(fr_finished_round));
	if (r == 0)
		r = fr_reorder_write(&t->head.reorder, &c->slice);
	if (r == 0)
		r = fr_auxfile_next_append(t->file, c->slice.data, c->slice.len);
	if (r == 0)
		r = fr_auxfile_next_follow(t->file);
	c->next_checkpoint_bytes = fr_auxfile_next_bytes(t->file);
	c->state = COMPACT_SYNCING;
	return r;
}

static int write_slice(struct fr_tracker *t)
{
	struct tracker_compaction *c = &t->compaction;
	int more, r;

	c->slice.len = 0;
	more = fr_model_write_some(t->head.model, &c->cursor, t->head.low_watermark_ns - 1,
		t->config.sideband_id, SLICE_BYTES, &c->slice);
	if (more < 0)
		return more;
	r = fr_auxfile_next_append(t->file, c->slice.data, c->slice.len);
	return r < 0 || more ? r : follow_present(t);
}

/* Returns 0 if the next file is not synced yet; 1 if the next file has become the current file; or a negative
   errno. */
static int finish_if_synced(struct fr_tracker *t, uint64_t now_ns)
{
	struct tracker_compaction *c = &t->compaction;
	/* After a failed write the current file lacks records. The next file lacks the same records, so it
	   must not replace the current file. */
	int r = t->retry_ns ? -EIO : fr_auxfile_next_commit(t->file);

	if (r <= 0)
		return r;
	c->state = COMPACT_IDLE;
	c->described = 0;
	c->checkpoint_ns = now_ns;
	c->checkpoint_bytes = c->next_checkpoint_bytes;
	fr_buf_deinit(&c->slice);
	/* For tracker_file_end_round(), the FINISHED_ROUND after the checkpoint is the last
	   FINISHED_ROUND. */
	t->round_newest_ns = t->newest_ns;
	t->round_bytes = fr_auxfile_bytes(t->file);
	atomic_store(&t->file_bytes, fr_auxfile_bytes(t->file));
	atomic_store(&t->checkpoint_bytes, c->checkpoint_bytes);
	atomic_fetch_add(&t->compactions, 1);
	atomic_store(&t->compaction_errno, 0);
	return 1;
}

void tracker_compact(struct fr_tracker *t, uint64_t now_ns)
{
	int r = 0;

	switch (t->compaction.state) {
	case COMPACT_IDLE:
		if (!is_due(t, now_ns))
			return;
		r = start_writing(t);
		break;
	case COMPACT_WRITING:
		r = write_slice(t);
		break;
	case COMPACT_SYNCING:
		r = finish_if_synced(t, now_ns);
		break;
	}
	if (r < 0) {
		/* Nothing is lost: the tracker keeps the current file. */
		atomic_fetch_add(&t->compactions_failed, 1);
		atomic_store(&t->last_errno, -r);
		atomic_store(&t->compaction_errno, -r);
		abandon(t, now_ns);
	}
}
