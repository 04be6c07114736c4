// SPDX-License-Identifier: GPL-2.0-or-later
/* What made a dump, or might have, in words: the cause of a decision and of a dump's JSON. */
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"
#include "source/cause.h"

#include <stdio.h>
#include <string.h>

const char *ctl_value(const cJSON *json, const char *path, const char *unit, char *ret)
{
	static const char *const units[] = {
		[FR_CAUSE_NONE] = "",
		[FR_CAUSE_NS] = "ns",
		[FR_CAUSE_COUNT] = "count",
		[FR_CAUSE_BYTES] = "bytes",
		[FR_CAUSE_PERCENT] = "percent",
	};
	const cJSON *item = ctl_get(json, path);
	enum fr_unit_of_cause u = FR_CAUSE_NONE;

	if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble < 0x1p63))
		return "-";
	for (size_t i = 0; i < FR_ARRAY_SIZE(units); i++)
		if (!strcmp(unit, units[i]))
			u = (enum fr_unit_of_cause)i;
	fr_cause_format_value(u, (uint64_t)item->valuedouble, ret);
	return ret;
}

char *ctl_cause_what(const cJSON *cause)
{
	const char *reason = ctl_string(cause, "reason"), *detail = ctl_string(cause, "detail"),
		   *unit = ctl_string(cause, "unit");
	char value[FR_CAUSE_VALUE_SIZE], threshold[FR_CAUSE_VALUE_SIZE];
	const bool measured = ctl_get(cause, "value") != NULL,
		   compared = measured && ctl_get(cause, "threshold") != NULL;
	char *ret;

	if (asprintf(&ret, "%s%s%s%s%s%s%s%s", reason, *detail ? " (" : "", detail, *detail ? ")" : "",
		    measured ? ": " : "", measured ? ctl_value(cause, "value", unit, value) : "",
		    compared ? " ≥ " : "",
		    compared ? ctl_value(cause, "threshold", unit, threshold) : "") < 0)
		return NULL;
	return ret;
}

char *ctl_cause_who(const cJSON *cause)
{
	const char *comm = ctl_string(cause, "comm");
	const double pid = ctl_number(cause, "pid");
	char *ret;

	if (pid <= 0)
		return strdup(*comm ? comm : "-");
	return asprintf(&ret, "%s[%.0f]", comm, pid) < 0 ? NULL : ret;
}

char *ctl_suppressed(const cJSON *reasons)
{
	const cJSON *reason;
	char *text = NULL;
	double sum = 0;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	bool first = true;

	if (!f)
		return NULL;
	cJSON_ArrayForEach (reason, reasons)
		sum += cJSON_IsNumber(reason) ? reason->valuedouble : 0;
	fprintf(f, "%.0f", sum);
	cJSON_ArrayForEach (reason, reasons) {
		if (!cJSON_IsNumber(reason) || reason->valuedouble <= 0)
			continue;
		fprintf(f, "%s%.0f %s", first ? ": " : ", ", reason->valuedouble, reason->string);
		first = false;
	}
	fclose(f);
	return text;
}
