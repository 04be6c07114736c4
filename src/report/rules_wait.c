// SPDX-License-Identifier: GPL-2.0-or-later
/* Rules about waits for other things than locks. */
#include "base/cleanup.h"
#include "report/rules_private.h"

#include <errno.h>

#define THROTTLED_MIN 0.05 /* of the incident */
#define PERIODS_MIN 3	   /* a cgroup is throttled in each period, and other reasons are rare */
static uint64_t time_of(const struct fr_wait_fact *w, enum fr_wait kind)
{
	if (!w)
		return 0;
	return kind == FR_WAIT_CPU ? w->runqueue_ns : w->kind == kind ? w->blocked_ns : 0;
}

/* Returns the stack of the longest wait of KIND of the process PID. */
static uint32_t longest_stack(const struct fr_rules *r, uint32_t pid, enum fr_wait kind)
{
	const struct fr_wait_fact *longest = NULL, *waits;
	size_t n;

	waits = fr_facts_waits(r->facts, &n);
	for (size_t i = 0; i < n; i++)
		if (time_of(&waits[i], kind) > time_of(longest, kind) &&
			fr_profile_task(r->profile, waits[i].task)->pid == pid)
			longest = &waits[i];
	return longest ? longest->stack : FR_STACK_NONE;
}

/* Since Linux 6.18, the stacks of the waits tell; before, the idle time of the CPUs. */
static uint64_t throttled_of(const struct fr_process_facts *p, enum fr_wait kind)
{
	return FR_MAX(p->sums[FR_INCIDENT].throttled_ns, p->idle_cpu_ns);
}

int fr_rule_throttling(struct fr_rules *r, const struct fr_rule_group *g)
{
	const struct fr_sums *b = &g->sums[FR_BEFORE], *s = &g->sums[FR_INCIDENT];
	const bool sure = s->throttled_ns > 0 && s->throttled_ns >= g->idle_cpu_ns / 2;
	const uint64_t ns = sure ? s->throttled_ns : g->idle_cpu_ns;
	enum fr_verdict v = FR_VERDICT_NEW;
	const struct fr_process_facts *most;
	char name[64];
	struct fr_finding *x;

	if (FR_SECONDS(ns) < THROTTLED_MIN * r->incident ||
		(!sure && (ns < s->wait_ns[FR_WAIT_CPU] / 2 || g->idle_cpu_waits < PERIODS_MIN)))
		return 0;
	if (sure && !fr_rules_is_more(r, b->throttled_ns, s->throttled_ns))
		v = FR_VERDICT_CHRONIC;
	most = fr_rule_most(r, g, throttled_of, FR_WAIT_CPU);
	x = fr_finding_add(r, "cpu-throttling", fr_rules_score(r, v, FR_RULE_SPECIFIC, (double)ns), most);
	if (!x)
		return -ENOMEM;
	x->certainty = sure ? FR_CERTAINTY_HIGH : FR_CERTAINTY_MEDIUM;
	x->why = sure ? "its stacks end in the function that throttles"
		      : "no event says so: it could run, and each CPU had idle time";
	x->stack = longest_stack(r, most->pid, FR_WAIT_CPU);
	fr_finding_headline(x,
		"%s could run and was not allowed to for %.2f of %.1f s: the CPU quota of its cgroup",
		fr_rule_group_name(g, most, name), FR_SECONDS(ns), r->incident);
	fr_finding_as_before(x, v);
	fr_finding_evidence(x,
		"it waited %llu times for a CPU, up to %.1f ms; for %.2f s, each CPU had idle time meanwhile",
		(unsigned long long)s->waits[FR_WAIT_CPU], FR_MS(s->longest_ns[FR_WAIT_CPU]),
		FR_SECONDS(g->idle_cpu_ns));
	fr_finding_evidence(x, "it ran for %.2f s", FR_SECONDS(s->cpu_ns));
	return 0;
}

static uint64_t reclaim_ns(const struct fr_sums *s)
{
	return s->wait_ns[FR_WAIT_RECLAIM] + fr_sums_class_ns(s, FR_CODE_RECLAIM);
}

static uint64_t reclaim_of(const struct fr_process_facts *p, enum fr_wait kind)
{
	return reclaim_ns(&p->sums[FR_INCIDENT]);
}

