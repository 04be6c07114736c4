// SPDX-License-Identifier: GPL-2.0-or-later
#include "merge/aux.h"
#include "base/cleanup.h"
#include "perfdata/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The types of AUXTRACE_INFO for which this program knows the place of the PMU's number. */
enum { INTEL_PT = 1, INTEL_BTS = 2, CS_ETM = 3 };

struct input_entry {
	struct fr_id_index_entry e;
	size_t input;
	uint32_t pmu; /* attr.type of the event */
};

int fr_aux_init(struct fr_aux *a, const struct fr_merge_options *options, struct fr_inputs *inputs)
{
	*a = (struct fr_aux){.options = options, .inputs = inputs, .chosen = SIZE_MAX};
	a->infos = calloc(inputs->n, sizeof(*a->infos));
	a->recordings = calloc(inputs->n, sizeof(*a->recordings));
	a->first_queues = calloc(inputs->n, sizeof(*a->first_queues));
	return a->infos && a->recordings && a->first_queues ? 0 : -ENOMEM;
}

void fr_aux_deinit(struct fr_aux *a)
{
	for (size_t i = 0; a->infos && i < a->inputs->n; i++)
		fr_buf_deinit(&a->infos[i]);
	free(a->infos);
	free(a->recordings);
	free(a->first_queues);
	fr_buf_deinit(&a->pieces);
	fr_buf_deinit(&a->entries);
	fr_buf_deinit(&a->openings);
	fr_id_table_deinit(&a->slots);
	*a = (struct fr_aux){0};
}

bool fr_aux_wants(uint32_t type)
{
	return type == FR_RECORD_ID_INDEX || type == FR_RECORD_AUXTRACE_INFO || type == FR_RECORD_AUXTRACE;
}

