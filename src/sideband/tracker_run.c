// SPDX-License-Identifier: GPL-2.0-or-later
#include "sideband/tracker_internal.h"

/* The first scan describes the machine before the first frame, so its records go directly into both
   models. */
static int apply_to_models(struct fr_tracker *t, const struct fr_buf *records)
{
	struct fr_record_iter it = fr_record_iter(records->data, records->len);
	const struct perf_event_header *h;
	int r = 0;

	fr_lock(&t->lock);
	while (r == 0 && (h = fr_record_next(&it))) {
		r = fr_model_apply(t->tail.model, h);
		if (r == 0)
			r = fr_model_apply(t->head.model, h);
	}
	fr_unlock(&t->lock);
	return r;
}

static int inject(struct fr_tracker *t, const struct tracker_run *run)
{
	int r;

	tracker_head_add(t, run->records.data, run->records.len);
	r = t->config.inject(
		t->config.ctx, run->records.data, run->records.len, run->n, run->time_ns, run->time_ns);
	/* The ring had no room for these records: a later scan makes them again. */
	if (r == 1)
		atomic_store(&t->scan_wanted, true);
	return r < 0 ? r : 0;
}

int tracker_run_flush(struct tracker_run *run)
{
	struct fr_tracker *t = run->tracker;
	int r;

	if (!run->records.len)
		return 0;
	tracker_file_append(t, run->records.data, run->records.len);
	r = run->time_ns ? inject(t, run) : apply_to_models(t, &run->records);
	tracker_observe(t, run->records.data, run->records.len);
	run->records.len = 0;
	run->n = 0;
	return r;
}

int tracker_run_add(struct tracker_run *run, const struct perf_event_header *record)
{
	int r = run->records.len + record->size > INJECT_RUN_MAX ? tracker_run_flush(run) : 0;

	run->n++;
	return r < 0 ? r : fr_buf_append(&run->records, record, record->size);
}

void tracker_observe(struct fr_tracker *t, const void *records, size_t len)
{
	uint64_t low_watermark_ns;

	fr_early_ids_update(t->early_ids, records, len);
	if (!t->config.observe)
		return;
	fr_lock(&t->lock);
	low_watermark_ns = t->tail.low_watermark_ns; /* under the lock, because a thread that writes a dump
							can raise it */
	fr_unlock(&t->lock);
	t->config.observe(t->config.ctx, records, len, low_watermark_ns);
}
