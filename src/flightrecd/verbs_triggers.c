// SPDX-License-Identifier: GPL-2.0-or-later
/* The methods of the control socket that are about triggers. */
#include "base/log.h"
#include "base/json.h"
#include "control/interface.h"
#include "flightrecd/verbs.h"
#include "reporting/trigger_json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The largest number of decisions in a reply. A decision says whether an anomaly made a dump, and why. This
   number of decisions fits into FR_WIRE_MAX_REPLY, because each decision takes a few KiB at most. */
#define DECISIONS_MAX FR_DECISIONS_REMEMBERED

/* Returns whether the daemon is stopping, and has no triggers any more. If the function returns true, it has
   answered CALL. */
static bool is_stopping(const struct fr_daemon *m, struct fr_call *call)
{
	struct fr_diag d = {0};

	if (m->triggers)
		return false;
	fr_fail(&d, -ESHUTDOWN, "ask again when flightrecd runs again", "flightrecd is stopping");
	fr_call_fail(call, &d, d.code);
	return true;
}

static void verb_triggers(void *daemon, struct fr_call *call, const cJSON *parameters)
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
	for (size_t i = 0; i < fr_triggers_count(m->triggers); i++) {
		struct fr_trigger_info info;

		fr_triggers_get_info(m->triggers, i, &info);
		cJSON_AddItemToArray(list, fr_trigger_json(&info, m->config, now_ns));
	}
	p = fr_triggers_get_policy(m->triggers);
	token_ns = fr_policy_next_token_ns(&p, now_ns);
	cJSON_AddNumberToObject(reply, "tokens", fr_policy_tokens(&p, now_ns));
	cJSON_AddNumberToObject(reply, "burst", p.interval_ns ? p.burst : 0);
	fr_json_add_u64(reply, "interval_ns", p.interval_ns);
	fr_json_add_u64(reply, "next_token_ns", token_ns ? token_ns - now_ns : 0);
	fr_call_reply(call, reply);
}

/* Returns whether the trigger NAME switches events or asks the fleet. */
static bool does_more_than_dump(const struct fr_daemon *m, const char *name)
{
	char fleet[FR_TRIGGER_FLEET_SIZE];
	struct fr_trigger_info info;

	for (size_t i = 0; i < fr_triggers_count(m->triggers); i++) {
		fr_triggers_get_info(m->triggers, i, &info);
		if (!strcmp(info.name, name))
			return fr_trigger_config_switches(info.config) ||
			       fr_trigger_config_fleet(info.config, fleet);
	}
	return false;
}

/* Members of the group may test a trigger, because a test only makes a dump. But to switch an event takes
   something away from others, and to ask the fleet makes dumps on other machines. */
static int check_tester(
	const struct fr_daemon *m, const struct fr_peer *peer, const char *name, struct fr_diag *d)
{
	if (peer->uid == 0 || peer->uid == geteuid() || !does_more_than_dump(m, name))
		return 0;
	return fr_fail(d, -EPERM, "ask root",
		"the trigger %s switches events or asks the fleet (Action=), so only root may test it", name);
}

static void verb_test_trigger(void *daemon, struct fr_call *call, const cJSON *parameters)
{
	const struct fr_peer *peer = fr_call_peer(call);
	struct fr_daemon *m = daemon;
	struct fr_diag d = {0};
	const char *name = NULL;
	uint64_t id = 0;
	char by[64];
	cJSON *reply;
	int r;

	if (is_stopping(m, call))
		return;
	(void)fr_param_string(parameters, "name", &name);
	snprintf(by, sizeof(by), "pid %d (%s)", (int)peer->pid, peer->comm);
	r = check_tester(m, peer, name, &d);
	m->tester = peer->uid;
	if (r == 0)
		r = fr_triggers_test(m->triggers, name, by, &id, &d);
	m->tester = FR_UID_MACHINE;
	if (r < 0) {
		fr_call_fail(call, &d, r);
		return;
	}
	reply = cJSON_CreateObject();
	fr_json_add_u64(reply, "id", id);
	fr_call_reply(call, reply);
}

static void verb_set_trigger(void *daemon, struct fr_call *call, const cJSON *parameters)
{
	struct fr_daemon *m = daemon;
	struct fr_diag d = {0};
	bool enabled = false;
	const char *name = NULL;
	int r;

	if (is_stopping(m, call))
		return;
	(void)fr_param_string(parameters, "name", &name);
	(void)fr_param_bool(parameters, "enabled", &enabled);
	r = fr_triggers_enable(m->triggers, name, enabled, &d);
	if (r < 0) {
		fr_call_fail(call, &d, r);
		return;
	}
	fr_log(LOG_INFO, "trigger %s was %s by pid %d (%s)", name, enabled ? "enabled" : "disabled",
		(int)fr_call_peer(call)->pid, fr_call_peer(call)->comm);
	fr_call_reply(call, NULL);
}

static void verb_decisions(void *daemon, struct fr_call *call, const cJSON *parameters)
{
	struct fr_daemon *m = daemon;
	uint64_t max = DECISIONS_MAX;
	const struct fr_decision *d;
	cJSON *reply, *list;

	if (is_stopping(m, call))
		return;
	(void)fr_param_u64(parameters, "max", &max);
	reply = cJSON_CreateObject();
	list = cJSON_AddArrayToObject(reply, "decisions");
	for (size_t i = 0; i < max && (d = fr_triggers_get_decision(m->triggers, i)); i++)
		cJSON_AddItemToArray(list, fr_decision_json(d));
	fr_call_reply(call, reply);
}

static void verb_watch(void *daemon, struct fr_call *call, const cJSON *parameters)
{
	struct fr_daemon *m = daemon;
	struct fr_diag d = {0};
	int r = -EINVAL;

	if (is_stopping(m, call))
		return;
	if (!fr_call_wants_more(call))
		fr_fail(&d, r, "call it with more", "Watch has more than one reply");
	else if ((r = fr_subscribers_add(&m->watchers, call)) == -EBUSY)
		fr_fail(&d, r, "end one of these clients", "%d clients are watching already",
			FR_SUBSCRIBERS_MAX);
	if (r < 0)
		fr_call_fail(call, &d, r);
}

const struct fr_method fr_verbs_of_triggers[] = {
	{FR_METHOD(Triggers), FR_ACCESS_GROUP, verb_triggers, FR_PARAMETERS({0})},
	{FR_METHOD(TestTrigger), FR_ACCESS_GROUP, verb_test_trigger,
		FR_PARAMETERS({"name", cJSON_IsString, true})},
	{FR_METHOD(SetTrigger), FR_ACCESS_ROOT, verb_set_trigger,
		FR_PARAMETERS({"name", cJSON_IsString, true}, {"enabled", cJSON_IsBool, true})},
	{FR_METHOD(Decisions), FR_ACCESS_GROUP, verb_decisions,
		FR_PARAMETERS({"max", fr_param_is_u64, false})},
	{FR_METHOD(Watch), FR_ACCESS_GROUP, verb_watch, FR_PARAMETERS({0})},
	{.name = NULL},
};
