/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Text in the format of OpenMetrics 1.0, which Prometheus and others scrape: families and their samples, in
 * the order of the calls.
 *
 *   family ─► sample, sample, … ─► family ─► … ─► end
 */

#include "base/buf.h"

#include <stddef.h>
#include <stdint.h>

enum fr_metric_type {
	FR_METRIC_COUNTER, /* its samples get the suffix _total; it only goes up */
	FR_METRIC_GAUGE,
	FR_METRIC_INFO, /* _info; its value is 1 */
};

struct fr_openmetrics {
	struct fr_buf text;
	const char *family;
	enum fr_metric_type type;
	int code; /* 0; -ENOMEM: nothing is added any more */
};

struct fr_label {
	const char *name, *value;
};
#define FR_LABELS_MAX 3

/* Begin a family. UNIT is the end of its NAME ("seconds", "bytes"), or NULL. HELP is a sentence. All are
   borrowed until the next family. */
void fr_openmetrics_family(struct fr_openmetrics *o, const char *name, enum fr_metric_type type,
	const char *unit, const char *help);
/* Add a sample to the family. LABELS ends with the first NULL name, or after FR_LABELS_MAX. Values are
   escaped. No two samples of a family may have the same labels. */
void fr_openmetrics_u64(
	struct fr_openmetrics *o, const struct fr_label labels[static FR_LABELS_MAX], uint64_t value);
/* The same, with NS as exact seconds. */
void fr_openmetrics_seconds(
	struct fr_openmetrics *o, const struct fr_label labels[static FR_LABELS_MAX], uint64_t ns);
/* End the text. 0 or -ENOMEM. */
int fr_openmetrics_end(struct fr_openmetrics *o);
