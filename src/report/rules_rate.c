// SPDX-License-Identifier: GPL-2.0-or-later
/* Rules about rates: new processes. */
#include "base/cleanup.h"
#include "report/rules_private.h"

#include <errno.h>

#define FORKS_MIN 100
#define FORK_RATE_MIN 20.0  /* a second */
#define FORKS_OF_CPU 1000.0 /* so many processes in a second cost a CPU, with what they do themselves */
#define FORK_RATE_CHRONIC                                                                                    \
	50.0		     /* from this rate on, they are a finding although there were as many before     \
			      */
#define FORK_RATE_FULL 100.0 /* from this rate on, the full FR_RULE_SPECIFIC is added to the score */

static uint64_t forks_of(const struct fr_process_facts *p, enum fr_wait kind)
{
	return p->sums[FR_INCIDENT].forks;
}

/* OLD and RATE are of a second, before and in the incident. */
static enum fr_verdict judge_rate(double old, double rate)
{
	if (rate >= FORK_RATE_MIN && rate >= FR_RULE_MORE * old)
		return FR_VERDICT_NEW;
	return rate >= FORK_RATE_CHRONIC ? FR_VERDICT_CHRONIC : FR_VERDICT_NORMAL;
}

/* The processes of the group are the parents. */
int fr_rule_forks(struct fr_rules *r, const struct fr_rule_group *g)
{
	const struct fr_sums *before = &r->facts->all[FR_BEFORE], *now = &r->facts->all[FR_INCIDENT];
	const uint64_t forks = g->sums[FR_INCIDENT].forks;
	const double rate = (double)forks / r->incident,
		     old = r->before > 0 ? (double)g->sums[FR_BEFORE].forks / r->before : 0;
	const double cpu_ns = (double)fr_sums_class_ns(now, FR_CODE_FORK) * (double)forks /
			      (double)FR_MAX(now->forks, 1ull);
	const double bonus = FR_RULE_SPECIFIC * FR_MIN(rate / FORK_RATE_FULL, 1.0) + rate / FORKS_OF_CPU;
	const enum fr_verdict v = judge_rate(old, rate);
	const struct fr_process_facts *most;
	struct fr_finding *x;

	if (forks < FORKS_MIN || v == FR_VERDICT_NORMAL)
		return 0;
	most = fr_rule_most(r, g, forks_of, FR_WAIT_CPU);
	x = fr_finding_add(r, "fork-storm", fr_rules_score(r, v, bonus, cpu_ns), most);
	if (!x)
		return -ENOMEM;
	x->certainty = FR_CERTAINTY_HIGH;
	x->why = "each new process was recorded";
	fr_finding_headline(x, "%s (pid %u) made %llu of %llu new processes, %.0f a second", g->comm,
		most->pid, (unsigned long long)forks_of(most, FR_WAIT_CPU), (unsigned long long)now->forks,
		rate);
	fr_finding_as_before(x, v);
	fr_finding_evidence(
		x, "new processes by %s: %.0f a second; before, %.1f a second", g->comm, rate, old);
	fr_finding_compare(x, r, "CPU time of all processes to make and end processes",
		fr_sums_class_ns(before, FR_CODE_FORK), fr_sums_class_ns(now, FR_CODE_FORK));
	return 0;
}
