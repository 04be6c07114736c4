// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/json.h"
#include "report/fleet_explain.h"

#include <string.h>

#define VERSION 1 /* of this JSON: the design document says when it changes */

/* Times since the epoch need more bits than a double has, so they are strings, as in the manifest. */
static bool add_time(cJSON *to, const char *name, uint64_t ns)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, ns);
	return cJSON_AddStringToObject(to, name, text);
}

static bool add_clock(cJSON *to, const struct fr_fleet_clock *c)
{
	cJSON *j = cJSON_AddObjectToObject(to, "clock");
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, c->offset_ns);
	return j && cJSON_AddStringToObject(j, "offset_ns", text) &&
	       (c->error_ns == UINT64_MAX ? cJSON_AddNullToObject(j, "error_ns") != NULL
					  : add_time(j, "error_ns", c->error_ns));
}

/* Moves the explanation of the machine into its object. */
static cJSON *make_machine(struct fr_fleet_explanation *x, size_t i)
{
	const struct fr_fleet_machine *m = &x->folder->v[i];
	cJSON *j = cJSON_CreateObject(), *explanation;
	bool ok = j && cJSON_AddStringToObject(j, "machine", m->name) &&
		  cJSON_AddStringToObject(j, "state", m->state);

	if (ok && !m->path)
		ok = cJSON_AddStringToObject(j, "why", m->why);
	if (ok && m->path)
		ok = cJSON_AddStringToObject(j, "path", m->path) && add_clock(j, &m->clock) &&
		     add_time(j, "from_ns", m->from_ns) && add_time(j, "to_ns", m->to_ns);
	explanation = ok ? cJSON_DetachItemFromObjectCaseSensitive(x->json, m->name) : NULL;
	if (explanation && !cJSON_AddItemToObject(j, "explanation", explanation)) {
		cJSON_Delete(explanation);
		ok = false;
	}
	if (ok)
		return j;
	cJSON_Delete(j);
	return NULL;
}

static cJSON *make_finding(const struct fr_fleet_explanation *x, const struct fr_fleet_group *g)
{
	const struct fr_finding *f = &g->first->f;
	cJSON *j = cJSON_CreateObject(), *list;
	bool ok = j && cJSON_AddStringToObject(j, "machine", x->folder->v[g->machines[0]].name) &&
		  cJSON_AddStringToObject(j, "rule", f->rule) &&
		  cJSON_AddStringToObject(j, "headline", f->headline) &&
		  cJSON_AddNumberToObject(j, "score", f->score) &&
		  cJSON_AddStringToObject(j, "certainty", fr_certainty_name(f->certainty));

	if (ok && f->pid)
		ok = FR_JSON_ADD_NUMBERS(j, {"pid", f->pid}, {"tid", f->tid}) &&
		     cJSON_AddStringToObject(j, "comm", g->first->comm);
	list = ok ? cJSON_AddArrayToObject(j, "machines") : NULL;
	ok = list;
	for (size_t i = 0; i < g->n && ok; i++)
		ok = cJSON_AddItemToArray(list, cJSON_CreateString(x->folder->v[g->machines[i]].name));
	if (ok)
		return j;
	cJSON_Delete(j);
	return NULL;
}

static bool add_findings(cJSON *to, struct fr_fleet_explanation *x)
{
	struct fr_fleet_group *v = NULL;
	size_t n = 0;
	cJSON *list = cJSON_AddArrayToObject(to, "findings");
	bool ok = list && fr_fleet_groups(x, &v, &n) == 0;

	for (size_t i = 0; i < n && ok; i++)
		ok = cJSON_AddItemToArray(list, make_finding(x, &v[i]));
	fr_fleet_groups_free(v, n);
	return ok;
}

static bool add_difference(cJSON *to, const struct fr_fleet_explanation *x)
{
	struct fr_fleet_difference d;
	cJSON *j;

	if (!fr_fleet_difference(x, &d))
		return true;
	j = cJSON_AddObjectToObject(to, "differs");
	return j && cJSON_AddStringToObject(j, "machine", x->folder->v[d.machine].name) &&
	       cJSON_AddNumberToObject(j, "cpus", d.cpus) &&
	       cJSON_AddNumberToObject(j, "others_cpus", d.others_cpus) &&
	       cJSON_AddNumberToObject(j, "waiting", d.waiting) &&
	       cJSON_AddNumberToObject(j, "others_waiting", d.others_waiting);
}

cJSON *fr_fleet_explanation_json(struct fr_fleet_explanation *x)
{
	const struct fr_fleet_folder *f = x->folder;
	cJSON *j = cJSON_CreateObject(), *list;
	bool ok = j && FR_JSON_ADD_NUMBERS(j, {"version", VERSION}) &&
		  cJSON_AddStringToObject(j, "id", f->id) &&
		  cJSON_AddStringToObject(j, "reason", f->command.reason) &&
		  cJSON_AddStringToObject(j, "by", f->command.by) && add_time(j, "from_ns", f->from_ns) &&
		  add_time(j, "to_ns", f->to_ns) && add_findings(j, x) && add_difference(j, x);

	list = ok ? cJSON_AddArrayToObject(j, "machines") : NULL;
	ok = list;
	for (size_t i = 0; i < f->n && ok; i++)
		ok = cJSON_AddItemToArray(list, make_machine(x, i));
	if (ok)
		return j;
	cJSON_Delete(j);
	return NULL;
}
