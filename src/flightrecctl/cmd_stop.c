// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecctl/ctl.h"
#include "control/interface.h"

static bool merge;

static int run(void)
{
	cJSON *parameters = cJSON_CreateObject();

	cJSON_AddBoolToObject(parameters, "merge", merge);
	return ctl_call(FR_METHOD(Stop), parameters, NULL);
}

static const struct ctl_option options[] = {
	{"merge", 0, NULL, "merge all files to one perf.data", CTL_FLAG, &merge, 0, 0},
	{0},
};

CTL_VERB(stop, CTL_RECORDER, "stop", NULL, "end the recorder", .options = options, .run = run);