/* Takes the entries whose ids are in the head of the input: perf refuses other ids. */
static int add_entries(struct fr_aux *a, size_t input, const struct fr_record_id_index *record)
{
	const struct fr_reader *reader = a->inputs->v[input].reader;
	size_t n = record->header.size < sizeof(*record) ? 0 : record->header.size - sizeof(*record);

	n = n ? (size_t)FR_MIN(record->nr, n / sizeof(struct fr_id_index_entry)) : 0;
	for (size_t i = 0; i < n; i++) {
		struct input_entry x = {.input = input};
		uint32_t event;

		memcpy(&x.e, (const uint8_t *)(record + 1) + i * sizeof(x.e), sizeof(x.e));
		event = fr_reader_find_event(reader, x.e.id);
		if (event == FR_ID_UNKNOWN || x.e.idx > FR_AUX_QUEUE_MAX)
			continue;
		x.pmu = fr_reader_session(reader)->events[event].attr.type;
		if (fr_buf_append(&a->entries, &x, sizeof(x)) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Returns the key of a queue in a->slots. A key is not 0. */
static uint64_t make_key(size_t input, uint32_t idx)
{
	return ((uint64_t)input << 32 | idx) + 1;
}

static int add_piece(struct fr_aux *a, size_t input, const struct fr_record_auxtrace *r, uint64_t at)
{
	const uint32_t slot = fr_id_table_find(&a->slots, make_key(input, r->idx));
	const struct fr_aux_piece p = {
		.input = input,
		.at = at + r->header.size,
		.opening = slot == FR_ID_UNKNOWN ? 0 : ((const uint64_t *)a->openings.data)[slot],
		.t = {.cpu = (int)r->cpu,
			.tid = (pid_t)r->tid,
			.idx = r->idx,
			.offset = r->offset,
			.reference = r->reference,
			.len = r->size},
	};

	if (p.t.len == 0 || p.t.offset > UINT64_MAX - p.t.len)
		return 0;
	if (fr_aux_count(a) < FR_AUX_MAX)
		return fr_buf_append(&a->pieces, &p, sizeof(p));
	a->too_many += p.t.len;
	a->inputs->v[input].incomplete = true;
	return 0;
}

int fr_aux_add(struct fr_aux *a, size_t input, const struct perf_event_header *record, uint64_t at)
{
	if (record->type == FR_RECORD_ID_INDEX)
		return add_entries(a, input, (const void *)record);
	if (record->type == FR_RECORD_AUXTRACE)
		return add_piece(a, input, (const void *)record, at);
	if (a->infos[input].len > 0 || record->size < sizeof(struct fr_record_auxtrace_info) ||
		record->size % 8 != 0)
		return 0;
	return fr_buf_append(&a->infos[input], record, record->size);
}

/* Returns the word I of an AUXTRACE_INFO, or 0. */
static uint64_t get_word(const struct fr_buf *info, size_t i)
{
	const struct fr_record_auxtrace_info *r = (const void *)info->data;

	return info->len >= sizeof(*r) + (i + 1) * sizeof(uint64_t) ? r->priv[i] : 0;
}

/* Returns attr.type of the events that INFO describes, or UINT32_MAX if it is not known. */
static uint32_t get_pmu(const struct fr_buf *info)
{
	switch (((const struct fr_record_auxtrace_info *)info->data)->type) {
	case INTEL_PT:
	case INTEL_BTS:
		return (uint32_t)get_word(info, 0);
	case CS_ETM:
		return (uint32_t)(get_word(info, 1) >> 32);
	default:
		return UINT32_MAX;
	}
}

bool fr_aux_is_foreign(const struct fr_aux *a, size_t input)
{
	const struct fr_buf *x = &a->infos[input], *y = a->chosen == SIZE_MAX ? NULL : &a->infos[a->chosen];

	return y && x->len > 0 &&
	       (((const struct fr_record_auxtrace_info *)x->data)->type !=
			       ((const struct fr_record_auxtrace_info *)y->data)->type ||
		       get_pmu(x) != get_pmu(y));
}

/* Returns whether X and Y say the same. The conversion of times is measured for each dump, so it differs a
   little, and is not compared: the words 1 to 3 of Intel's PMUs. */
static bool says_the_same(const struct fr_buf *x, const struct fr_buf *y)
{
	const struct fr_record_auxtrace_info *a = (const void *)x->data, *b = (const void *)y->data;
	const bool is_intel = a->type == INTEL_PT || a->type == INTEL_BTS;
	const size_t from = is_intel ? 1 : 0, to = is_intel ? 4 : 0;
	const size_t n = (x->len - sizeof(*a)) / sizeof(uint64_t);

	if (x->len != y->len || a->type != b->type)
		return false;
	for (size_t i = 0; i < n; i++)
		if ((i < from || i >= to) && a->priv[i] != b->priv[i])
			return false;
	return true;
}

/* Chooses the AUXTRACE_INFO of the first input that has one. If another one describes the same hardware in
   more words, it is better: it can describe more CPUs. */
static void choose_info(struct fr_aux *a)
{
	for (size_t i = 0; i < a->inputs->n; i++)
		if (a->infos[i].len > 0 &&
			(a->chosen == SIZE_MAX ||
				(!fr_aux_is_foreign(a, i) && a->infos[i].len > a->infos[a->chosen].len)))
			a->chosen = i;
	for (size_t i = 0; i < a->inputs->n; i++)
		if (a->infos[i].len > 0 && !fr_aux_is_foreign(a, i) &&
			!says_the_same(&a->infos[i], &a->infos[a->chosen]))
			fr_merge_warn(a->options,
				"%s: it describes its AUX data (AUXTRACE_INFO) in another way than %s, "
				"and its description is left out",
				a->inputs->v[i].path, a->inputs->v[a->chosen].path);
}

void fr_aux_find_recordings(struct fr_aux *a)
{
	const struct input_entry *x = (const void *)a->entries.data;
	const size_t n = a->entries.len / sizeof(*x);

	if (a->has_recordings)
		return;
	a->has_recordings = true;
	for (size_t i = 0; i < a->inputs->n; i++) {
		size_t first = 0;

		while (first < i && !fr_session_shares_id(&a->inputs->v[first].head, &a->inputs->v[i].head))
			first++;
		a->recordings[i] = first < i ? a->recordings[first] : i;
	}
	for (size_t i = 0; i < a->inputs->n; i++) {
		uint32_t end = 0;

		if (a->recordings[i] != i) {
			a->first_queues[i] = a->first_queues[a->recordings[i]];
			continue;
		}
		for (size_t k = 0; k < n; k++)
			if (a->recordings[x[k].input] == i)
				end = FR_MAX(end, (uint32_t)x[k].e.idx + 1);
		a->first_queues[i] = a->n_queues;
		a->n_queues += end;
	}
}

/* Notes the newest id of the AUX event of each queue. The kernel gives increasing ids, so the ids tell in
   which order the event was opened. */
static int note_openings(struct fr_aux *a)
{
	const struct input_entry *x = (const void *)a->entries.data;
	const size_t n = a->entries.len / sizeof(*x);

	for (size_t i = 0; i < n; i++) {
		const uint64_t key = make_key(x[i].input, (uint32_t)x[i].e.idx);
		const uint32_t slot = fr_id_table_find(&a->slots, key);
		uint64_t *opening = (uint64_t *)a->openings.data + slot;

		if (a->infos[x[i].input].len == 0 || get_pmu(&a->infos[x[i].input]) != x[i].pmu)
			continue;
		if (slot != FR_ID_UNKNOWN) {
			*opening = FR_MAX(*opening, x[i].e.id);
			continue;
		}
		if (fr_id_table_add(&a->slots, key, (uint32_t)(a->openings.len / sizeof(*opening))) < 0 ||
			fr_buf_append_u64(&a->openings, x[i].e.id) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Unites the ID_INDEXes. If inputs differ about an id, the first one counts. */
static int unite_entries(struct fr_aux *a, struct fr_buf *ret)
{
	const struct input_entry *x = (const void *)a->entries.data;
	const size_t n = a->entries.len / sizeof(*x);
	struct fr_id_table seen = {0};
	_cleanup_buf_ struct fr_buf all = {0};
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		struct fr_id_index_entry e = x[i].e;

		if (fr_id_table_find(&seen, e.id) != FR_ID_UNKNOWN)
			continue;
		e.idx += a->first_queues[x[i].input];
		r = fr_id_table_add(&seen, e.id, 0);
		if (r == 0)
			r = fr_buf_append(&all, &e, sizeof(e));
	}
	fr_id_table_deinit(&seen);
	return r < 0 ? r
		     : fr_id_index(ret, (const void *)all.data, all.len / sizeof(struct fr_id_index_entry));
}

int fr_aux_make_head(struct fr_aux *a, struct fr_buf *ret)
{
	struct fr_aux_piece *p = fr_aux_pieces(a);
	int r;

	choose_info(a);
	if (a->entries.len > 0) /* else there are perhaps no AUX data at all */
		fr_aux_find_recordings(a);
	r = note_openings(a);
	/* The cursors may already have handed over pieces. */
	for (size_t i = 0; i < fr_aux_count(a) && r == 0; i++) {
		const uint32_t slot = fr_id_table_find(&a->slots, make_key(p[i].input, p[i].t.idx));

		if (slot != FR_ID_UNKNOWN)
			p[i].opening = ((const uint64_t *)a->openings.data)[slot];
	}
	if (r == 0)
		r = unite_entries(a, ret);
	if (r == 0 && a->chosen != SIZE_MAX)
		r = fr_buf_append(ret, a->infos[a->chosen].data, a->infos[a->chosen].len);
	return r;
}
