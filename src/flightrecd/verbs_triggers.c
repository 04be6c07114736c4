// SPDX-License-Identifier: GPL-2.0-or-later
/* The methods of the control socket that are about triggers. */
#include "base/cleanup.h"
#include "base/units.h"
#include "control/interface.h"
#include "base/log.h"
#include "flightrecd/verbs.h"
#include "flightrecd/watchers.h"
#include "reporting/cause.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* Less than a reply may have: a decision is at most a few KiB. */
#define DECISIONS_MAX FR_DECISIONS_REMEMBERED

static void add_u64(cJSON *o, const char *name, uint64_t v)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, v);
	cJSON_AddRawToObject(o, name, text);
}

/* NAME_at_ns and NAME_age_ns, where AT_NS is known. */
static void add_moment(cJSON *o, const char *name, uint64_t at_ns, uint64_t now_ns)
{
	char key[64];

	if (!at_ns)
		return;
	snprintf(key, sizeof(key), "%s_at_ns", name);
	add_u64(o, key, at_ns);
	snprintf(key, sizeof(key), "%s_age_ns", name);
	add_u64(o, key, now_ns > at_ns ? now_ns - at_ns : 0);
}

static void add_counts(cJSON *o, const uint64_t counts[static FR_VERDICTS])
{
	uint64_t asked = 0;
	cJSON *suppressed;

	for (int v = 0; v < FR_VERDICTS; v++)
		asked += counts[v];
	add_u64(o, "asked", asked);
	add_u64(o, "fired", counts[FR_VERDICT_FIRE]);
	add_u64(o, "joined", counts[FR_VERDICT_JOIN]);
	suppressed = cJSON_AddObjectToObject(o, "suppressed");
	for (int v = FR_VERDICT_DISABLED; v < FR_VERDICTS; v++)
		if (counts[v])
			add_u64(suppressed, fr_verdict_name(v), counts[v]);
}

