// SPDX-License-Identifier: GPL-2.0-or-later
#include "dump/aux.h"
#include "base/cleanup.h"
#include "perfdata/record.h"

uint64_t fr_dump_aux_bytes(const struct fr_aux_data *a)
{
	uint64_t bytes = 0;

	for (size_t i = 0; a && i < a->n; i++)
		bytes += a->pieces[i].len + sizeof(struct fr_record_auxtrace);
	return bytes;
}

static bool has_id(const struct fr_session *s, uint64_t id)
{
	for (size_t e = 0; e < s->n_events; e++)
		for (size_t i = 0; i < s->events[e].n_ids; i++)
			if (s->events[e].ids[i] == id)
				return true;
	return false;
}

static int append_index(struct fr_buf *ret, const struct fr_aux_data *a, const struct fr_session *s)
{
	const struct fr_id_index_entry *e = (const void *)a->ids.data;
	_cleanup_buf_ struct fr_buf known = {0};
	int r = 0;

	for (size_t i = 0; r == 0 && i < a->ids.len / sizeof(*e); i++)
		if (has_id(s, e[i].id))
			r = fr_buf_append(&known, &e[i], sizeof(e[i]));
	return r < 0 ? r : fr_id_index(ret, (const void *)known.data, known.len / sizeof(*e));
}

int fr_dump_aux_write_head(
	struct fr_file_writer *out, const struct fr_aux_data *a, const struct fr_session *s)
{
	_cleanup_buf_ struct fr_buf head = {0};
	int r;

	if (!a)
		return 0;
	r = fr_buf_append(&head, a->time_conv.data, a->time_conv.len);
	if (r == 0)
		r = append_index(&head, a, s);
	if (r == 0)
		r = fr_buf_append(&head, a->info.data, a->info.len);
	return r < 0 ? r : fr_file_write_records(out, head.data, head.len);
}

int fr_dump_aux_write_records(struct fr_file_writer *out, const struct fr_aux_data *a, uint64_t before_ns)
{
	struct fr_record_iter it =
		a ? fr_record_iter(a->records.data, a->records.len) : (struct fr_record_iter){0};
	const struct perf_event_header *h;
	int r = 0;

	while (r == 0 && (h = fr_record_next(&it)))
		if (fr_record_time(h) < before_ns)
			r = fr_file_write_records(out, h, h->size);
	return r;
}

int fr_dump_aux_write_pieces(struct fr_file_writer *out, const struct fr_aux_data *a)
{
	int r = 0;

	for (size_t i = 0; r == 0 && a && i < a->n; i++)
		r = fr_file_write_auxtrace(out, &a->pieces[i]);
	return r;
}
