// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/units.h"
#include "control/interface.h"

#include <errno.h>
#include <string.h>

static void add_row(const struct ctl *ctl, struct ctl_table *t, const cJSON *dump)
{
	_cleanup_free_ char *cause = ctl_dump_cause(dump);
	char time[FR_UNIT_SIZE], size[FR_UNIT_SIZE], window[FR_UNIT_SIZE];
	const char *path = ctl_string(dump, "path"), *slash = strrchr(path, '/');

	ctl_table_cell(t, "%s", ctl_dump_time(ctl, dump, time));
	ctl_table_cell(t, "%s", fr_size_format((uint64_t)ctl_number(dump, "bytes"), size));
	if (cJSON_IsNumber(ctl_get(dump, "samples")))
		ctl_table_cell(t, "%.0f", ctl_number(dump, "samples"));
	else
		ctl_table_cell(t, "-");
	ctl_table_cell(t, "%s", ctl_dump_window(dump, window));
	ctl_table_cell(t, "%s", cause ? cause : "-");
	ctl_table_cell(t, "%s", slash ? slash + 1 : path);
}

static void print_list(const struct ctl *ctl, const char *directory, const cJSON *dumps)
{
	struct ctl_table *t = ctl_table_new(ctl->utc ? "TIME (UTC)|>SIZE|>SAMPLES|>WINDOW|CAUSE|FILE"
						     : "TIME|>SIZE|>SAMPLES|>WINDOW|CAUSE|FILE");
	int merged = 0, n = cJSON_GetArraySize(dumps);
	char size[FR_UNIT_SIZE], also[64] = "";
	const cJSON *dump;
	uint64_t sum = 0;

	cJSON_ArrayForEach (dump, dumps) {
		add_row(ctl, t, dump);
		sum += (uint64_t)ctl_number(dump, "bytes");
		merged += ctl_dump_is_merged(dump);
	}
	if (merged)
		snprintf(also, sizeof(also), " and %d merged file%s", merged, merged == 1 ? "" : "s");
	ctl_table_print(t, !ctl->no_legend);
	if (!ctl->no_legend)
		printf("\n%d dump%s%s in %s, %s\n", n - merged, n - merged == 1 ? "" : "s", also, directory,
			fr_size_format(sum, size));
}

/* Where a recorder answers, what it has not written yet. */
static void print_waiting(const struct ctl *ctl)
{
	_cleanup_free_ char *socket = ctl->directory ? NULL : ctl_socket(ctl);
	struct fr_client *client;
	cJSON *reply = NULL;

	if (!socket || fr_client_connect(socket, &client, NULL) < 0)
		return;
	if (fr_client_call(client, FR_METHOD_STATUS, NULL, 5 * FR_NSEC_PER_SEC, &reply, NULL) == 0)
		ctl_print_waiting(ctl, ctl_get(reply, "status.dumps"));
	cJSON_Delete(reply);
	fr_client_free(client);
}

int ctl_cmd_list(const struct ctl *ctl)
{
	_cleanup_free_ char *directory = ctl_directory(ctl);
	struct fr_diag diag = {0};
	cJSON *dumps;
	int r = directory ? ctl_dumps_read(directory, &dumps, &diag) : -ENOMEM;

	if (r < 0)
		return ctl_fail(&diag, r);
	if (ctl->json != FR_JSON_OFF)
		ctl_print_json(ctl, dumps);
	else
		print_list(ctl, directory, dumps);
	if (ctl->json == FR_JSON_OFF && !ctl->no_legend)
		print_waiting(ctl);
	cJSON_Delete(dumps);
	return FR_EXIT_OK;
}
