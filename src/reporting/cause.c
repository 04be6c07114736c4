// SPDX-License-Identifier: GPL-2.0-or-later
#include "reporting/cause.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/timestamp.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

static void add_text(cJSON *o, const char *name, const char *text)
{
	if (text && *text)
		cJSON_AddStringToObject(o, name, text);
}

static void add_process(cJSON *o, const struct fr_cause *c, uid_t uid)
{
	if (c->pid > 0)
		cJSON_AddNumberToObject(o, "pid", c->pid);
	if (c->tid > 0)
		cJSON_AddNumberToObject(o, "tid", c->tid);
	if (uid != (uid_t)-1)
		cJSON_AddNumberToObject(o, "uid", uid);
	add_text(o, "comm", c->comm);
	add_text(o, "cgroup", c->cgroup);
	if (c->cpu >= 0)
		cJSON_AddNumberToObject(o, "cpu", c->cpu);
}

cJSON *fr_cause_json(const struct fr_cause *c, uid_t uid, const struct fr_clock_pair *clock)
{
	const struct fr_clock_pair pair = clock ? *clock : fr_clock_pair_now();
	cJSON *o = cJSON_CreateObject();

	if (!o)
		return NULL;
	cJSON_AddStringToObject(o, "trigger", c->trigger);
	add_text(o, "source", c->source);
	cJSON_AddStringToObject(o, "reason", c->reason);
	add_text(o, "detail", c->detail);
	if (c->value || c->threshold)
		fr_json_add_u64(o, "value", c->value);
	if (c->threshold)
		fr_json_add_u64(o, "threshold", c->threshold);
	add_text(o, "unit", fr_cause_unit_name(c->unit));
	add_process(o, c, uid);
	add_text(o, "fleet", c->fleet);
	add_text(o, "by", c->by);
	fr_json_add_time(o, "time", fr_clock_to_realtime(&pair, c->time_ns));
	fr_json_add_u64(o, "monotonic_ns", c->time_ns);
	return o;
}

unsigned fr_cause_fields(const cJSON *cause, struct fr_log_field fields[static FR_CAUSE_FIELDS],
	struct fr_cause_field_texts *texts)
{
	static const struct fr_log_field names[FR_CAUSE_FIELDS] = {
		{"FLIGHTREC_TRIGGER", "trigger"},
		{"FLIGHTREC_REASON", "reason"},
		{"FLIGHTREC_DETAIL", "detail"},
		{"FLIGHTREC_VALUE", "value"},
		{"FLIGHTREC_THRESHOLD", "threshold"},
		{"FLIGHTREC_UNIT", "unit"},
		{"FLIGHTREC_PID", "pid"},
		{"FLIGHTREC_TID", "tid"},
		{"FLIGHTREC_COMM", "comm"},
		{"FLIGHTREC_CGROUP", "cgroup"},
	};
	unsigned n = 0;

	for (size_t i = 0; i < FR_CAUSE_FIELDS; i++) {
		const cJSON *o = cJSON_GetObjectItemCaseSensitive(cause, names[i].value);
		const char *value;

		if (!o)
			continue;
		value = o->valuestring; /* the text of a string, or of a number that is raw JSON */
		if (cJSON_IsNumber(o)) {
			snprintf(texts->number[n], sizeof(texts->number[n]), "%.0f", o->valuedouble);
			value = texts->number[n];
		}
		fields[n++] = (struct fr_log_field){names[i].key, value};
	}
	return n;
}

cJSON *fr_cause_new_meta(
	const struct fr_cause *first, uid_t uid, const char *boot_id, const struct fr_clock_pair *clock)
{
	cJSON *meta = cJSON_CreateObject(), *cause = fr_cause_json(first, uid, clock), *causes;

	if (!cause || !cJSON_AddItemToObject(meta, "cause", cause)) {
		cJSON_Delete(cause);
		cJSON_Delete(meta);
		return NULL;
	}
	causes = cJSON_AddArrayToObject(meta, "causes");
	if (cJSON_AddItemToArray(causes, cJSON_Duplicate(cause, true)) &&
		cJSON_AddStringToObject(meta, "boot_id", boot_id))
		return meta;
	cJSON_Delete(meta);
	return NULL;
}
