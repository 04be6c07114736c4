// SPDX-License-Identifier: GPL-2.0-or-later
/* The methods of the control socket that are about triggers. */
#include "base/cleanup.h"
#include "base/units.h"
#include "control/interface.h"
#include "flightrecd/triggers.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define WATCHERS_MAX 16
/* Who has not read so much is told later how many he missed. */
#define WATCHER_BACKLOG (32u << 10)
/* Less than a reply may have: a decision is at most a few KiB. */
#define DECISIONS_MAX FR_DECISIONS_REMEMBERED

struct fr_watchers {
	struct {
		struct fr_call *call; /* NULL: free */
		uint64_t skipped;
	} v[WATCHERS_MAX];
};

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
	add_u64(o, "joined", counts[FR_VERDICT_COALESCE]);
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
	cJSON_AddStringToObject(o, "unit", fr_unit_of_cause_name(i->stats.unit));
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

	fr_triggers_get_info(m->triggers, index, &i);
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

static cJSON *decision_json(const struct fr_decision *d)
{
	const struct fr_clock_pair pair = fr_clock_pair_now();
	const uint64_t now_ns = pair.monotonic_ns;
	cJSON *o = cJSON_CreateObject();
	char text[FR_STAMP_SIZE];

	add_u64(o, "id", d->id);
	fr_rfc3339_format(fr_clock_to_realtime(&pair, d->at_ns), text);
	cJSON_AddStringToObject(o, "time", text);
	add_u64(o, "monotonic_ns", d->at_ns);
	add_u64(o, "age_ns", now_ns > d->at_ns ? now_ns - d->at_ns : 0);
	cJSON_AddStringToObject(o, "trigger", d->cause.trigger);
	cJSON_AddStringToObject(o, "verdict", fr_verdict_name(d->verdict));
	cJSON_AddStringToObject(o, "why", d->why);
	if (d->dump_id)
		add_u64(o, "dump_id", d->dump_id);
	if (d->file[0])
		cJSON_AddStringToObject(o, "file", d->file);
	add_u64(o, "repeats", d->repeats);
	add_u64(o, "last_age_ns", now_ns > d->last_ns ? now_ns - d->last_ns : 0);
	cJSON_AddItemToObject(o, "cause", fr_cause_json(&d->cause, (uid_t)-1));
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
	p = fr_triggers_get_policy(m->triggers);
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
	for (size_t i = 0; i < max && (d = fr_triggers_get_decision(m->triggers, i)); i++)
		cJSON_AddItemToArray(list, decision_json(d));
	fr_call_reply(call, reply);
}

/* Those whose client has gone make room. */
static void sweep(struct fr_watchers *w)
{
	for (size_t i = 0; i < WATCHERS_MAX; i++)
		if (w->v[i].call && fr_call_gone(w->v[i].call))
			fr_call_reply(TAKE_PTR(w->v[i].call), NULL);
}

static int add_watcher(struct fr_daemon *m, struct fr_call *call)
{
	if (!m->watchers)
		m->watchers = calloc(1, sizeof(*m->watchers));
	if (!m->watchers)
		return -ENOMEM;
	sweep(m->watchers);
	for (size_t i = 0; i < WATCHERS_MAX; i++)
		if (!m->watchers->v[i].call) {
			m->watchers->v[i].call = call;
			m->watchers->v[i].skipped = 0;
			return 0;
		}
	return -EBUSY;
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
	else if ((r = add_watcher(m, call)) == -EBUSY)
		fr_fail(&d, r, "end one of them", "%d clients are watching already", WATCHERS_MAX);
	if (r < 0)
		fr_call_fail(call, &d, r);
}

void fr_watchers_tell(struct fr_daemon *m, const struct fr_decision *decision)
{
	if (!m->watchers)
		return;
	sweep(m->watchers);
	for (size_t i = 0; i < WATCHERS_MAX; i++) {
		struct fr_call *call = m->watchers->v[i].call;
		cJSON *reply;

		if (!call)
			continue;
		if (fr_call_backlog(call) > WATCHER_BACKLOG) {
			m->watchers->v[i].skipped++;
			continue;
		}
		reply = cJSON_CreateObject();
		cJSON_AddItemToObject(reply, "decision", decision_json(decision));
		add_u64(reply, "skipped", m->watchers->v[i].skipped);
		m->watchers->v[i].skipped = 0;
		fr_call_reply_more(call, reply);
	}
}

void fr_watchers_free(struct fr_daemon *m)
{
	for (size_t i = 0; m->watchers && i < WATCHERS_MAX; i++)
		if (m->watchers->v[i].call)
			fr_call_reply(m->watchers->v[i].call, NULL);
	free(TAKE_PTR(m->watchers));
}
