// SPDX-License-Identifier: GPL-2.0-or-later
#include "dumper/trigger_samples.h"
#include "base/cleanup.h"
#include "source/cause.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct fr_dumper_mark_texts {
	char value[FR_CAUSE_VALUE_SIZE], threshold[FR_CAUSE_VALUE_SIZE];
};

static const char *text_of(const cJSON *cause, const char *name)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(cause, name));

	return text ? text : "";
}

/* Times and values are raw JSON, as a double is too short for them. */
static uint64_t u64_of(const cJSON *cause, const char *name)
{
	const cJSON *o = cJSON_GetObjectItemCaseSensitive(cause, name);

	if (cJSON_IsRaw(o))
		return strtoull(o->valuestring, NULL, 10);
	return cJSON_IsNumber(o) && o->valuedouble > 0 && o->valuedouble < 0x1p64 ? (uint64_t)o->valuedouble
										  : 0;
}

static int int_of(const cJSON *cause, const char *name, int missing)
{
	const cJSON *o = cJSON_GetObjectItemCaseSensitive(cause, name);

	if (!cJSON_IsNumber(o) && !cJSON_IsRaw(o))
		return missing;
	return (int)FR_MIN(u64_of(cause, name), (uint64_t)INT_MAX);
}

static enum fr_unit_of_cause unit_of(const char *name)
{
	static const char *const names[] = {[FR_CAUSE_NS] = "ns",
		[FR_CAUSE_COUNT] = "count",
		[FR_CAUSE_BYTES] = "bytes",
		[FR_CAUSE_PERCENT] = "percent"};

	for (size_t i = FR_CAUSE_NS; i < FR_ARRAY_SIZE(names); i++)
		if (strcmp(name, names[i]) == 0)
			return (enum fr_unit_of_cause)i;
	return FR_CAUSE_NONE;
}

/* "12.3 ms" as one word, for whoever takes the line apart. */
static const char *format_value(
	enum fr_unit_of_cause unit, uint64_t value, char to[static FR_CAUSE_VALUE_SIZE])
{
	size_t n = 0;

	fr_cause_format_value(unit, value, to);
	for (size_t i = 0; to[i]; i++)
		if (to[i] != ' ')
			to[n++] = to[i];
	to[n] = '\0';
	return to;
}

static struct fr_trigger_sample mark_of(const cJSON *cause, struct fr_dumper_mark_texts *texts)
{
	struct fr_trigger_sample m = {
		.time_ns = u64_of(cause, "monotonic_ns"),
		.pid = int_of(cause, "pid", 0),
		.tid = int_of(cause, "tid", 0),
		.cpu = int_of(cause, "cpu", -1),
		.trigger = text_of(cause, "trigger"),
		.reason = text_of(cause, "reason"),
		.detail = text_of(cause, "detail"),
		.unit = text_of(cause, "unit"),
		.value = u64_of(cause, "value"),
		.threshold = u64_of(cause, "threshold"),
	};
	enum fr_unit_of_cause unit = unit_of(m.unit);

	/* A count, an application's or a person's cause may have the one without the other. */
	if (m.value || m.threshold)
		m.value_text = format_value(unit, m.value, texts->value);
	if (m.threshold)
		m.threshold_text = format_value(unit, m.threshold, texts->threshold);
	return m;
}

int fr_dumper_marks_of(const cJSON *meta, struct fr_dumper_marks *ret)
{
	const cJSON *causes = cJSON_GetObjectItemCaseSensitive(meta, "causes"), *cause;
	const cJSON *steps = cJSON_GetObjectItemCaseSensitive(meta, "frequency_steps");
	const int n = cJSON_GetArraySize(causes) + cJSON_GetArraySize(steps);
	struct fr_dumper_marks m = {0};

	if (n == 0)
		return 0;
	m.v = calloc((size_t)n, sizeof(*m.v));
	m.texts = calloc((size_t)n, sizeof(*m.texts));
	if (!m.v || !m.texts) {
		fr_dumper_marks_deinit(&m);
		return -ENOMEM;
	}
	cJSON_ArrayForEach (cause, causes) {
		m.v[m.n] = mark_of(cause, &m.texts[m.n]);
		m.n += m.v[m.n].time_ns != 0;
	}
	/* One that was made before the window is told by the JSON alone. */
	cJSON_ArrayForEach (cause, steps) {
		m.v[m.n] = mark_of(cause, &m.texts[m.n]);
		m.n += !cJSON_GetObjectItemCaseSensitive(cause, "before_window");
	}
	*ret = m;
	return 0;
}

void fr_dumper_marks_deinit(struct fr_dumper_marks *m)
{
	free(m->v);
	free(m->texts);
	*m = (struct fr_dumper_marks){0};
}
