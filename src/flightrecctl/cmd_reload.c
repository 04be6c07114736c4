// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"
#include "control/interface.h"

#include <stdio.h>

static void print_lines(FILE *f, const cJSON *lines)
{
	const cJSON *line;

	cJSON_ArrayForEach (line, lines) {
		_cleanup_free_ char *text = ctl_format("%s", ctl_string(line, ""));

		ctl_replace_control_characters(text);
		fprintf(f, "%s\n", text);
	}
}

int ctl_reload(void)
{
	struct fr_client *client = NULL;
	cJSON *reply, *not_armed;
	int code = ctl_call(FR_METHOD(Reload), NULL, &reply);

	if (code != FR_EXIT_OK)
		return code;
	code = ctl_connect(&client);
	not_armed = client ? ctl_not_armed(client, NULL) : NULL;
	fr_client_free(client);
	if (ctl.json != FR_JSON_OFF) {
		if (not_armed)
			cJSON_AddItemToObject(reply, "not_armed", cJSON_Duplicate(not_armed, true));
		ctl_print_json(reply);
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

CTL_VERB(reload, CTL_RECORDER, "reload", NULL, "read the configuration again", .run = ctl_reload);
