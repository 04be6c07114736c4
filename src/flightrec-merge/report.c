// SPDX-License-Identifier: GPL-2.0-or-later
#include "report.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/units.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <string.h>

void report_text(const struct fr_merge_options *o, const struct fr_merge_report *r, uint64_t took_ns)
{
	char in[FR_UNIT_SIZE], out[FR_UNIT_SIZE], took[FR_UNIT_SIZE], span[FR_UNIT_SIZE];

	printf("%s%s: %" PRIu64 " samples over %s and %" PRIu64 " other records from %zu file%s (%s) in %s",
		o->dry_run ? "would write " : "", r->output, r->samples,
		fr_duration_format(r->last_ns - r->first_ns, span), r->records - r->samples, r->n_inputs,
		r->n_inputs == 1 ? "" : "s", fr_size_format(r->bytes_in, in),
		fr_duration_format(took_ns, took));
	if (!o->dry_run)
		printf(", %s", fr_size_format(r->bytes_out, out));
	printf("\n");
	if (strncmp(r->how, "io_uring", strlen("io_uring")) != 0 && !o->dry_run)
		printf("written with %s, which is slower than io_uring\n", r->how);
	if (r->duplicates)
		printf("%" PRIu64 " records were in more than one file and are written once\n",
			r->duplicates);
	if (r->aux_bytes)
		printf("%s of AUX data\n", fr_size_format(r->aux_bytes, in));
	if (r->aux_duplicates)
		printf("%s of AUX data were in more than one file and are written once\n",
			fr_size_format(r->aux_duplicates, in));
	if (r->late)
		printf("%" PRIu64 " records are not in order, because they came too late\n", r->late);
	if (r->kept_older[0])
		printf("the older %s is now %s\n", r->output, r->kept_older);
	if (!o->dry_run && !o->keep)
		printf("%zu of %zu input files removed\n", r->n_removed, r->n_inputs + r->n_unusable);
}

static bool add_numbers(cJSON *j, const struct fr_merge_report *r, uint64_t took_ns)
{
	return FR_JSON_ADD_NUMBERS(j, {"inputs", r->n_inputs}, {"damaged", r->n_damaged},
		{"unusable", r->n_unusable}, {"removed", r->n_removed}, {"records", r->records},
		{"samples", r->samples}, {"duplicates", r->duplicates}, {"state_left_out", r->state},
		{"late", r->late}, {"first_ns", r->first_ns}, {"last_ns", r->last_ns},
		{"bytes_in", r->bytes_in}, {"bytes_out", r->bytes_out}, {"lost_bytes", r->lost_bytes},
		{"aux_bytes", r->aux_bytes}, {"aux_duplicates", r->aux_duplicates}, {"took_ns", took_ns});
}

int report_json(enum fr_json_mode mode, const struct fr_merge_options *o, const struct fr_merge_report *r,
	uint64_t took_ns, char *const *warnings, size_t n_warnings)
{
	cJSON *j = cJSON_CreateObject(), *list;
	char *text = NULL;
	bool ok = j && cJSON_AddStringToObject(j, "output", r->output) &&
		  cJSON_AddBoolToObject(j, "dry_run", o->dry_run) && add_numbers(j, r, took_ns);

	if (ok && r->kept_older[0])
		ok = cJSON_AddStringToObject(j, "kept_older", r->kept_older);
	if (ok && r->how[0])
		ok = cJSON_AddStringToObject(j, "writer", r->how);
	list = ok ? cJSON_AddArrayToObject(j, "warnings") : NULL;
	ok = list;
	for (size_t i = 0; i < n_warnings && ok; i++)
		ok = cJSON_AddItemToArray(list, cJSON_CreateString(warnings[i]));
	if (ok)
		text = mode == FR_JSON_PRETTY ? cJSON_Print(j) : cJSON_PrintUnformatted(j);
	cJSON_Delete(j);
	if (!text)
		return -ENOMEM;
	puts(text);
	free(text);
	return 0;
}