int fr_rule_reclaim(struct fr_rules *r, const struct fr_rule_group *g)
{
	const struct fr_sums *b = &g->sums[FR_BEFORE], *s = &g->sums[FR_INCIDENT];
	const uint64_t now = reclaim_ns(s), ns[FR_PARTS] = {reclaim_ns(b), now};
	const uint64_t longest_ns[FR_PARTS] = {
		b->longest_ns[FR_WAIT_RECLAIM], s->longest_ns[FR_WAIT_RECLAIM]};
	const enum fr_verdict v = fr_rules_judge(r, FR_RULE_WAIT_MIN, ns, longest_ns);
	const bool cgroup = fr_sums_class_ns(s, FR_CODE_CGROUP_RECLAIM) > 0;
	/* At the limit, page faults are an effect: each page that was freed is needed again. On a fast disk
	   they take more time than the reclaim itself. */
	const uint64_t effects = cgroup ? fr_sums_class_ns(s, FR_CODE_FAULT) : 0;
	const struct fr_process_facts *most;
	char name[64];
	struct fr_finding *x;

	if (v == FR_VERDICT_NORMAL)
		return 0;
	most = fr_rule_most(r, g, reclaim_of, FR_WAIT_RECLAIM);
	x = fr_finding_add(
		r, "memory-reclaim", fr_rules_score(r, v, FR_RULE_SPECIFIC, (double)(now + effects)), most);
	if (!x)
		return -ENOMEM;
	x->stack = longest_stack(r, most->pid, FR_WAIT_RECLAIM);
	x->certainty = FR_CERTAINTY_HIGH;
	x->why = "the kernel's functions that free memory are in its stacks";
	fr_finding_headline(x, "%s needed memory, and %s: %s spent %.2f of %.1f s to free memory",
		g->is_kernel ? "processes" : fr_rule_group_name(g, most, name),
		cgroup ? "its cgroup had reached its limit" : "the machine had none left",
		g->is_kernel ? fr_rule_group_name(g, most, name) : "it", FR_SECONDS(now), r->incident);
	fr_finding_as_before(x, v);
	fr_finding_compare(x, r, "CPU time to free memory", fr_sums_class_ns(b, FR_CODE_RECLAIM),
		fr_sums_class_ns(s, FR_CODE_RECLAIM));
	fr_finding_compare(
		x, r, "waits for memory or swap", b->wait_ns[FR_WAIT_RECLAIM], s->wait_ns[FR_WAIT_RECLAIM]);
	return 0;
}

/* A rule about the waits of KIND for WHAT. */
static int judge_waits(struct fr_rules *r, const struct fr_rule_group *g, enum fr_wait kind, const char *rule,
	const char *what)
{
	const struct fr_sums *b = &g->sums[FR_BEFORE], *s = &g->sums[FR_INCIDENT];
	const uint64_t ns[FR_PARTS] = {b->wait_ns[kind], s->wait_ns[kind]};
	const uint64_t longest_ns[FR_PARTS] = {b->longest_ns[kind], s->longest_ns[kind]};
	const enum fr_verdict v = fr_rules_judge(r, FR_RULE_WAIT_MIN, ns, longest_ns);
	const bool is_known = kind != FR_WAIT_UNKNOWN;
	const struct fr_process_facts *most;
	char name[64];
	struct fr_finding *x;

	/* Threads of the kernel wait when they have no work, or do the work of others. */
	if (v == FR_VERDICT_NORMAL || g->is_kernel || (v == FR_VERDICT_CHRONIC && !is_known))
		return 0;
	most = fr_rule_most(r, g, fr_rule_waits_of, kind);
	x = fr_finding_add(r, rule, fr_rules_score(r, v, 0, (double)s->wait_ns[kind]), most);
	if (!x)
		return -ENOMEM;
	x->stack = longest_stack(r, most->pid, kind);
	x->certainty = is_known ? FR_CERTAINTY_HIGH : FR_CERTAINTY_LOW;
	x->why = is_known ? "each wait was measured, and its stack says what for"
			  : "the functions of its stack do not say what it waited for";
	fr_finding_headline(x, "%s waited %.2f of %.1f s for %s, up to %.1f ms",
		fr_rule_group_name(g, most, name), FR_SECONDS(s->wait_ns[kind]), r->incident, what,
		FR_MS(s->longest_ns[kind]));
	fr_finding_as_before(x, v);
	fr_finding_compare(x, r, "waits", b->wait_ns[kind], s->wait_ns[kind]);
	fr_finding_evidence(x, "%llu waits of 1 ms or more, %.1f ms on average",
		(unsigned long long)s->waits[kind],
		FR_MS(s->wait_ns[kind]) / (double)FR_MAX(s->waits[kind], 1ull));
	return 0;
}

int fr_rule_disk(struct fr_rules *r, const struct fr_rule_group *g)
{
	return judge_waits(r, g, FR_WAIT_DISK, "disk", "the disk");
}

int fr_rule_server(struct fr_rules *r, const struct fr_rule_group *g)
{
	return judge_waits(r, g, FR_WAIT_SERVER, "file-server", "the server of a file system");
}

int fr_rule_blocked(struct fr_rules *r, const struct fr_rule_group *g)
{
	return g->is_kernel ? 0
			    : judge_waits(r, g, FR_WAIT_UNKNOWN, "blocked", "the kernel, uninterruptibly");
}
