// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "report/explain.h"

#define STACK_MAX 64
#define VERSION 1 /* of this JSON: the design document says when it changes */

static const char *const wait_names[_FR_WAIT_N] = {[FR_WAIT_CPU] = "cpu",
	[FR_WAIT_LOCK] = "lock",
	[FR_WAIT_DISK] = "disk",
	[FR_WAIT_RECLAIM] = "memory",
	[FR_WAIT_SERVER] = "file_server",
	[FR_WAIT_PEER] = "reader",
	[FR_WAIT_UNKNOWN] = "uninterruptible",
	[FR_WAIT_SLEEP] = "sleep",
	[FR_WAIT_IDLE] = "idle"};

static bool add_stack(cJSON *to, const struct fr_profile *p, uint32_t stack)
{
	uint32_t frames[STACK_MAX];
	const size_t n = fr_stacks_frames(fr_profile_stacks(p), stack, frames, STACK_MAX);
	cJSON *list = cJSON_AddArrayToObject(to, "stack");
	bool ok = list;

	for (size_t i = 0; i < n && ok; i++)
		ok = cJSON_AddItemToArray(
			list, cJSON_CreateString(fr_frames_get(fr_profile_frames(p), frames[i])->name));
	return ok;
}

static cJSON *make_finding(const struct fr_explanation *e, const struct fr_finding *x)
{
	cJSON *j = cJSON_CreateObject(), *list;
	bool ok = j && cJSON_AddStringToObject(j, "rule", x->rule) &&
		  cJSON_AddStringToObject(j, "headline", x->headline) &&
		  cJSON_AddNumberToObject(j, "score", x->score) &&
		  cJSON_AddStringToObject(j, "certainty", fr_certainty_name(x->certainty)) &&
		  cJSON_AddStringToObject(j, "certainty_why", x->why);

	if (ok && x->pid)
		ok = FR_JSON_ADD_NUMBERS(j, {"pid", x->pid}, {"tid", x->tid}) &&
		     cJSON_AddStringToObject(j, "comm", x->comm ? x->comm : "");
	list = ok ? cJSON_AddArrayToObject(j, "evidence") : NULL;
	for (size_t i = 0; i < x->n_evidence && list; i++)
		ok = cJSON_AddItemToArray(list, cJSON_CreateString(x->evidence[i])) && ok;
	if (list && ok && add_stack(j, e->profile, x->stack))
		return j;
	cJSON_Delete(j);
	return NULL;
}

static bool add_part(cJSON *to, const char *name, const struct fr_explanation *e, int part)
{
	const struct fr_sums *s = &e->facts.all[part];
	cJSON *j = cJSON_AddObjectToObject(to, name), *waits = cJSON_AddObjectToObject(j, "waits_ns");
	bool ok = j && waits && cJSON_AddNumberToObject(j, "seconds", fr_facts_seconds(&e->facts, part)) &&
		  FR_JSON_ADD_NUMBERS(
			  j, {"cpu_ns", s->cpu_ns}, {"samples", s->cpu_samples}, {"forks", s->forks});

	for (int i = 0; i < _FR_WAIT_N && ok; i++)
		ok = fr_json_add_u64(waits, wait_names[i], s->wait_ns[i]);
	return ok;
}

static bool add_steady(cJSON *to, const struct fr_steady *s)
{
	cJSON *j = s->comm ? cJSON_AddObjectToObject(to, "steady") : NULL;

	return !s->comm ||
	       (j && cJSON_AddStringToObject(j, "comm", s->comm) && FR_JSON_ADD_NUMBERS(j, {"pid", s->pid}) &&
		       cJSON_AddNumberToObject(j, "cpus_before", s->before) &&
		       cJSON_AddNumberToObject(j, "cpus", s->cpus));
}

static bool add_changes(cJSON *to, const struct fr_explanation *e)
{
	const struct fr_frames *frames = fr_profile_frames(e->profile);
	struct fr_change changes[FR_CHANGES_MAX];
	const size_t n = fr_explanation_changes(e, changes);
	cJSON *list = cJSON_AddArrayToObject(to, "changes");
	bool ok = list;

	for (size_t i = 0; i < n && ok; i++) {
		const struct fr_frame *f = fr_frames_get(frames, changes[i].frame);
		cJSON *j = cJSON_CreateObject();

		ok = j && cJSON_AddStringToObject(j, "function", f->name) &&
		     cJSON_AddStringToObject(j, "object", fr_frames_object(frames, f->object)->path) &&
		     cJSON_AddNumberToObject(j, "cpus_before", changes[i].before) &&
		     cJSON_AddNumberToObject(j, "cpus", changes[i].incident);
		ok = cJSON_AddItemToArray(list, j) && ok;
	}
	return ok;
}

cJSON *fr_explanation_json(const struct fr_explanation *e)
{
	const cJSON *cause = cJSON_GetObjectItemCaseSensitive(e->meta, "cause");
	cJSON *j = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(j, "findings");
	bool ok = j && list;

	for (size_t i = 0; i < e->findings.n && ok; i++)
		ok = cJSON_AddItemToArray(list, make_finding(e, &e->findings.v[i]));
	if (ok && cause)
		ok = cJSON_AddItemToObject(j, "cause", cJSON_Duplicate(cause, true));
	if (ok)
		ok = add_part(j, "before", e, FR_BEFORE) && add_part(j, "incident", e, FR_INCIDENT) &&
		     add_steady(j, &e->findings.steady) && add_changes(j, e) &&
		     FR_JSON_ADD_NUMBERS(j, {"version", VERSION}, {"cpus", e->facts.n_cpus},
			     {"lost", e->facts.lost}, {"left_out", e->facts.left_out},
			     {"skipped", fr_recording_skipped(fr_profile_recording(e->profile))}) &&
		     cJSON_AddBoolToObject(j, "has_cpu_samples", e->facts.has_cpu) &&
		     cJSON_AddBoolToObject(j, "has_waits", e->facts.has_waits) &&
		     cJSON_AddBoolToObject(
			     j, "damaged", fr_recording_damage(fr_profile_recording(e->profile))->damaged);
	if (ok)
		return j;
	cJSON_Delete(j);
	return NULL;
}
