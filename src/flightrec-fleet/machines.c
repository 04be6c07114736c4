// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrec-fleet/machines.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "flightrec-fleet/print.h"

#include <search.h>
#include <string.h>

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct machine *)a)->name, ((const struct machine *)b)->name);
}

static int compare_places(const void *a, const void *b)
{
	return compare_names(*(const struct machine *const *)a, *(const struct machine *const *)b);
}

static void keep_node(void *node)
{
	(void)node; /* the array owns the machines */
}

void machines_deinit(struct machines *m)
{
	if (m->tree)
		tdestroy(m->tree, keep_node);
	for (size_t i = 0; i < m->n; i++) {
		free(m->v[i]->presence);
		free(m->v[i]->answer);
		free(m->v[i]->manifest);
		free(m->v[i]->problem);
		free(m->v[i]);
	}
	free(m->v);
	*m = (struct machines){0};
}

static int make_room(struct machines *m)
{
	const size_t room = FR_MAX(2 * m->room, (size_t)64);
	struct machine **v = m->n < m->room ? m->v : reallocarray(m->v, room, sizeof(struct machine *));

	if (!v)
		return -1;
	if (m->n == m->room)
		m->room = room;
	m->v = v;
	return 0;
}

struct machine *machines_get(struct machines *m, const char *name)
{
	struct machine *new = calloc(1, sizeof(*new));
	struct machine **place;

	if (!new || make_room(m) < 0) {
		free(new);
		return NULL;
	}
	snprintf(new->name, sizeof(new->name), "%s", name);
	place = tsearch(new, &m->tree, compare_names);
	if (!place || *place != new) {
		free(new);
		return place ? *place : NULL;
	}
	fr_fleet_token(name, new->token);
	m->v[m->n++] = new;
	return new;
}

void machines_sort(struct machines *m)
{
	if (m->n)
		qsort(m->v, m->n, sizeof(struct machine *), compare_places);
}

uint64_t machines_newest(const struct machines *m)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < m->n; i++)
		ns = FR_MAX(ns, m->v[i]->seen_ns);
	return ns;
}

bool machine_is_reachable(const struct machine *m, uint64_t now_ns)
{
	return m->seen_ns && !m->is_leaving &&
	       (now_ns < m->seen_ns || now_ns - m->seen_ns < FR_PRESENCE_STALE_NS);
}

bool machine_takes_part(const struct machine *m)
{
	return m->is_chosen || m->answer || m->manifest;
}

const char *machine_state(const struct machine *m)
{
	/* The index is written after the store has everything, and the answer after the index. */
	if (m->manifest && *m->manifest->object)
		return "stored";
	if (m->answer)
		return fr_fleet_state_name(m->answer->state);
	return m->manifest ? "done" : "not reached";
}

static const char *describe_absence(const struct machine *m, uint64_t now_ns, char *ret, size_t size)
{
	char age[FR_UNIT_SIZE];

	if (!m->seen_ns)
		snprintf(ret, size, "it was never seen");
	else if (m->is_leaving)
		snprintf(ret, size, "its agent was stopped %s ago", print_age(m->seen_ns, now_ns, age));
	else if (machine_is_reachable(m, now_ns))
		snprintf(ret, size, "no answer; last seen %s ago", print_age(m->seen_ns, now_ns, age));
	else
		snprintf(ret, size, "last seen %s ago", print_age(m->seen_ns, now_ns, age));
	return ret;
}

const char *machine_where(const struct machine *m, uint64_t now_ns, char *ret, size_t size)
{
	const struct fr_fleet_answer *a = m->answer;

	if (m->manifest && *m->manifest->object)
		return m->manifest->object;
	if (!a && m->manifest)
		return m->manifest->file;
	if (!a)
		return describe_absence(m, now_ns, ret, size);
	switch (a->state) {
	case FR_FLEET_STORED:
		return *a->object ? a->object : a->path;
	case FR_FLEET_DONE:
		if (a->uploaded_bytes == 0 || a->bytes == 0)
			return a->path;
		snprintf(ret, size, "%s (%.0f%% uploaded)", a->path,
			FR_MIN(100 * ((double)a->uploaded_bytes / (double)a->bytes), 100.0));
		return ret;
	case FR_FLEET_RECORDING:
		return "it still writes the dump";
	default:
		return a->why;
	}
}

cJSON *machine_json(const struct machine *m, uint64_t now_ns)
{
	cJSON *o = cJSON_CreateObject();
	const struct fr_fleet_answer *a = m->answer;
	char why[640];

	if (!o)
		return NULL;
	cJSON_AddStringToObject(o, "machine", m->name);
	cJSON_AddStringToObject(o, "state", machine_state(m));
	if (a) {
		print_add_text(o, "path", a->path);
		print_add_text(o, "why", m->problem ? "" : a->why);
		FR_JSON_ADD_NUMBERS(o, {"bytes", a->bytes}, {"uploaded_bytes", a->uploaded_bytes});
	} else if (!m->manifest) {
		print_add_text(o, "why", machine_where(m, now_ns, why, sizeof(why)));
	}
	if (m->manifest)
		print_add_text(o, "object", m->manifest->object);
	else if (a)
		print_add_text(o, "object", a->object);
	print_add_text(o, "why", m->problem ? m->problem : "");
	if (m->seen_ns)
		fr_json_add_time(o, "last_seen", m->seen_ns);
	print_add_text(o, "folder", m->folder ? m->folder : "");
	return o;
}
