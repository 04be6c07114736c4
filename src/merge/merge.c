// SPDX-License-Identifier: GPL-2.0-or-later
#include "merge/merge.h"
#include "base/cleanup.h"
#include "merge/aux.h"
#include "merge/cursor.h"
#include "merge/dedup.h"
#include "merge/head.h"
#include "merge/heap.h"
#include "merge/input.h"
#include "merge/jit.h"
#include "merge/output.h"
#include "perfdata/features.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PROGRESS_EVERY 65536 /* records */

struct merge {
	const struct fr_merge_options *options;
	struct fr_merge_report report;
	struct fr_inputs inputs;
	struct fr_session head;
	struct fr_output output;
	struct fr_cursor **cursors;
	struct fr_heap heap;
	struct fr_dedup dedup;
	struct fr_aux aux;
	struct fr_buf rewritten; /* a copy of a record, with the new path of its object */
	bool comparing;		 /* records with the time and kind of the last record go through `dedup` */
	uint64_t key;		 /* the newest time that was written */
	bool key_sample;	 /* true: the last written record is a sample; false: it is side-band */
	bool overflowed;	 /* the limit FR_DEDUP_MAX was reached */
};

/* Returns whether the window in the sidecar of the dump IN contains TIME_NS. */
static bool covers(const struct fr_input *in, uint64_t time_ns)
{
	const cJSON *w = cJSON_GetObjectItemCaseSensitive(in->meta, "window");
	const cJSON *from = cJSON_GetObjectItemCaseSensitive(w, "from_ns");
	const cJSON *to = cJSON_GetObjectItemCaseSensitive(w, "to_ns");

	return cJSON_IsNumber(from) && cJSON_IsNumber(to) && from->valuedouble <= (double)time_ns &&
	       to->valuedouble >= (double)time_ns;
}

/* Finds the time for which an input may skip its initial state (cursor.h), because another input of the same
   recording covers this time. Auxiliary files (perf.data.auxiliary*) are the inputs in pipe format.
   - A dump may skip its initial state if an auxiliary file covers its start without a gap.
   - An auxiliary file may skip its initial state if a dump covers its start. After a compaction (flightrecd
     has replaced the file by a shorter file), an auxiliary file begins with records of all processes. In the
     output, these records would begin the processes a second time in the middle of the dump, and a reader
     would forget what only the dump says about the processes. */
static void find_known_time(const struct merge *m, size_t index, uint64_t *ret_from, uint64_t *ret_to)
{
	const struct fr_input *in = &m->inputs.v[index];
	const bool is_auxiliary = fr_reader_is_pipe(in->reader);

	*ret_from = *ret_to = 0;
	for (size_t i = 0; i < m->inputs.n; i++) {
		const struct fr_input *other = &m->inputs.v[i];

		if (fr_reader_is_pipe(other->reader) == is_auxiliary ||
			!(is_auxiliary ? covers(other, in->known_from) : other->known_to > *ret_to) ||
			!fr_session_shares_id(&other->head, &in->head))
			continue;
		*ret_from = is_auxiliary ? in->known_from : other->known_from;
		*ret_to = is_auxiliary ? in->known_from : other->known_to;
	}
}

/* Reads the next record of an input into NODE. If the input has ended, frees its cursor. Returns 1; 0 if the
   input has ended; or a negative errno. */
static int read_next(struct merge *m, size_t input, struct fr_heap_node *node)
{
	int r = fr_cursor_next(m->cursors[input], &node->head);

	node->input = input;
	if (r == 0) {
		m->report.state += fr_cursor_skipped_state(m->cursors[input]);
		m->cursors[input] = fr_cursor_free(m->cursors[input]);
	}
	return r;
}

