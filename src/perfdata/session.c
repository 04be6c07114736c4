// SPDX-License-Identifier: GPL-2.0-or-later
#include "perfdata/session.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void event_desc_deinit(struct fr_event_desc *e)
{
	free(e->name);
	free(e->ids);
}

int fr_session_add_event(struct fr_session *s, const struct perf_event_attr *attr, const char *name,
	const uint64_t *ids, size_t n_ids, struct fr_event_desc **ret)
{
	struct fr_event_desc e = {.attr = *attr, .n_ids = n_ids};
	struct fr_event_desc *events;

	e.name = strdup(name);
	e.ids = n_ids ? malloc(n_ids * sizeof(*ids)) : NULL;
	events = reallocarray(s->events, s->n_events + 1, sizeof(*events));
	if (events)
		s->events = events;
	if (!e.name || (n_ids && !e.ids) || !events) {
		event_desc_deinit(&e);
		return -ENOMEM;
	}
	if (n_ids)
		memcpy(e.ids, ids, n_ids * sizeof(*ids));
	s->events[s->n_events] = e;
	if (ret)
		*ret = &s->events[s->n_events];
	s->n_events++;
	return 0;
}

int fr_event_desc_add_id(struct fr_event_desc *e, uint64_t id)
{
	uint64_t *ids = reallocarray(e->ids, e->n_ids + 1, sizeof(*ids));

	if (!ids)
		return -ENOMEM;
	ids[e->n_ids++] = id;
	e->ids = ids;
	return 0;
}

void fr_session_close_events(struct fr_session *s, uint64_t now_ns)
{
	for (size_t i = 0; i < s->n_events; i++)
		if (s->events[i].until_ns == UINT64_MAX)
			s->events[i].until_ns = now_ns;
}

void fr_session_drop_closed(struct fr_session *s, uint64_t since_ns)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_events; i++) {
		struct fr_event_desc *e = &s->events[i];

		if (e->until_ns && e->until_ns <= since_ns)
			event_desc_deinit(e);
		else
			s->events[n++] = *e;
	}
	s->n_events = n;
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
