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
	struct fr_client *client = NULL;
	cJSON *reply, *not_armed;
	int code = ctl_call(ctl, FR_METHOD_RELOAD, NULL, &reply);

	if (code != FR_EXIT_OK)
		return code;
	code = ctl_connect(ctl, &client);
	not_armed = client ? ctl_not_armed(client, NULL) : NULL;
	fr_client_free(client);
	if (ctl->json != FR_JSON_OFF) {
		if (not_armed)
			cJSON_AddItemToObject(reply, "not_armed", cJSON_Duplicate(not_armed, true));
		ctl_print_json(ctl, reply);
	} else {
		print_lines(stdout, ctl_get(reply, "changed"));
		print_lines(stderr, ctl_get(reply, "waiting"));
	}
	if (code == FR_EXIT_OK)
		code = ctl_warn_not_armed(not_armed);
	cJSON_Delete(not_armed);
	cJSON_Delete(reply);
	return code;
}
