// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Checkpoints of the tail in the crash memory (crashmem/tail.h, docs/design/26). A checkpoint has all that
 * the tail model got from evicted frames: the model itself, just before its low watermark, and the pending
 * records, which are not older and keep their times.
 */
#include "sideband/tracker_internal.h"
#include "base/cleanup.h"
#include "base/clock.h"

#define GAP_NS FR_NSEC_PER_SEC
/* As for scans: checkpoints take at most a tenth of the time. */
#define REST_FACTOR 9

/* Writes the tail model as fr_tracker_write_model() does. RET_LOW_WATERMARK_NS gets the low watermark of the
 * model. */
static int write_model(struct fr_tracker *t, struct fr_buf *ret, uint64_t *ret_low_watermark_ns)
{
	uint64_t low_watermark_ns;
	int r;

	fr_lock(&t->lock);
	low_watermark_ns = t->tail.low_watermark_ns;
	r = fr_model_write(
		t->tail.model, low_watermark_ns ? low_watermark_ns - 1 : 0, t->config.sideband_id, ret);
	if (r == 0)
		r = fr_reorder_write(&t->tail.reorder, ret);
	fr_unlock(&t->lock);
	*ret_low_watermark_ns = low_watermark_ns;
	return r;
}

uint64_t tracker_checkpoint_due_ns(const struct fr_tracker *t)
{
	if (t->config.tail && (t->checkpoint_wanted || fr_tail_wants_checkpoint(t->config.tail)))
		return t->next_checkpoint_ns;
	return UINT64_MAX;
}

void tracker_checkpoint(struct fr_tracker *t, uint64_t now_ns)
{
	_cleanup_buf_ struct fr_buf records = {0};
	const uint64_t begin_ns = fr_monotonic_ns();
	uint64_t low_watermark_ns, end_ns;

	if (tracker_checkpoint_due_ns(t) > now_ns)
		return;
	t->checkpoint_wanted = false;
	/* After a failure, the log goes on, and a reader finds out whether sections are missing. The tail or
	   the next append asks for another attempt. */
	if (write_model(t, &records, &low_watermark_ns) == 0)
		(void)fr_tail_checkpoint(
			t->config.tail, t->evicted_seq, low_watermark_ns, records.data, records.len);
	end_ns = fr_monotonic_ns();
	t->next_checkpoint_ns = end_ns + FR_MAX(GAP_NS, REST_FACTOR * (end_ns - begin_ns));
}