static int start_inputs(struct merge *m)
{
	size_t n = m->inputs.n;
	int r = 0;

	fr_inputs_read_ahead(&m->inputs);
	r = fr_aux_init(&m->aux, m->options, &m->inputs);
	m->cursors = calloc(n, sizeof(struct fr_cursor *));
	m->heap.nodes = calloc(n, sizeof(*m->heap.nodes));
	if (r < 0 || !m->cursors || !m->heap.nodes)
		return -ENOMEM;
	for (size_t i = 0; i < n && r >= 0; i++) {
		uint64_t from, to;

		m->inputs.v[i].has_jit = fr_input_has_jit(&m->inputs.v[i]);
		find_known_time(m, i, &from, &to);
		r = fr_cursor_new(m->inputs.v[i].reader, &m->aux, i, from, to, &m->cursors[i]);
		if (r == 0)
			r = read_next(m, i, &m->heap.nodes[m->heap.n]);
		m->heap.n += r == 1;
	}
	fr_heap_build(&m->heap);
	return FR_MIN(r, 0);
}

/* Replaces the record of the top by the next record of the same input. If this input has ended, removes it
   from the heap. */
static int advance_top(struct merge *m)
{
	struct fr_heap *h = &m->heap;
	int r = read_next(m, h->nodes[0].input, &h->nodes[0]);

	if (r == 0)
		h->nodes[0] = h->nodes[--h->n];
	fr_heap_sift_down(h, 0);
	return FR_MIN(r, 0);
}

/* Returns 1 if the record of the top has to be written, 0 if it is a duplicate, or -ENOMEM. */
static int check_new(struct merge *m, const struct fr_heap_node *top)
{
	if (top->head.key != m->key || top->head.sample != m->key_sample) {
		if (m->comparing)
			fr_dedup_clear(&m->dedup);
		m->comparing = false;
	}
	m->comparing = m->comparing || fr_heap_find_tied(&m->heap) > 0;
	if (!m->comparing)
		return 1;
	m->overflowed |= m->dedup.overflow;
	return fr_dedup_add(&m->dedup, top->input, top->head.record);
}

static void count_record(struct merge *m, uint64_t key, bool is_sample)
{
	struct fr_merge_report *r = &m->report;

	r->records++;
	r->late += key < m->key;
	m->key = FR_MAX(m->key, key);
	m->key_sample = is_sample;
	if (!is_sample)
		return;
	r->samples++;
	if (!r->first_ns || key < r->first_ns)
		r->first_ns = key;
	r->last_ns = FR_MAX(r->last_ns, key);
}

static int write_top(struct merge *m, const struct fr_heap_node *top, struct fr_diag *d)
{
	const struct perf_event_header *record = top->head.record;
	int r = 0;

	count_record(m, top->head.key, top->head.sample);
	if (m->options->dry_run)
		return 0;
	if (m->inputs.v[top->input].has_jit)
		r = fr_jit_rewrite_path(
			&m->inputs.v[top->input], m->output.jit, record, &m->rewritten, &record);
	return r < 0 ? r : fr_output_write_record(&m->output, record, d);
}

/* Returns the time of the oldest record of all inputs except the input of the top. */
static uint64_t find_second_key(const struct fr_heap *h)
{
	uint64_t key = UINT64_MAX;

	for (size_t i = 1; i < h->n && i < 3; i++)
		key = FR_MIN(key, h->nodes[i].head.key);
	return key;
}

/* The top is the node of the heap with the oldest record. Writes the next records of the input of the top, as
   long as they are older than the next records of all other inputs. No other input has these records, so they
   need no comparison and do not go through the heap. */
static int write_run(struct merge *m, struct fr_diag *d)
{
	const struct fr_heap_node *top = &m->heap.nodes[0];
	struct fr_cursor_run run;

	fr_cursor_take_run(m->cursors[top->input], find_second_key(&m->heap), &run);
	for (size_t i = 0; i < run.n; i++)
		count_record(m, run.entries[i].key, run.entries[i].order & FR_CURSOR_SAMPLE);
	return m->options->dry_run ? 0 : fr_output_write_run(&m->output, &run, d);
}

/* Writes the records at the start of the output that describe the AUX data. Call it when the start of each
   input has been read. */
static int write_aux_head(struct merge *m, struct fr_diag *d)
{
	_cleanup_buf_ struct fr_buf head = {0};
	int r = fr_aux_make_head(&m->aux, &head);
	struct fr_record_iter it = fr_record_iter(head.data, head.len);
	const struct perf_event_header *h;

	while (r == 0 && !m->options->dry_run && (h = fr_record_next(&it)))
		r = fr_output_write_record(&m->output, h, d);
	return r;
}

