// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * The places of id and time in a record. The kernel writes the fields of a sample in the order of
 * perf_output_sample(). At the end of any other record, it writes the fields that sample_id_all asks for
 * (perf_event_open(2), "sample_id"). A reader can tell the events of a file apart only if the id has the same
 * place in the records of all events. PERF_SAMPLE_IDENTIFIER ensures that.
 */

#include "base/cleanup.h"
#include "perfdata/reader_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Computes the places of id and time. A record has those of the N FIELDS that TYPE contains, one after the
   other, from offset 8 on. Returns the place after the last field. */
static uint16_t place_fields(
	const uint64_t *fields, size_t n, uint64_t type, uint16_t *ret_id, uint16_t *ret_time)
{
	uint16_t at = 8;

	for (size_t i = 0; i < n; i++) {
		if (!(type & fields[i]))
			continue;
		if (fields[i] & (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID) && !*ret_id)
			*ret_id = at;
		if (fields[i] == PERF_SAMPLE_TIME)
			*ret_time = at;
		at += 8;
	}
	return at;
}

void fr_layout_from_attr(const struct perf_event_attr *attr, struct fr_layout *ret)
{
	static const uint64_t fields[] = {PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_IP, PERF_SAMPLE_TID,
		PERF_SAMPLE_TIME, PERF_SAMPLE_ADDR, PERF_SAMPLE_ID, PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_CPU,
		PERF_SAMPLE_PERIOD};
	/* In the order from the end of a record to its start. */
	static const uint64_t tail_fields[] = {PERF_SAMPLE_IDENTIFIER, PERF_SAMPLE_CPU, PERF_SAMPLE_STREAM_ID,
		PERF_SAMPLE_ID, PERF_SAMPLE_TIME, PERF_SAMPLE_TID};
	uint64_t tail_type = attr->sample_id_all ? attr->sample_type : 0;

	*ret = (struct fr_layout){0};
	ret->sample_min = place_fields(
		fields, FR_ARRAY_SIZE(fields), attr->sample_type, &ret->sample_id, &ret->sample_time);
	ret->tail_size = place_fields(tail_fields, FR_ARRAY_SIZE(tail_fields), tail_type, &ret->tail_id,
				 &ret->tail_time) -
			 8;
}

