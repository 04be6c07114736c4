// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"
#include "control/interface.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>

static bool all;

/* Returns who asked for the dump, to be freed: the name of a user like "root", or "uid 1000", or "a
   trigger". */
static char *describe_owner(const cJSON *job)
{
	const cJSON *uid = ctl_get(job, "uid");
	const struct passwd *user = cJSON_IsNumber(uid) ? getpwuid((uid_t)uid->valuedouble) : NULL;

	if (user)
		return ctl_format("%s", user->pw_name);
	return cJSON_IsNumber(uid) ? ctl_format("uid %.0f", uid->valuedouble) : ctl_format("a trigger");
}

void ctl_print_waiting(const cJSON *dumps)
{
	const cJSON *job;

	cJSON_ArrayForEach (job, ctl_get(dumps, "waiting")) {
		_cleanup_free_ char *cause = ctl_describe_cause(ctl_get(job, "cause")),
				    *owner = describe_owner(job);
		const double causes = ctl_number(job, "causes"), left = ctl_number(job, "seconds");
		char more[32] = "";

		if (causes > 1)
			snprintf(more, sizeof(more), " and %.0f more", causes - 1);
		if (left > 0 && left < 1e9)
			ctl_field("", "dump %.0f of %s waits until %s, %s more: %s%s", ctl_number(job, "id"),
				owner, ctl_time(job, "until"), ctl_seconds(job, "seconds"), cause, more);
		else
			ctl_field("", "dump %.0f of %s waits for its turn: %s%s", ctl_number(job, "id"),
				owner, cause, more);
	}
}

static int make_parameters(cJSON **ret, struct fr_diag *d)
{
	static const char hint[] =
		"see `flightrecctl status` for the dumps that wait; use --all to cancel all of yours";
	cJSON *o, *ids;

	if (all == (ctl.n_args > 0))
		return fr_fail(d, -EINVAL, hint, "cancel needs numbers of dumps, or --all, but not both");
	o = cJSON_CreateObject();
	if (all)
		cJSON_AddTrueToObject(o, "all");
	ids = all ? NULL : cJSON_AddArrayToObject(o, "ids");
	for (size_t i = 0; i < ctl.n_args; i++) {
		uint64_t id;

		if (fr_u64_parse(ctl.args[i], &id) < 0 || id == 0 || id > 1ULL << 53) {
			cJSON_Delete(o);
			return fr_fail(
				d, -EINVAL, hint, "cancel: '%s' is not the number of a dump", ctl.args[i]);
		}
		cJSON_AddItemToArray(ids, cJSON_CreateNumber((double)id));
	}
	*ret = o;
	return 0;
}

static void print_ids(const cJSON *reply)
{
	const cJSON *id;

	cJSON_ArrayForEach (id, ctl_get(reply, "canceled"))
		printf("%.0f\n", cJSON_GetNumberValue(id));
}

static int run(void)
{
	struct fr_diag diag = {0};
	cJSON *parameters = NULL;

	if (make_parameters(&parameters, &diag) < 0)
		return ctl_usage(&diag);
	return ctl_call_and_print(FR_METHOD(Cancel), parameters, "", print_ids);
}

static const struct ctl_option options[] = {
	{"all", 0, NULL, "cancel each dump that you may cancel", CTL_FLAG, &all, 0, 0},
	{0},
};

CTL_VERB(cancel, CTL_DUMPS, "cancel", "[ID...]", "cancel dumps that wait, by their numbers in status",
	.most_args = SIZE_MAX, .options = options, .run = run);
