// SPDX-License-Identifier: GPL-2.0-or-later
#include "perfdata/session.h"
#include "base/cleanup.h"
#include "perfdata/id_table.h"
#include "perfdata/tracing_format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void event_desc_deinit(struct fr_event_desc *e)
{
	free(e->name);
	free(e->ids);
}

int fr_event_desc_add_ids(struct fr_event_desc *e, const void *ids, size_t n)
{
	uint64_t *all;

	if (n == 0)
		return 0;
	all = reallocarray(e->ids, e->n_ids + n, sizeof(*all));
	if (!all)
		return -ENOMEM;
	memcpy(all + e->n_ids, ids, n * sizeof(*all));
	e->ids = all;
	e->n_ids += n;
	return 0;
}

int fr_event_desc_set_name(struct fr_event_desc *e, const char *name, size_t len)
{
	char *copy = strndup(name, len);

	if (!copy)
		return -ENOMEM;
	free(e->name);
	e->name = copy;
	return 0;
}

int fr_session_add_event(struct fr_session *s, const struct perf_event_attr *attr, const char *name,
	const void *ids, size_t n_ids, struct fr_event_desc **ret)
{
	struct fr_event_desc *events = reallocarray(s->events, s->n_events + 1, sizeof(*events));
	struct fr_event_desc e = {.attr = *attr, .name = strdup(name)};

	if (events)
		s->events = events;
	if (!events || !e.name || fr_event_desc_add_ids(&e, ids, n_ids) < 0) {
		event_desc_deinit(&e);
		return -ENOMEM;
	}
	events[s->n_events] = e;
	if (ret)
		*ret = &events[s->n_events];
	s->n_events++;
	return 0;
}

void fr_session_remove_events(struct fr_session *s,
	bool (*is_gone)(const struct fr_event_desc *e, const void *ctx), const void *ctx)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_events; i++)
		if (is_gone(&s->events[i], ctx))
			event_desc_deinit(&s->events[i]);
		else
			s->events[n++] = s->events[i];
	s->n_events = n;
}

void fr_session_close_events(struct fr_session *s, uint64_t now_ns)
{
	for (size_t i = 0; i < s->n_events; i++)
		if (s->events[i].until_ns == UINT64_MAX)
			s->events[i].until_ns = now_ns;
}

static bool is_closed(const struct fr_event_desc *e, const void *ctx)
{
	const uint64_t *since_ns = ctx;

	return e->until_ns && e->until_ns <= *since_ns;
}

void fr_session_drop_closed_events(struct fr_session *s, uint64_t since_ns)
{
	fr_session_remove_events(s, is_closed, &since_ns);
}

/* Moves the last event to the place AT. */
static void move_last_to(struct fr_session *s, size_t at)
{
	struct fr_event_desc e = s->events[s->n_events - 1];

	memmove(&s->events[at + 1], &s->events[at], (s->n_events - 1 - at) * sizeof(e));
	s->events[at] = e;
}

static int index_ids(const struct fr_session *s, struct fr_id_table *ret)
{
	int r = 0;

	for (size_t e = 0; e < s->n_events; e++)
		for (size_t i = 0; r == 0 && i < s->events[e].n_ids; i++)
			r = fr_id_table_add(ret, s->events[e].ids[i], 0);
	return r;
}

static void remove_known_ids(struct fr_event_desc *e, const struct fr_id_table *known)
{
	size_t n = 0;

	for (size_t i = 0; i < e->n_ids; i++)
		if (fr_id_table_find(known, e->ids[i]) == FR_ID_UNKNOWN)
			e->ids[n++] = e->ids[i];
	e->n_ids = n;
}

/* Inserts a copy of E at the place AT, without the ids in KNOWN. Returns 1; 0 if all ids of E are known; or
   -ENOMEM. */
static int insert_older_event(
	struct fr_session *s, size_t at, const struct fr_event_desc *e, const struct fr_id_table *known)
{
	struct fr_event_desc *added;

	if (fr_session_add_event(s, &e->attr, e->name, e->ids, e->n_ids, &added) < 0)
		return -ENOMEM;
	remove_known_ids(added, known);
	if (added->n_ids == 0 && e->n_ids > 0) {
		event_desc_deinit(added);
		s->n_events--;
		return 0;
	}
	added->until_ns = e->until_ns ? e->until_ns : UINT64_MAX;
	move_last_to(s, at);
	return 1;
}

