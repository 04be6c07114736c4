// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecctl/ctl.h"
#include "control/interface.h"

#include <stdio.h>

static void print_lines(FILE *f, const cJSON *lines)
{
	const cJSON *line;

	cJSON_ArrayForEach (line, lines) {
		char text[512];

		snprintf(text, sizeof(text), "%s", cJSON_IsString(line) ? line->valuestring : "");
		ctl_clean(text);
		fprintf(f, "%s\n", text);
	}
}

int ctl_cmd_reload(const struct ctl *ctl)
{
	cJSON *reply;
	int code = ctl_call(ctl, FR_METHOD_RELOAD, NULL, &reply);

	if (code != FR_EXIT_OK)
		return code;
	if (ctl->json != FR_JSON_OFF)
		ctl_print_json(ctl, reply);
	else
		print_lines(stdout, ctl_get(reply, "changed"));
	if (ctl->json == FR_JSON_OFF)
		print_lines(stderr, ctl_get(reply, "waiting"));
	cJSON_Delete(reply);
	return FR_EXIT_OK;
}