/* Writes all AUX data. It has no place in the order of times, so it follows the records. Decoders find it by
   the section AUXTRACE of the head. */
static int write_aux(struct merge *m, struct fr_diag *d)
{
	const struct fr_aux_piece *p;
	int r = fr_aux_plan(&m->aux);

	p = fr_aux_pieces(&m->aux);
	for (size_t i = 0; i < fr_aux_count(&m->aux) && r == 0; i++) {
		m->report.aux_bytes += p[i].t.len;
		if (!m->options->dry_run)
			r = fr_output_copy_auxtrace(&m->output, &p[i].t,
				fr_reader_fd(m->inputs.v[p[i].input].reader), p[i].at, d);
	}
	m->report.aux_duplicates = m->aux.duplicates;
	return r < 0 ? fr_fail_errno(d, r, NULL, "cannot copy the AUX data of the inputs") : 0;
}

static void report_progress(const struct merge *m)
{
	uint64_t done = 0, all = 0;

	if (!m->options->progress)
		return;
	for (size_t i = 0; i < m->inputs.n; i++) {
		uint64_t at, of;

		fr_reader_progress(m->inputs.v[i].reader, &at, &of);
		done += at;
		all += of;
	}
	m->options->progress(m->options->ctx, done, all);
}

/* If the windows of two dumps overlap, another input often has the same next records as the input of the top.
   Skips these records of the other input all at once, which is faster than one by one. */
static void skip_common_records(struct merge *m)
{
	const struct fr_cursor *top = m->cursors[m->heap.nodes[0].input];
	size_t i, n;

	while ((i = fr_heap_find_tied(&m->heap)) > 0) {
		struct fr_heap_node *node = &m->heap.nodes[i];

		n = fr_cursor_skip_common(m->cursors[node->input], top, &node->head);
		if (n == 0)
			return;
		m->report.duplicates += n;
		fr_heap_sift_down(&m->heap, i);
	}
}

/* Writes the record of the top, unless it is a duplicate. If records of this time need no comparison, also
   writes the next records of the same input, up to the time of the next record of any other input. */
static int merge_step(struct merge *m, struct fr_diag *d)
{
	const struct fr_heap_node *top = &m->heap.nodes[0];
	int r;

	skip_common_records(m);
	r = check_new(m, top);
	if (r == 1)
		r = write_top(m, top, d);
	else if (r == 0)
		m->report.duplicates++;
	if (r == 0 && !m->comparing && !m->inputs.v[top->input].has_jit)
		r = write_run(m, d);
	return r < 0 ? r : advance_top(m);
}

static int merge_records(struct merge *m, struct fr_diag *d)
{
	const struct fr_merge_report *done = &m->report;
	uint64_t reported = 0;

	while (m->heap.n > 0) {
		int r = merge_step(m, d);

		if (r < 0)
			return fr_fail_errno(d, r, NULL, "cannot read the inputs");
		if (done->records + done->duplicates - reported < PROGRESS_EVERY)
			continue;
		reported = done->records + done->duplicates;
		report_progress(m);
	}
	report_progress(m);
	return 0;
}

/* Warns about each input that was not read completely. */
static void report_damage(struct merge *m)
{
	for (size_t i = 0; i < m->inputs.n; i++) {
		struct fr_input *in = &m->inputs.v[i];
		const struct fr_damage *damage = fr_reader_damage(in->reader);

		/* If a flightrecd writes to the file, the last record can be incomplete. An incomplete last
		   record is not damage. */
		bool is_damaged = damage->damaged && !(in->live && damage->only_tail);

		in->damaged = is_damaged || in->head_damaged || in->incomplete;
		m->report.n_damaged += in->damaged;
		if (!is_damaged)
			continue;
		m->report.lost_bytes += damage->lost_bytes;
		fr_merge_warn(m->options, "%s: %s at offset %llu, %llu bytes lost. The file is kept",
			in->path, damage->text, (unsigned long long)damage->offset,
			(unsigned long long)damage->lost_bytes);
	}
	if (m->overflowed)
		fr_merge_warn(m->options, "too many records have one time: some may be in the output twice");
}

