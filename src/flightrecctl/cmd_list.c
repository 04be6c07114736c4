// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void add_row(struct fr_table *t, const cJSON *dump)
{
	_cleanup_free_ char *cause = ctl_dump_cause(dump);

	fr_table_texts(t, ctl_dump_time(dump), ctl_size(dump, "bytes"), NULL);
	if (cJSON_IsNumber(ctl_get(dump, "samples")))
		fr_table_cell(t, "%.0f", ctl_number(dump, "samples"));
	else
		fr_table_cell(t, "-");
	fr_table_texts(t, ctl_dump_window(dump), cause, basename(ctl_string(dump, "path")), NULL);
}

static void print_summary(const char *directory, int dumps, int merged, uint64_t bytes)
{
	char size[FR_UNIT_SIZE], also[64] = "";

	if (merged)
		snprintf(also, sizeof(also), " and %d merged file%s", merged, merged == 1 ? "" : "s");
	printf("\n%d dump%s%s in %s, %s\n", dumps, dumps == 1 ? "" : "s", also, directory,
		fr_size_format(bytes, size));
}

static void print_list(const char *directory, const cJSON *dumps)
{
	struct fr_table *t = fr_table_new(ctl.utc ? "TIME (UTC)|>SIZE|>SAMPLES|>WINDOW|CAUSE|FILE"
						  : "TIME|>SIZE|>SAMPLES|>WINDOW|CAUSE|FILE");
	const cJSON *dump;
	uint64_t bytes = 0;
	int merged = 0;
	cJSON *status;

	cJSON_ArrayForEach (dump, dumps) {
		add_row(t, dump);
		bytes += (uint64_t)ctl_number(dump, "bytes");
		merged += ctl_dump_is_merged(dump);
	}
	ctl_table_print(t, !ctl.no_legend);
	if (ctl.no_legend)
		return;
	print_summary(directory, cJSON_GetArraySize(dumps) - merged, merged, bytes);
	status = ctl.directory ? NULL : ctl_status();
	ctl_print_waiting(ctl_get(status, "dumps"));
	cJSON_Delete(status);
}

static int run(void)
{
	_cleanup_free_ char *directory = ctl_directory();
	struct fr_diag diag = {0};
	cJSON *dumps;
	int r = directory ? ctl_dumps_read(directory, &dumps, &diag) : -ENOMEM;

	if (r < 0)
		return ctl_fail(&diag, r);
	if (ctl.json != FR_JSON_OFF)
		ctl_print_json(dumps);
	else
		print_list(directory, dumps);
	cJSON_Delete(dumps);
	return FR_EXIT_OK;
}

CTL_VERB(list, CTL_DUMPS, "list", NULL, "the dumps and merged files: time, size, samples, window, cause",
	.pages = true, .run = run);
