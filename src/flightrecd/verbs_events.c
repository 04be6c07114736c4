// SPDX-License-Identifier: GPL-2.0-or-later
/* The method of the control socket that switches events. */
#include "base/cleanup.h"
#include "control/interface.h"
#include "flightrecd/switches.h"
#include "flightrecd/verbs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int parse_action(const char *name, enum fr_switch_action *ret)
{
	static const char *const names[] = {
		[FR_SWITCH_ON] = "on",
		[FR_SWITCH_OFF] = "off",
		[FR_SWITCH_RATE] = "rate",
		[FR_SWITCH_RAISE] = "raise",
		[FR_SWITCH_RESET] = "reset",
	};

	for (unsigned i = 0; i < FR_ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i])) {
			*ret = i;
			return 0;
		}
	return -EINVAL;
}

static int parse(const cJSON *parameters, struct fr_switch_request *q, struct fr_diag *d)
{
	const char *action = "";

	(void)fr_param_string(parameters, "event", &q->event);
	(void)fr_param_string(parameters, "action", &action);
	(void)fr_param_string(parameters, "reason", &q->why);
	(void)fr_param_u64(parameters, "rate", &q->rate);
	(void)fr_param_u64(parameters, "for_ns", &q->for_ns);
	if (parse_action(action, &q->action) < 0)
		return fr_fail(d, -EINVAL, "the actions are on, off, rate, raise and reset",
			"\"%s\" is not an action for an event", action);
	if (q->action == FR_SWITCH_RATE && !q->rate)
		return fr_fail(d, -EINVAL, "give a rate above 0", "the action rate needs a rate");
	return 0;
}

static void verb_switch_event(void *daemon, struct fr_call *call, const cJSON *parameters)
{
	const struct fr_peer *peer = fr_call_peer(call);
	struct fr_switch_request q = {.cpu = -1, .pid = peer->pid};
	struct fr_daemon *m = daemon;
	struct fr_diag d = {0};
	cJSON *reply = cJSON_CreateObject(), *changed = cJSON_AddArrayToObject(reply, "changed");
	char by[64];
	int r = parse(parameters, &q, &d);

	snprintf(by, sizeof(by), "pid %d (%s) of uid %u", (int)peer->pid, peer->comm, (unsigned)peer->uid);
	q.by = by;
	if (r == 0)
		r = fr_daemon_switch_event(m, &q, changed, &d);
	if (r < 0) {
		cJSON_Delete(reply);
		fr_call_fail(call, &d, r);
		return;
	}
	fr_call_reply(call, reply);
}

const struct fr_method fr_verbs_of_events[] = {
	{FR_METHOD(SwitchEvent), FR_ACCESS_ROOT, verb_switch_event,
		FR_PARAMETERS({"event", cJSON_IsString, true}, {"action", cJSON_IsString, true},
			{"rate", fr_param_is_u64, false}, {"for_ns", fr_param_is_u64, false},
			{"reason", cJSON_IsString, false})},
	{.name = NULL},
};
