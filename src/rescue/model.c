// SPDX-License-Identifier: GPL-2.0-or-later
/* Does with the tail in the crash memory what the tracker does with evicted side-band
   (sideband/tracker_model.c), up to the low watermark of the ring that was found. */
#include "rescue/model.h"
#include "base/cleanup.h"
#include "crashmem/tail.h"
#include "perfdata/record.h"
#include "sideband/model.h"
#include "sideband/reorder.h"

/* As in tracker_model.c: if more bytes are pending, all pending records are applied to the model. */
#define PENDING_MAX (8u << 20)

struct rescue {
	struct fr_model *model;
	struct fr_reorder reorder;
	uint64_t low_watermark_ns;
};

static int apply_record(void *ctx, const struct perf_event_header *record)
{
	return fr_model_apply(ctx, record);
}

static int advance(struct rescue *x, uint64_t low_watermark_ns)
{
	return fr_reorder_release(&x->reorder,
		x->reorder.pending.len > PENDING_MAX ? UINT64_MAX
						     : FR_MIN(low_watermark_ns, x->low_watermark_ns),
		apply_record, x->model);
}

/* The records that describe the model of a checkpoint, and those of the first scan, which have time 0, have
   no order. They are older than all others. */
static bool describes_model(const struct fr_tail_part *part, uint64_t time_ns)
{
	return time_ns == 0 || (part->is_checkpoint && time_ns < part->low_watermark_ns);
}

static int apply_part(void *ctx, const struct fr_tail_part *part)
{
	struct rescue *x = ctx;
	struct fr_record_iter it = fr_record_iter(part->records, part->len);
	const struct perf_event_header *h;
	int r = 0;

	while (r == 0 && (h = fr_record_next(&it))) {
		if (h->type >= FR_RECORD_USER_START || h->type == PERF_RECORD_SAMPLE)
			continue;
		r = describes_model(part, fr_record_time(h)) ? fr_model_apply(x->model, h)
							     : fr_reorder_add(&x->reorder, h, h->size);
	}
	return r < 0 ? r : advance(x, part->low_watermark_ns);
}

static int read_tail(struct rescue *x, const struct fr_crashmem *m, uint64_t before_seq, bool *ret_whole)
{
	int r = fr_model_new(NULL, &x->model);

	if (r == 0)
		r = fr_tail_read(m, before_seq, apply_part, x, ret_whole);
	return r < 0 ? r : advance(x, x->low_watermark_ns);
}

int fr_rescue_model(const struct fr_crashmem *m, uint64_t before_seq, uint64_t low_watermark_ns,
	uint64_t time_ns, uint64_t id, struct fr_buf *ret_state, struct fr_buf *ret_since, bool *ret_whole)
{
	struct rescue x = {.low_watermark_ns = low_watermark_ns};
	const size_t before = ret_state->len, before_since = ret_since->len;
	bool whole = false;
	int r = read_tail(&x, m, before_seq, &whole);

	if (r == 0)
		r = fr_model_write(x.model, time_ns, id, ret_state);
	if (r == 0)
		r = fr_reorder_write(&x.reorder, ret_since);
	if (r == 0) {
		*ret_whole = whole;
	} else {
		ret_state->len = before;
		ret_since->len = before_since;
	}
	fr_reorder_deinit(&x.reorder);
	fr_model_free(x.model);
	return r;
}
