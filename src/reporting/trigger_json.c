// SPDX-License-Identifier: GPL-2.0-or-later
#include "reporting/trigger_json.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/timestamp.h"
#include "base/units.h"
#include "reporting/cause.h"

#include <argz.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Adds NAME_at_ns and NAME_age_ns to O, if AT_NS is known (not 0). */
static void add_moment(cJSON *o, const char *name, uint64_t at_ns, uint64_t now_ns)
{
	char key[64];

	if (!at_ns)
		return;
	snprintf(key, sizeof(key), "%s_at_ns", name);
	fr_json_add_u64(o, key, at_ns);
	snprintf(key, sizeof(key), "%s_age_ns", name);
	fr_json_add_u64(o, key, now_ns > at_ns ? now_ns - at_ns : 0);
}

static void add_counts(cJSON *o, const uint64_t counts[static FR_VERDICTS])
{
	uint64_t asked = 0;
	cJSON *suppressed;

	for (int v = 0; v < FR_VERDICTS; v++)
		asked += counts[v];
	FR_JSON_ADD_NUMBERS(o, {"asked", asked}, {"fired", counts[FR_VERDICT_FIRE]},
		{"joined", counts[FR_VERDICT_COALESCE]});
	suppressed = cJSON_AddObjectToObject(o, "suppressed");
	for (int v = FR_VERDICT_DISABLED; v < FR_VERDICTS; v++)
		if (counts[v])
			fr_json_add_u64(suppressed, fr_verdict_name(v), counts[v]);
}

/* Writes to RET why a trigger is not armed yet. */
static void arming_text(const struct fr_trigger_info *i, char *ret, size_t size)
{
	char time[FR_UNIT_SIZE];

	fr_duration_format(i->arming_ns, time);
	if (i->behind[0])
		snprintf(ret, size, "it waits for %s (%s so far), whose file or program takes long to load",
			i->behind, time);
	else
		snprintf(ret, size, "its file is being read, or the kernel verifies its program (%s so far)",
			time);
}

static void add_source(cJSON *o, const struct fr_trigger_info *i, uint64_t now_ns)
{
	static const char *const states[] = {[FR_TRIGGER_DISABLED] = "disabled",
		[FR_TRIGGER_ARMED] = "armed",
		[FR_TRIGGER_FAILED] = "failed",
		[FR_TRIGGER_ARMING] = "arming"};
	char why[192];

	cJSON_AddStringToObject(o, "name", i->name);
	cJSON_AddStringToObject(o, "source", i->source);
	if (i->subject)
		cJSON_AddStringToObject(o, "subject", i->subject);
	cJSON_AddStringToObject(o, "state", states[i->state]);
	if (i->state == FR_TRIGGER_FAILED) {
		cJSON_AddStringToObject(o, "what", i->diag->what);
		if (i->diag->hint[0])
			cJSON_AddStringToObject(o, "hint", i->diag->hint);
	}
	if (i->state == FR_TRIGGER_ARMING) {
		arming_text(i, why, sizeof(why));
		cJSON_AddStringToObject(o, "what", why);
	}
	if (i->stats.gone)
		cJSON_AddStringToObject(o, "gone", i->stats.gone);
	cJSON_AddStringToObject(o, "unit", fr_cause_unit_name(i->stats.unit));
	if (i->stats.threshold)
		fr_json_add_u64(o, "threshold", i->stats.threshold);
	if (i->stats.last_ns)
		fr_json_add_u64(o, "last_value", i->stats.last);
	add_moment(o, "last_value", i->stats.last_ns, now_ns);
}

static void add_actions(cJSON *o, const struct fr_trigger_config *c)
{
	cJSON *actions = cJSON_AddArrayToObject(o, "actions");

	for (char *line = c->actions; line; line = argz_next(c->actions, c->actions_len, line))
		cJSON_AddItemToArray(actions, cJSON_CreateString(line));
}

static void add_policy(
	cJSON *o, const struct fr_config *config, const struct fr_trigger_info *i, uint64_t now_ns)
{
	const struct fr_trigger_config *c = i->config;

	fr_json_add_u64(o, "cooldown_ns", c->cooldown_ns);
	fr_json_add_u64(o, "cooldown_left_ns", i->quiet_until_ns > now_ns ? i->quiet_until_ns - now_ns : 0);
	if (c->actions)
		add_actions(o, c);
	fr_json_add_u64(o, "min_fill_ns", c->min_fill_ns);
	fr_json_add_u64(o, "window_ns", c->window_ns == FR_TRIGGER_UNSET ? config->window_ns : c->window_ns);
	fr_json_add_u64(o, "post_ns", c->post_ns == FR_TRIGGER_UNSET ? config->post_trigger_ns : c->post_ns);
}

