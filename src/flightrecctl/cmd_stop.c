// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecctl/ctl.h"
#include "control/interface.h"

int ctl_cmd_stop(const struct ctl *ctl)
{
	cJSON *parameters = cJSON_CreateObject();

	cJSON_AddBoolToObject(parameters, "merge", ctl->merge);
	return ctl_call(ctl, FR_METHOD_STOP, parameters, NULL);
}
