/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Says in at most 30 lines what happened in a recording: the trigger, the findings of the rules (rules.h)
   with their evidence, what is different from the time before, and what was lost. */

#include "report/rules.h"

#include <cjson/cJSON.h>
#include <stdio.h>

struct fr_explanation {
	const struct fr_profile *profile;
	const char *path;  /* of the recording, for the commands that are proposed; NULL: none are. The caller
			      may set it. */
	const cJSON *meta; /* the sidecar of the dump; NULL: there is none */
	struct fr_facts facts;
	struct fr_findings findings;
};

/* Reads the recording of P. META is the sidecar of the dump or NULL; it and P are borrowed. INCIDENT_NS is
   the length of the incident at the end of the recording; 0: choose it. ALSO is a view that gets the samples,
   too, or NULL. Returns 0; or a negative errno, with a message in D. The caller frees RET. */
int fr_explain(struct fr_profile *p, const cJSON *meta, uint64_t incident_ns, const struct fr_view *also,
	struct fr_explanation *ret, struct fr_diag *d);
void fr_explanation_deinit(struct fr_explanation *e);

void fr_explanation_print(const struct fr_explanation *e, FILE *out);
/* Prints a line with the innermost functions of the kernel, and then those of the program. */
void fr_explanation_print_stack(const struct fr_profile *p, uint32_t stack, FILE *out);
/* Returns the same as JSON, which the caller frees by cJSON_Delete(); or NULL if there is no memory. */
cJSON *fr_explanation_json(const struct fr_explanation *e);

/* What changed most between the two parts: functions with more CPU time. */
struct fr_change {
	uint32_t frame;
	double before, incident; /* shares of one CPU */
};
#define FR_CHANGES_MAX 3
/* Returns the number of changes that are larger than chance explains, the largest first. */
size_t fr_explanation_changes(const struct fr_explanation *e, struct fr_change ret[static FR_CHANGES_MAX]);
