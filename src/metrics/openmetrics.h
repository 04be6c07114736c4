/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Writes text in the format of OpenMetrics 1.0, which Prometheus and other collectors read. A family is a
 * metric with a name, a type and a help text. A sample is one value of the family. The text has families and
 * samples in the order in which they were added.
 *
 *   family ─► sample, sample, … ─► family ─► … ─► end
 */

#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>

enum fr_metric_type {
	FR_METRIC_COUNTER, /* never decreases; the names of its samples end with _total */
	FR_METRIC_GAUGE,
	FR_METRIC_INFO, /* has the value 1; the names of its samples end with _info */
};

struct fr_openmetrics {
	struct fr_buf text;
	const char *family;
	enum fr_metric_type type;
	int code; /* 0 or -ENOMEM; after -ENOMEM nothing is added any more */
};

struct fr_metric_label {
	const char *name, *value;
};
#define FR_METRIC_LABELS_MAX 3

/* Begins a family. UNIT is the unit with which NAME ends ("seconds", "bytes"), or NULL. HELP is a sentence.
   NAME is borrowed until the next family begins. */
void fr_openmetrics_family(struct fr_openmetrics *o, const char *name, enum fr_metric_type type,
	const char *unit, const char *help);
/* Adds a sample to the family that was begun last. LABELS ends with the first NULL name, or after
   FR_METRIC_LABELS_MAX labels. The values of labels are escaped. The samples of a family must have different
   labels. */
void fr_openmetrics_u64(struct fr_openmetrics *o,
	const struct fr_metric_label labels[static FR_METRIC_LABELS_MAX], uint64_t value);
/* Does the same as fr_openmetrics_u64(), but the value is the time NS, written as seconds with nine
   decimals. */
void fr_openmetrics_seconds(struct fr_openmetrics *o,
	const struct fr_metric_label labels[static FR_METRIC_LABELS_MAX], uint64_t ns);
/* Add a family with one sample, which has no labels. UNIT may be NULL. */
void fr_openmetrics_add_counter(struct fr_openmetrics *o, const char *name, const char *help, uint64_t value);
void fr_openmetrics_add_gauge(
	struct fr_openmetrics *o, const char *name, const char *unit, const char *help, uint64_t value);
void fr_openmetrics_add_seconds(
	struct fr_openmetrics *o, const char *name, enum fr_metric_type type, const char *help, uint64_t ns);
/* Ends the text. Returns 0, or -ENOMEM if this or an earlier call found no memory. */
int fr_openmetrics_end(struct fr_openmetrics *o);