static int finish(struct merge *m, struct fr_diag *d)
{
	_cleanup_buf_ struct fr_buf symbols = {0};
	_cleanup_free_ char *meta = NULL;
	int r = 0;

	if (m->report.samples)
		r = fr_feature_set_sample_time(&m->head, m->report.first_ns, m->report.last_ns);
	if (r == 0)
		r = fr_output_end(&m->output, &m->head, d);
	if (r == 0)
		r = fr_sidecar_unite(&m->inputs, &m->report, m->output.name, m->output.compress, &meta);
	if (r < 0)
		return r;
	r = fr_jit_link_objects(&m->inputs, m->output.dirfd, m->output.name);
	if (r < 0)
		return fr_fail_errno(d, r, NULL, "cannot keep the objects of code made at run time for %s",
			m->output.path);
	r = fr_inputs_read_symbols(&m->inputs, &symbols);
	if (r < 0)
		return fr_fail_errno(
			d, r, NULL, "cannot keep the symbols of the kernel for %s", m->output.path);
	r = fr_output_publish(&m->output, meta, &symbols, m->report.kept_older, d);
	if (r < 0)
		return r;
	m->report.bytes_out = m->output.bytes;
	snprintf(m->report.how, sizeof(m->report.how), "%s", m->output.how);
	m->report.not_durable = r;
	if (r > 0)
		fr_merge_warn(m->options,
			"%s is whole but not durable, because its directory could not be synced (%s): the "
			"inputs "
			"are kept",
			m->output.path, strerror(r));
	else if (!m->options->keep)
		m->report.n_removed = fr_inputs_remove(m->options, &m->inputs);
	return 0;
}

/* Returns the group of the dumps, or (gid_t)-1 if they have different groups. The output gets this group, so
   that users who can read the dumps can also read the output. */
static gid_t find_common_group(const struct fr_inputs *in)
{
	gid_t gid = (gid_t)-1;

	for (size_t i = 0; i < in->n; i++) {
		if (fr_reader_is_pipe(in->v[i].reader))
			continue;
		if (gid != (gid_t)-1 && gid != in->v[i].gid)
			return (gid_t)-1;
		gid = in->v[i].gid;
	}
	return gid;
}

static int merge_inputs(struct merge *m, struct fr_diag *d)
{
	int r = fr_output_open(&m->output, m->options, d);

	if (r == 0)
		r = fr_inputs_open(m->options, &m->inputs, d);
	if (r < 0)
		return r;
	fr_inputs_leave_older_boots(m->options, &m->inputs);
	m->output.gid = find_common_group(&m->inputs);
	m->report.n_inputs = m->inputs.n;
	m->report.n_unusable = m->inputs.n_unusable;
	m->report.bytes_in = m->inputs.bytes;
	snprintf(m->report.output, sizeof(m->report.output), "%s", m->output.path);
	r = fr_inputs_check_boot(&m->inputs, d);
	if (r == 0)
		r = fr_head_unite(m->options, &m->inputs, &m->head, d);
	if (r == 0 && !m->options->dry_run)
		r = fr_output_begin(&m->output, &m->head, d);
	if (r == 0)
		r = start_inputs(m);
	if (r == 0)
		r = write_aux_head(m, d);
	if (r == 0)
		r = merge_records(m, d);
	if (r == 0)
		r = write_aux(m, d);
	if (r < 0)
		return r;
	report_damage(m);
	return m->options->dry_run ? 0 : finish(m, d);
}

int fr_merge(const struct fr_merge_options *options, struct fr_merge_report *ret, struct fr_diag *d)
{
	struct merge m = {.options = options};
	int r = merge_inputs(&m, d);

	for (size_t i = 0; m.cursors && i < m.inputs.n; i++)
		fr_cursor_free(m.cursors[i]);
	free(m.cursors);
	free(m.heap.nodes);
	fr_dedup_clear(&m.dedup);
	fr_aux_deinit(&m.aux);
	fr_buf_deinit(&m.rewritten);
	fr_inputs_deinit(&m.inputs);
	fr_session_deinit(&m.head);
	fr_output_close(&m.output);
	if (r < 0)
		return fr_fail_errno(d, r, NULL, "cannot merge");
	*ret = m.report;
	return m.report.n_damaged || m.report.n_unusable;
}
