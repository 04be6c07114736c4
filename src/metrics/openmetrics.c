// SPDX-License-Identifier: GPL-2.0-or-later
#include "metrics/openmetrics.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void put(struct fr_openmetrics *o, const char *text, size_t len)
{
	if (o->code == 0)
		o->code = fr_buf_append(&o->text, text, len);
}

static void put_text(struct fr_openmetrics *o, const char *text)
{
	put(o, text, strlen(text));
}

/* Appends TEXT. Escapes the characters that would end a line or a quoted value. */
static void put_escaped(struct fr_openmetrics *o, const char *text)
{
	while (*text) {
		const size_t n = strcspn(text, "\\\"\n");

		put(o, text, n);
		text += n;
		if (*text)
			put_text(o, *text == '\n' ? "\\n" : *text == '"' ? "\\\"" : "\\\\");
		text += *text != '\0';
	}
}

static void put_comment(struct fr_openmetrics *o, const char *what, const char *text)
{
	put_text(o, "# ");
	put_text(o, what);
	put_text(o, " ");
	put_text(o, o->family);
	put_text(o, " ");
	put_escaped(o, text);
	put_text(o, "\n");
}

void fr_openmetrics_family(struct fr_openmetrics *o, const char *name, enum fr_metric_type type,
	const char *unit, const char *help)
{
	static const char *const types[] = {
		[FR_METRIC_COUNTER] = "counter", [FR_METRIC_GAUGE] = "gauge", [FR_METRIC_INFO] = "info"};

	o->family = name;
	o->type = type;
	put_comment(o, "TYPE", types[type]);
	if (unit)
		put_comment(o, "UNIT", unit);
	put_comment(o, "HELP", help);
}

/* Appends the name and the labels of a sample: everything before its value. */
static void put_name(
	struct fr_openmetrics *o, const struct fr_metric_label labels[static FR_METRIC_LABELS_MAX])
{
	static const char *const suffixes[] = {
		[FR_METRIC_COUNTER] = "_total", [FR_METRIC_GAUGE] = "", [FR_METRIC_INFO] = "_info"};

	put_text(o, o->family);
	put_text(o, suffixes[o->type]);
	for (size_t i = 0; i < FR_METRIC_LABELS_MAX && labels[i].name; i++) {
		put_text(o, i == 0 ? "{" : ",");
		put_text(o, labels[i].name);
		put_text(o, "=\"");
		put_escaped(o, labels[i].value);
		put_text(o, "\"");
	}
	put_text(o, labels[0].name ? "} " : " ");
}

void fr_openmetrics_u64(struct fr_openmetrics *o,
	const struct fr_metric_label labels[static FR_METRIC_LABELS_MAX], uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64 "\n", value);
	put_name(o, labels);
	put_text(o, text);
}

void fr_openmetrics_seconds(struct fr_openmetrics *o,
	const struct fr_metric_label labels[static FR_METRIC_LABELS_MAX], uint64_t ns)
{
	char text[40];

	snprintf(text, sizeof(text), "%" PRIu64 ".%09" PRIu64 "\n", (uint64_t)(ns / FR_NSEC_PER_SEC),
		(uint64_t)(ns % FR_NSEC_PER_SEC));
	put_name(o, labels);
	put_text(o, text);
}

static const struct fr_metric_label no_labels[FR_METRIC_LABELS_MAX];

void fr_openmetrics_add_counter(struct fr_openmetrics *o, const char *name, const char *help, uint64_t value)
{
	fr_openmetrics_family(o, name, FR_METRIC_COUNTER, NULL, help);
	fr_openmetrics_u64(o, no_labels, value);
}

void fr_openmetrics_add_gauge(
	struct fr_openmetrics *o, const char *name, const char *unit, const char *help, uint64_t value)
{
	fr_openmetrics_family(o, name, FR_METRIC_GAUGE, unit, help);
	fr_openmetrics_u64(o, no_labels, value);
}

void fr_openmetrics_add_seconds(
	struct fr_openmetrics *o, const char *name, enum fr_metric_type type, const char *help, uint64_t ns)
{
	fr_openmetrics_family(o, name, type, "seconds", help);
	fr_openmetrics_seconds(o, no_labels, ns);
}

int fr_openmetrics_end(struct fr_openmetrics *o)
{
	put_text(o, "# EOF\n");
	return o->code;
}
