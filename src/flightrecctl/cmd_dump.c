// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecctl/ctl.h"
#include "base/clock.h"
#include "control/interface.h"

#include <stdio.h>
#include <string.h>

static cJSON *parameters(const struct ctl *ctl)
{
	const uint64_t from_usec = ctl->from_ns / FR_NSEC_PER_USEC, to_usec = ctl->to_ns / FR_NSEC_PER_USEC;
	cJSON *o = cJSON_CreateObject();

	if (ctl->last_ns)
		cJSON_AddNumberToObject(o, "last_ns", (double)ctl->last_ns);
	if (ctl->from_ns)
		cJSON_AddNumberToObject(o, "from_usec", (double)from_usec);
	if (ctl->to_ns)
		cJSON_AddNumberToObject(o, "to_usec", (double)to_usec);
	if (ctl->post_ns != UINT64_MAX)
		cJSON_AddNumberToObject(o, "post_ns", (double)ctl->post_ns);
	if (ctl->reason)
		cJSON_AddStringToObject(o, "reason", ctl->reason);
	if (ctl->no_wait)
		cJSON_AddFalseToObject(o, "wait");
	if (ctl->no_compression)
		cJSON_AddTrueToObject(o, "no_compression");
	return o;
}

/* The path alone, so that $(flightrecctl dump) is one. */
static void print(const struct ctl *ctl, const cJSON *reply)
{
	const char *path = ctl->output ? ctl->output : ctl_string(reply, "path");

	if (ctl->output && !strcmp(ctl->output, "-"))
		return;
	if (ctl->json != FR_JSON_OFF)
		ctl_print_json(ctl, reply);
	else if (*path)
		puts(path);
	else
		printf("%.0f\n", ctl_number(reply, "id"));
}

static void warn_of_power_cut(const cJSON *reply)
{
	if (*ctl_string(reply, "not_durable"))
		fprintf(stderr,
			"flightrecctl: the dump is not durable: its directory could not be synced: %s\n"
			"  It is whole, but a power cut may take it away: copy it elsewhere.\n",
			ctl_string(reply, "not_durable"));
}

int ctl_cmd_dump(const struct ctl *ctl)
{
	struct fr_diag diag = {0};
	cJSON *reply;
	int code, r = ctl->output ? ctl_copy_check(ctl->output, &diag) : 0;

	if (r < 0)
		return ctl_fail(&diag, r);
	code = ctl_call(ctl, FR_METHOD_DUMP, parameters(ctl), &reply);
	if (code != FR_EXIT_OK)
		return code;
	if (ctl->output)
		r = ctl_copy(ctl_string(reply, "path"), ctl->output, &diag);
	if (ctl->output && r == 0)
		cJSON_AddStringToObject(reply, "copy", ctl->output);
	if (r == 0)
		print(ctl, reply);
	warn_of_power_cut(reply);
	cJSON_Delete(reply);
	return r < 0 ? ctl_fail(&diag, r) : FR_EXIT_OK;
}