/* Why what is being armed is not yet. */
static void arming_text(const struct fr_trigger_info *i, char *ret, size_t size)
{
	char time[FR_UNIT_SIZE];

	fr_duration_format(i->arming_ns, time);
	if (i->behind[0])
		snprintf(ret, size, "it waits for %s (%s so far), whose file or program takes its time",
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
		add_u64(o, "threshold", i->stats.threshold);
	if (i->stats.last_ns)
		add_u64(o, "last_value", i->stats.last);
	add_moment(o, "last_value", i->stats.last_ns, now_ns);
}

static void add_policy(cJSON *o, const struct fr_daemon *m, const struct fr_trigger_info *i, uint64_t now_ns)
{
	const struct fr_trigger_config *c = i->config;

	add_u64(o, "cooldown_ns", c->cooldown_ns);
	add_u64(o, "cooldown_left_ns", i->quiet_until_ns > now_ns ? i->quiet_until_ns - now_ns : 0);
	add_u64(o, "min_fill_ns", c->min_fill_ns);
	add_u64(o, "window_ns", c->window_ns == FR_TRIGGER_UNSET ? m->config->window_ns : c->window_ns);
	add_u64(o, "post_ns", c->post_ns == FR_TRIGGER_UNSET ? m->config->post_trigger_ns : c->post_ns);
}

static cJSON *trigger_json(struct fr_daemon *m, size_t index, uint64_t now_ns)
{
	cJSON *o = cJSON_CreateObject();
	struct fr_trigger_info i;

	fr_triggers_info(m->triggers, index, &i);
	add_source(o, &i, now_ns);
	if (i.config->origin)
		cJSON_AddStringToObject(o, "origin", i.config->origin);
	add_counts(o, i.counts);
	add_u64(o, "cooled", i.stats.cooled);
	add_u64(o, "lost", i.stats.lost);
	add_u64(o, "bad", i.stats.bad);
	add_policy(o, m, &i, now_ns);
	add_moment(o, "last_fired", i.last_fired_ns, now_ns);
	if (i.last_file[0])
		cJSON_AddStringToObject(o, "last_file", i.last_file);
	return o;
}

/* Nothing is armed any more at the end. True where CALL has got its answer. */
static bool is_stopping(const struct fr_daemon *m, struct fr_call *call)
{
	struct fr_diag d = {0};

	if (m->triggers)
		return false;
	fr_fail(&d, -ESHUTDOWN, "ask the next one", "flightrecd is stopping");
	fr_call_fail(call, &d, d.code);
	return true;
}

void fr_verb_triggers(void *daemon, struct fr_call *call, const cJSON *parameters)
{
	const uint64_t now_ns = fr_monotonic_ns();
	struct fr_daemon *m = daemon;
	uint64_t token_ns;
	struct fr_policy p;
	cJSON *reply, *list;

	if (is_stopping(m, call))
		return;
	reply = cJSON_CreateObject();
	list = cJSON_AddArrayToObject(reply, "triggers");
	for (size_t i = 0; i < fr_triggers_count(m->triggers); i++)
		cJSON_AddItemToArray(list, trigger_json(m, i, now_ns));
	p = fr_triggers_bucket(m->triggers);
	token_ns = fr_policy_next_token_ns(&p, now_ns);
	cJSON_AddNumberToObject(reply, "tokens", fr_policy_tokens(&p, now_ns));
	cJSON_AddNumberToObject(reply, "burst", p.interval_ns ? p.burst : 0);
	add_u64(reply, "interval_ns", p.interval_ns);
	add_u64(reply, "next_token_ns", token_ns ? token_ns - now_ns : 0);
	fr_call_reply(call, reply);
}

/* The member "name", or NULL and CALL has got its answer. */
static const char *name_of(struct fr_call *call, const cJSON *parameters)
{
	const char *name = NULL;

	if (fr_param_string(parameters, "name", &name) == 1)
		return name;
	fr_call_invalid_parameter(call, "name");
	return NULL;
}

void fr_verb_test_trigger(void *daemon, struct fr_call *call, const cJSON *parameters)
{
	const struct fr_peer *peer = fr_call_peer(call);
	struct fr_daemon *m = daemon;
	struct fr_diag d = {0};
	const char *name;
	uint64_t id;
	char by[64];
	cJSON *reply;
	int r;

	if (is_stopping(m, call) || !(name = name_of(call, parameters)))
		return;
	snprintf(by, sizeof(by), "pid %d (%s)", (int)peer->pid, peer->comm);
	m->tester = peer->uid;
	r = fr_triggers_test(m->triggers, name, by, &id, &d);
	m->tester = FR_UID_MACHINE;
	if (r < 0) {
		fr_call_fail(call, &d, r);
		return;
	}
	reply = cJSON_CreateObject();
	add_u64(reply, "id", id);
	fr_call_reply(call, reply);
}

void fr_verb_set_trigger(void *daemon, struct fr_call *call, const cJSON *parameters)
{
	struct fr_daemon *m = daemon;
	struct fr_diag d = {0};
	bool enabled = false;
	const char *name;
	int r;

	if (is_stopping(m, call) || !(name = name_of(call, parameters)))
		return;
	if (fr_param_bool(parameters, "enabled", &enabled) != 1) {
		fr_call_invalid_parameter(call, "enabled");
		return;
	}
	r = fr_triggers_enable(m->triggers, name, enabled, &d);
	if (r < 0) {
		fr_call_fail(call, &d, r);
		return;
	}
	fr_log(LOG_INFO, "trigger %s was %s by pid %d (%s)", name, enabled ? "enabled" : "disabled",
		(int)fr_call_peer(call)->pid, fr_call_peer(call)->comm);
	fr_call_reply(call, NULL);
}

void fr_verb_decisions(void *daemon, struct fr_call *call, const cJSON *parameters)
{
	struct fr_daemon *m = daemon;
	uint64_t max = DECISIONS_MAX;
	const struct fr_decision *d;
	cJSON *reply, *list;

	if (is_stopping(m, call))
		return;
	if (fr_param_u64(parameters, "max", &max) < 0) {
		fr_call_invalid_parameter(call, "max");
		return;
	}
	reply = cJSON_CreateObject();
	list = cJSON_AddArrayToObject(reply, "decisions");
	for (size_t i = 0; i < max && (d = fr_triggers_decision(m->triggers, i)); i++)
		cJSON_AddItemToArray(list, fr_decision_json(d));
	fr_call_reply(call, reply);
}

void fr_verb_watch(void *daemon, struct fr_call *call, const cJSON *parameters)
{
	struct fr_daemon *m = daemon;
	struct fr_diag d = {0};
	int r = -EINVAL;

	if (is_stopping(m, call))
		return;
	if (!fr_call_wants_more(call))
		fr_fail(&d, r, "call it with more", "Watch has more than one reply");
	else if ((r = fr_watchers_add(m, call)) == -EBUSY)
		fr_fail(&d, r, "end one of them", "%d clients are watching already", FR_WATCHERS_MAX);
	if (r < 0)
		fr_call_fail(call, &d, r);
}
