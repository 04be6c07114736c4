// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/explain.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <math.h>

#define CHANGE_MIN 0.05 /* of one CPU */
#define CHANGE_SIGMA 4	/* so many times the standard deviation of the number of samples */

int fr_explain(struct fr_profile *p, const cJSON *meta, uint64_t incident_ns, const struct fr_view *also,
	struct fr_explanation *ret, struct fr_diag *d)
{
	int r;

	*ret = (struct fr_explanation){.profile = p, .meta = meta};
	r = fr_facts_read(p, incident_ns, also, &ret->facts, d);
	if (r == 0)
		r = fr_rules_run(p, &ret->facts, &ret->findings);
	return r;
}

void fr_explanation_deinit(struct fr_explanation *e)
{
	fr_findings_deinit(&e->findings);
	fr_facts_deinit(&e->facts);
}

/* Samples come by chance, so their number has the deviation of a Poisson distribution: its square root. */
static bool is_significant(const struct fr_function_facts *f, double before_s, double incident_s)
{
	const double expected = before_s > 0 ? (double)f->samples[FR_BEFORE] * incident_s / before_s : 0;
	const double more = (double)f->samples[FR_INCIDENT] - expected;

	return more > CHANGE_SIGMA * sqrt((double)f->samples[FR_INCIDENT] + expected + 1);
}

size_t fr_explanation_changes(const struct fr_explanation *e, struct fr_change ret[static FR_CHANGES_MAX])
{
	const double before_s = fr_facts_seconds(&e->facts, FR_BEFORE),
		     incident_s = fr_facts_seconds(&e->facts, FR_INCIDENT);
	size_t n = 0;

	for (const struct fr_function_facts *f = e->facts.functions; f; f = f->hh.next) {
		struct fr_change c = {.frame = f->frame,
			.before = before_s > 0 ? (double)f->ns[FR_BEFORE] / before_s / FR_NSEC_PER_SEC : 0,
			.incident = (double)f->ns[FR_INCIDENT] / incident_s / FR_NSEC_PER_SEC};

		if (c.incident - c.before < CHANGE_MIN || !is_significant(f, before_s, incident_s))
			continue;
		for (size_t i = 0; i < n; i++)
			if (c.incident - c.before > ret[i].incident - ret[i].before) {
				const struct fr_change smaller = ret[i];

				ret[i] = c;
				c = smaller;
			}
		if (n < FR_CHANGES_MAX)
			ret[n++] = c;
	}
	return n;
}
