// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecctl/ctl.h"
#include "control/interface.h"

#include <stdio.h>

/* To the byte: a collector reads it. */
int ctl_cmd_metrics(const struct ctl *ctl)
{
	cJSON *reply;
	int code = ctl_call(ctl, FR_METHOD_METRICS, NULL, &reply);

	if (code != FR_EXIT_OK)
		return code;
	if (ctl->json != FR_JSON_OFF)
		ctl_print_json(ctl, reply);
	else
		fputs(ctl_string(reply, "text"), stdout);
	cJSON_Delete(reply);
	return FR_EXIT_OK;
}