int fr_session_add_older_events(struct fr_session *to, const struct fr_session *from)
{
	_cleanup_(fr_id_table_deinit) struct fr_id_table known = {0};
	size_t at = to->n_events ? to->n_events - 1 : 0;
	int r = fr_tracing_data_unite(
		&to->features[FR_FEATURE_TRACING_DATA], &from->features[FR_FEATURE_TRACING_DATA]);

	if (r == 0)
		r = index_ids(to, &known);
	for (size_t i = 0; r >= 0 && i < from->n_events; i++) {
		/* The last event of FROM is the newest opening of its side-band event. This opening is added
		   first, so that it is before the older openings of the side-band event in FROM. */
		r = insert_older_event(to, at, &from->events[i ? i - 1 : from->n_events - 1], &known);
		at += r > 0;
	}
	return FR_MIN(r, 0);
}

static bool is_same(const struct fr_event_desc *a, const struct fr_event_desc *b)
{
	return memcmp(&a->attr, &b->attr, sizeof(a->attr)) == 0 && strcmp(a->name, b->name) == 0;
}

int fr_session_join_equal_events(struct fr_session *s)
{
	size_t n = 1, k;
	struct fr_event_desc last;
	int r = 0;

	if (s->n_events < 2)
		return 0;
	/* The last event is the newest opening of the side-band event. During the search it is the first
	   event, so that its ids come first. */
	move_last_to(s, 0);
	for (size_t i = 1; i < s->n_events; i++) {
		struct fr_event_desc *e = &s->events[i];

		for (k = 0; k < n && !is_same(&s->events[k], e);)
			k++;
		if (k < n && r == 0 && (r = fr_event_desc_add_ids(&s->events[k], e->ids, e->n_ids)) == 0)
			event_desc_deinit(e);
		else
			s->events[n++] = *e;
	}
	s->n_events = n;
	last = s->events[0];
	memmove(s->events, s->events + 1, (n - 1) * sizeof(last));
	s->events[n - 1] = last;
	return r;
}

static int compare_ids(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

bool fr_session_shares_id(const struct fr_session *a, const struct fr_session *b)
{
	_cleanup_(event_desc_deinit) struct fr_event_desc all = {0};

	for (size_t e = 0; e < a->n_events; e++)
		if (fr_event_desc_add_ids(&all, a->events[e].ids, a->events[e].n_ids) < 0)
			return false;
	if (all.n_ids > 0)
		qsort(all.ids, all.n_ids, sizeof(*all.ids), compare_ids);
	for (size_t e = 0; e < b->n_events; e++)
		for (size_t i = 0; i < b->events[e].n_ids && all.n_ids > 0; i++)
			if (bsearch(&b->events[e].ids[i], all.ids, all.n_ids, sizeof(*all.ids), compare_ids))
				return true;
	return false;
}

bool fr_attr_is_sideband(const struct perf_event_attr *a)
{
	return a->type == PERF_TYPE_SOFTWARE && a->config == PERF_COUNT_SW_DUMMY;
}

void fr_session_set_sideband_stacks(struct fr_session *s)
{
	uint64_t types = 0;

	for (size_t i = 0; i < s->n_events; i++)
		if (!fr_attr_is_sideband(&s->events[i].attr))
			types |= s->events[i].attr.sample_type;
	for (size_t i = 0; i < s->n_events; i++)
		if (fr_attr_is_sideband(&s->events[i].attr))
			s->events[i].attr.sample_type |= types & PERF_SAMPLE_CALLCHAIN;
}

int fr_session_copy(const struct fr_session *s, struct fr_session *ret)
{
	_cleanup_session_ struct fr_session copy = {0};

	for (size_t i = 0; i < s->n_events; i++) {
		const struct fr_event_desc *e = &s->events[i];
		struct fr_event_desc *added;
		int r = fr_session_add_event(&copy, &e->attr, e->name, e->ids, e->n_ids, &added);

		if (r < 0)
			return r;
		added->until_ns = e->until_ns;
	}
	for (size_t f = 0; f < _FR_FEATURE_MAX; f++) {
		int r = fr_buf_append(&copy.features[f], s->features[f].data, s->features[f].len);

		if (r < 0)
			return r;
	}
	*ret = copy;
	copy = (struct fr_session){0};
	return 0;
}

void fr_session_deinit(struct fr_session *s)
{
	for (size_t i = 0; i < s->n_events; i++)
		event_desc_deinit(&s->events[i]);
	free(s->events);
	for (size_t f = 0; f < _FR_FEATURE_MAX; f++)
		fr_buf_deinit(&s->features[f]);
	*s = (struct fr_session){0};
}
