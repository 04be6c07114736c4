// SPDX-License-Identifier: GPL-2.0-or-later
/* Dumps that wait: what they are, and taking them back. */
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "control/interface.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

/* "root", "1000", or "a trigger" */
static void asker(const cJSON *job, char *ret, size_t size)
{
	const cJSON *uid = ctl_get(job, "uid");
	const struct passwd *user = cJSON_IsNumber(uid) ? getpwuid((uid_t)uid->valuedouble) : NULL;

	if (user)
		snprintf(ret, size, "%s", user->pw_name);
	else if (cJSON_IsNumber(uid))
		snprintf(ret, size, "uid %.0f", uid->valuedouble);
	else
		snprintf(ret, size, "a trigger");
}

void ctl_print_waiting(const struct ctl *ctl, const cJSON *dumps)
{
	const cJSON *job;

	cJSON_ArrayForEach (job, ctl_get(dumps, "waiting")) {
		_cleanup_free_ char *what = ctl_cause_what(ctl_get(job, "cause"));
		const double causes = ctl_number(job, "causes"), left = ctl_number(job, "seconds");
		char until[FR_UNIT_SIZE], span[FR_UNIT_SIZE], who[64], more[32] = "";

		asker(job, who, sizeof(who));
		if (causes > 1)
			snprintf(more, sizeof(more), " and %.0f more", causes - 1);
		if (left > 0 && left < 1e9)
			ctl_field("", "dump %.0f of %s waits until %s, %s more: %s%s", ctl_number(job, "id"),
				who, ctl_time(ctl, ctl_string(job, "until"), false, until),
				fr_duration_format((uint64_t)(left * 1e9), span), what ? what : "-", more);
		else
			ctl_field("", "dump %.0f of %s waits for its turn: %s%s", ctl_number(job, "id"), who,
				what ? what : "-", more);
	}
}

static int parameters(const struct ctl *ctl, cJSON **ret, struct fr_diag *d)
{
	static const char hint[] = "`flightrecctl status` lists what waits; --all takes back all of yours";
	cJSON *o, *ids;

	if (ctl->all == (ctl->n_args > 0))
		return fr_fail(d, -EINVAL, hint, "cancel: %s",
			ctl->all ? "give numbers or --all, not both" : "which?");
	o = cJSON_CreateObject();
	if (ctl->all)
		cJSON_AddTrueToObject(o, "all");
	ids = ctl->all ? NULL : cJSON_AddArrayToObject(o, "ids");
	for (size_t i = 0; i < ctl->n_args; i++) {
		uint64_t id;

		if (fr_u64_parse(ctl->args[i], &id) < 0 || id == 0 || id > 1ULL << 53) {
			cJSON_Delete(o);
			return fr_fail(d, -EINVAL, hint, "cancel: no number of a dump: '%s'", ctl->args[i]);
		}
		cJSON_AddItemToArray(ids, cJSON_CreateNumber((double)id));
	}
	*ret = o;
	return 0;
}

int ctl_cmd_cancel(const struct ctl *ctl)
{
	struct fr_diag diag = {0};
	cJSON *o = NULL, *reply;
	const cJSON *id;
	int code = parameters(ctl, &o, &diag);

	if (code < 0) {
		ctl_fail(&diag, code);
		return FR_EXIT_USAGE;
	}
	code = ctl_call(ctl, FR_METHOD_CANCEL, o, &reply);
	if (code != FR_EXIT_OK)
		return code;
	if (ctl->json != FR_JSON_OFF)
		ctl_print_json(ctl, reply);
	else
		cJSON_ArrayForEach (id, ctl_get(reply, "canceled"))
			printf("%.0f\n", cJSON_GetNumberValue(id));
	cJSON_Delete(reply);
	return FR_EXIT_OK;
}