int fr_reader_add_layouts(struct fr_reader *r)
{
	size_t n = r->session.n_events;
	struct fr_layout *l = reallocarray(r->layouts, n + 1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	r->layouts = l;
	for (size_t i = r->n_layouts; i < n; i++) {
		const struct fr_event_desc *e = &r->session.events[i];

		fr_layout_from_attr(&e->attr, &l[i]);
		r->one_layout = i == 0 || (r->one_layout && memcmp(&l[i], &l[0], sizeof(l[0])) == 0);
		r->one_id_place =
			i == 0 || (r->one_id_place && l[0].sample_id && l[i].sample_id == l[0].sample_id &&
					  l[i].tail_id == l[0].tail_id);
		for (size_t k = 0; k < e->n_ids; k++)
			if (fr_id_table_add(&r->ids, e->ids[k], (uint32_t)i) < 0)
				return -ENOMEM;
	}
	r->n_layouts = n;
	return 0;
}

uint32_t fr_reader_find_event(const struct fr_reader *r, uint64_t id)
{
	return fr_id_table_find(&r->ids, id);
}

int fr_reader_reset_layouts(struct fr_reader *r)
{
	fr_id_table_deinit(&r->ids);
	r->n_layouts = 0;
	return fr_reader_add_layouts(r);
}

void fr_reader_replace_attr(const struct fr_reader *r, struct fr_event_desc *e)
{
	for (size_t k = 0; r->better && k < r->better->n_events; k++)
		for (size_t i = 0; i < r->better->events[k].n_ids; i++)
			for (size_t own = 0; own < e->n_ids; own++)
				if (e->ids[own] == r->better->events[k].ids[i]) {
					e->attr = r->better->events[k].attr;
					return;
				}
}

int fr_reader_replace_attrs(struct fr_reader *r, const struct fr_session *by)
{
	r->better = by;
	for (size_t e = 0; e < r->session.n_events; e++)
		fr_reader_replace_attr(r, &r->session.events[e]);
	return fr_reader_reset_layouts(r);
}

/* Returns the u64 field that is FRONT bytes from the start of a sample, or BACK bytes before the end of
   another kernel record; 0 if the record at P does not have the field. */
static uint64_t read_field(const uint8_t *p, const struct perf_event_header *h, uint16_t front, uint16_t back)
{
	uint64_t v;
	size_t at;

	if (h->type == PERF_RECORD_SAMPLE)
		at = front;
	else
		at = back && h->size >= sizeof(*h) + back ? (size_t)(h->size - back) : 0;
	if (h->type >= FR_RECORD_USER_START || !at || at + 8 > h->size)
		return 0;
	memcpy(&v, p + at, sizeof(v));
	return v;
}

static uint64_t read_id(const struct fr_reader *r, const uint8_t *p, const struct perf_event_header *h)
{
	return r->one_id_place ? read_field(p, h, r->layouts[0].sample_id, r->layouts[0].tail_id) : 0;
}

/* Returns the layout of the record's event. If the record has no known id, returns the layout of the first
   event. */
static const struct fr_layout *find_layout(
	const struct fr_reader *r, const uint8_t *p, const struct perf_event_header *h)
{
	uint32_t e = r->one_layout ? 0 : fr_reader_find_event(r, read_id(r, p, h));

	return &r->layouts[e == FR_ID_UNKNOWN ? 0 : e];
}

uint64_t fr_reader_time(const struct fr_reader *r, const struct perf_event_header *record)
{
	const struct fr_layout *l;

	if (r->n_layouts == 0)
		return 0;
	l = find_layout(r, (const uint8_t *)record, record);
	return read_field((const uint8_t *)record, record, l->sample_time, l->tail_time);
}

size_t fr_reader_tail_size(const struct fr_reader *r, const struct perf_event_header *record)
{
	return r->n_layouts ? find_layout(r, (const uint8_t *)record, record)->tail_size : 0;
}

bool fr_reader_has_unknown_id(const struct fr_reader *r, const uint8_t *p)
{
	const struct fr_layout *l;
	struct perf_event_header h;
	uint64_t id;

	memcpy(&h, p, sizeof(h));
	if (h.type >= FR_RECORD_USER_START || r->ids.n == 0 || !r->one_id_place || !r->layouts[0].sample_id)
		return false;
	l = find_layout(r, p, &h);
	/* perf record itself writes records about the processes that ran before it. They have neither id nor
	   time. */
	id = read_id(r, p, &h);
	return fr_reader_find_event(r, id) == FR_ID_UNKNOWN &&
	       (id != 0 || h.type == PERF_RECORD_SAMPLE ||
		       read_field(p, &h, l->sample_time, l->tail_time) != 0);
}

bool fr_reader_is_plausible(const struct fr_reader *r, const uint8_t *p, size_t left)
{
	const struct fr_layout *l;
	struct perf_event_header h;

	if (left < sizeof(h))
		return false;
	memcpy(&h, p, sizeof(h));
	if (h.size < sizeof(h) || h.size > left || h.type == 0 || h.type >= FR_RECORD_USER_END)
		return false;
	if (h.type >= FR_RECORD_USER_START)
		return true;
	if (r->n_layouts == 0 || h.size % 8 != 0)
		return false;
	l = find_layout(r, p, &h);
	return h.size >= (h.type == PERF_RECORD_SAMPLE ? l->sample_min : sizeof(h) + l->tail_size);
}

bool fr_reader_is_proven(const struct fr_reader *r, const uint8_t *p, size_t left)
{
	struct fr_record_auxtrace t;
	struct perf_event_header h;

	if (!fr_reader_is_plausible(r, p, left))
		return false;
	memcpy(&h, p, sizeof(h));
	if (h.type < FR_RECORD_USER_START)
		return !fr_reader_has_unknown_id(r, p);
	if (h.type == FR_RECORD_FINISHED_ROUND)
		return h.size == sizeof(h) && h.misc == 0;
	if (h.type == FR_RECORD_AUXTRACE)
		return h.size == sizeof(t) && h.misc == 0 && left >= sizeof(t) && memcpy(&t, p, sizeof(t)) &&
		       t.size % 8 == 0 && t.size <= INT64_MAX && t.reserved == 0;
	return h.type == FR_RECORD_COMPRESSED && h.misc == 0 &&
	       fr_reader_begins_frame(p + sizeof(h), h.size - sizeof(h));
}