cJSON *fr_trigger_json(const struct fr_trigger_info *i, const struct fr_config *config, uint64_t now_ns)
{
	cJSON *o = cJSON_CreateObject();

	add_source(o, i, now_ns);
	if (i->config->origin)
		cJSON_AddStringToObject(o, "origin", i->config->origin);
	add_counts(o, i->counts);
	FR_JSON_ADD_NUMBERS(o, {"cooled", i->stats.cooled}, {"lost", i->stats.lost}, {"bad", i->stats.bad});
	add_policy(o, config, i, now_ns);
	add_moment(o, "last_fired", i->last_fired_ns, now_ns);
	if (i->last_file[0])
		cJSON_AddStringToObject(o, "last_file", i->last_file);
	return o;
}

static void add_fleet(cJSON *o, const struct fr_decision *d)
{
	cJSON *selectors = cJSON_AddArrayToObject(o, "fleet");

	for (const char *s = d->fleet; s; s = argz_next(d->fleet, d->fleet_len, s))
		cJSON_AddItemToArray(selectors, cJSON_CreateString(s));
	FR_JSON_ADD_NUMBERS(o, {"from_ns", d->from_ns}, {"to_ns", d->to_ns});
}

cJSON *fr_decision_json(const struct fr_decision *d)
{
	const struct fr_clock_pair pair = fr_clock_pair_now();
	const uint64_t now_ns = pair.monotonic_ns;
	cJSON *o = cJSON_CreateObject();

	fr_json_add_u64(o, "id", d->id);
	fr_json_add_time(o, "time", fr_clock_to_realtime(&pair, d->at_ns));
	fr_json_add_u64(o, "monotonic_ns", d->at_ns);
	fr_json_add_u64(o, "age_ns", now_ns > d->at_ns ? now_ns - d->at_ns : 0);
	cJSON_AddStringToObject(o, "trigger", d->cause.trigger);
	cJSON_AddStringToObject(o, "verdict", fr_verdict_name(d->verdict));
	cJSON_AddStringToObject(o, "why", d->why);
	if (d->dump_id)
		fr_json_add_u64(o, "dump_id", d->dump_id);
	if (d->file[0])
		cJSON_AddStringToObject(o, "file", d->file);
	if (d->fleet_len)
		add_fleet(o, d);
	fr_json_add_u64(o, "repeats", d->repeats);
	fr_json_add_u64(o, "last_age_ns", now_ns > d->last_ns ? now_ns - d->last_ns : 0);
	cJSON_AddItemToObject(o, "cause", fr_cause_json(&d->cause, (uid_t)-1, NULL));
	return o;
}

/* Writes a text like "run-queue latency, 12.3ms of 5ms, pid 7 (mysqld)" to RET. */
static void describe_cause(const struct fr_cause *c, char *ret, size_t size)
{
	char value[FR_CAUSE_VALUE_SIZE], threshold[FR_CAUSE_VALUE_SIZE];
	size_t n;

	snprintf(ret, size, "%s%s%s", c->reason[0] ? c->reason : c->trigger, c->detail[0] ? ", " : "",
		c->detail);
	n = strlen(ret);
	if (c->threshold) {
		fr_cause_format_value(c->unit, c->value, value);
		fr_cause_format_value(c->unit, c->threshold, threshold);
		snprintf(ret + n, size - n, ", %s of %s", value, threshold);
	}
	n = strlen(ret);
	if (c->pid > 0 && c->comm[0])
		snprintf(ret + n, size - n, ", pid %d (%s)", (int)c->pid, c->comm);
}

void fr_decision_log_suppressed(const struct fr_decision *d)
{
	char text[2 * FR_CAUSE_TEXT_SIZE + 2 * FR_CAUSE_VALUE_SIZE + 64];
	struct fr_log_field fields[FR_CAUSE_FIELDS + 1];
	cJSON *cause = fr_cause_json(&d->cause, (uid_t)-1, NULL);
	struct fr_cause_field_texts texts;
	unsigned n = fr_cause_fields(cause, fields, &texts);

	fields[n++] = (struct fr_log_field){"FLIGHTREC_VERDICT", fr_verdict_name(d->verdict)};
	describe_cause(&d->cause, text, sizeof(text));
	fr_log_struct(LOG_NOTICE, FR_MSG_SUPPRESSED, fields, n, "%s: %s: suppressed, %s", d->cause.trigger,
		text, d->why);
	cJSON_Delete(cause);
}
