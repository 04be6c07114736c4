// SPDX-License-Identifier: GPL-2.0-or-later
/* Describes causes, counts of decisions, and losses. */
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"
#include "base/loss.h"
#include "source/cause.h"
#include "unwind/results.h"

#include <string.h>

char *ctl_value(const cJSON *json, const char *path, const char *unit)
{
	char text[FR_CAUSE_VALUE_SIZE] = "-";

	if (ctl_is_countable(json, path))
		fr_cause_format_value(fr_cause_unit_parse(unit), (uint64_t)ctl_number(json, path), text);
	return ctl_format("%s", text);
}

char *ctl_describe_cause(const cJSON *cause)
{
	const char *detail = ctl_string(cause, "detail"), *unit = ctl_string(cause, "unit");
	_cleanup_free_ char *value = ctl_value(cause, "value", unit),
			    *threshold = ctl_value(cause, "threshold", unit);
	const bool measured = ctl_get(cause, "value") != NULL,
		   compared = measured && ctl_get(cause, "threshold") != NULL;

	return ctl_format("%s%s%s%s%s%s%s%s", ctl_string(cause, "reason"), *detail ? " (" : "", detail,
		*detail ? ")" : "", measured ? ": " : "", measured ? value : "", compared ? " ≥ " : "",
		compared ? threshold : "");
}

char *ctl_describe_process(const cJSON *cause)
{
	const char *comm = ctl_string(cause, "comm");
	const double pid = ctl_number(cause, "pid");

	if (pid > 0)
		return ctl_format("%s[%.0f]", comm, pid);
	return ctl_format("%s", *comm ? comm : "-");
}

char *ctl_describe_suppressed(const cJSON *reasons)
{
	_cleanup_free_ char *list = ctl_format("%s", "");
	const cJSON *reason;
	double sum = 0;

	cJSON_ArrayForEach (reason, reasons) {
		char *longer;

		if (!cJSON_IsNumber(reason))
			continue;
		sum += reason->valuedouble;
		if (reason->valuedouble <= 0)
			continue;
		longer = ctl_format(
			"%s%s%.0f %s", list, *list ? ", " : ": ", reason->valuedouble, reason->string);
		free(list);
		list = longer;
	}
	return ctl_format("%.0f%s", sum, list);
}

const char *ctl_explain_loss(const char *name)
{
	for (int i = 0; i < _FR_LOSS_MAX; i++)
		if (!strcmp(name, fr_loss_name(i)))
			return fr_loss_explain(i);
	return "";
}

const char *ctl_explain_walk(const char *name)
{
	for (int i = 0; i < _FR_UNWIND_RESULTS; i++)
		if (!strcmp(name, fr_unwind_result_name(i)))
			return fr_unwind_result_explain(i);
	return "";
}
