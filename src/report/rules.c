// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/rules.h"
#include "base/cleanup.h"
#include "report/rules_private.h"
#include "sideband/hash.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define BEFORE_MIN 2.0 /* seconds */
/* Waits that are not new are a finding if they are long and many. The score is then below that of all that is
   new. */
#define CHRONIC_LONGEST_NS (100 * FR_NSEC_PER_MSEC)
#define CHRONIC_MIN 0.05
#define CHRONIC_SCORE 0.05
#define STEADY_MIN 0.25 /* CPUs */
/* A process is judged alone if it was there before and in the incident, and has so much in one of them: CPUs
   and waits together, or new processes in a second. */
#define OWN_MIN 0.05
#define OWN_FORKS_MIN 10.0
#define SHORT_S 0.01 /* a process that did much in so short a time was there */

static uint64_t cpu_of(const struct fr_process_facts *p, enum fr_wait kind)
{
	return p->sums[FR_INCIDENT].cpu_ns;
}

static void add_sums(struct fr_sums *to, const struct fr_sums *s)
{
	to->cpu_ns += s->cpu_ns;
	to->cpu_samples += s->cpu_samples;
	to->forks += s->forks;
	to->throttled_ns += s->throttled_ns;
	for (size_t i = 0; i < FR_FACTS_CLASSES; i++)
		to->class_ns[i] += s->class_ns[i];
	for (size_t i = 0; i < _FR_WAIT_N; i++) {
		to->wait_ns[i] += s->wait_ns[i];
		to->waits[i] += s->waits[i];
		to->longest_ns[i] = FR_MAX(to->longest_ns[i], s->longest_ns[i]);
	}
}

static bool did_much(const struct fr_sums *s, double seconds)
{
	uint64_t ns = s->cpu_ns;

	for (size_t i = 0; i < FR_WAIT_SLEEP; i++)
		ns += s->wait_ns[i];
	return FR_SECONDS(ns) >= OWN_MIN * seconds || (double)s->forks >= OWN_FORKS_MIN * seconds;
}

static bool did_something(const struct fr_sums *s)
{
	return s->cpu_ns || s->forks || s->waits[FR_WAIT_IDLE] || s->waits[FR_WAIT_SLEEP] ||
	       did_much(s, SHORT_S);
}

/* Returns what P has in common with others of its group. A build runs a hundred compilers, one after the
   other, so a new process is compared with those of its name that have ended. But a process that was there
   all the time is compared with itself, if it did much. */
static const void *key_of(const struct fr_rules *r, const struct fr_process_facts *p)
{
	const struct fr_sums *before = &p->sums[FR_BEFORE], *now = &p->sums[FR_INCIDENT];

	if (did_something(before) && did_something(now) &&
		(did_much(before, r->before) || did_much(now, r->incident)))
		return p;
	return p->comm;
}

bool fr_rule_is_in(const struct fr_rules *r, const struct fr_rule_group *g, const struct fr_process_facts *p)
{
	return p->comm && key_of(r, p) == g->key;
}

static void add_process(struct fr_rule_group *g, const struct fr_process_facts *p)
{
	for (int part = 0; part < FR_PARTS; part++)
		add_sums(&g->sums[part], &p->sums[part]);
	g->comm = p->comm;
	g->idle_cpu_ns += p->idle_cpu_ns;
	g->idle_cpu_waits += p->idle_cpu_waits;
	g->n++;
	g->is_kernel |= p->is_kernel;
}

static int make_groups(struct fr_rules *r)
{
	for (const struct fr_process_facts *p = r->facts->processes; p; p = p->hh.next) {
		const void *key = key_of(r, p);
		struct fr_rule_group *g;

		if (!p->comm)
			continue;
		g = FR_HASH_FIND(r->groups, key, key);
		if (!g)
			g = FR_HASH_NEW(r->groups, key, key);
		if (!g)
			return -ENOMEM;
		add_process(g, p);
	}
	return 0;
}

struct fr_finding *fr_finding_add(
	struct fr_rules *r, const char *rule, double score, const struct fr_process_facts *who)
{
	struct fr_finding *v = reallocarray(r->found->v, r->found->n + 1, sizeof(*v)), *x;

	if (!v)
		return NULL;
	r->found->v = v;
	x = &v[r->found->n++];
	*x = (struct fr_finding){.rule = rule, .score = score, .stack = FR_STACK_NONE};
	if (who) {
		x->pid = x->tid = who->pid;
		x->comm = who->comm;
	}
	return x;
}

void fr_finding_headline(struct fr_finding *x, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(x->headline, sizeof(x->headline), format, args);
	va_end(args);
}

void fr_finding_evidence(struct fr_finding *x, const char *format, ...)
{
	va_list args;

	if (x->n_evidence == FR_EVIDENCE_MAX)
		return;
	va_start(args, format);
	vsnprintf(x->evidence[x->n_evidence++], FR_LINE_MAX, format, args);
	va_end(args);
}

void fr_finding_as_before(struct fr_finding *x, enum fr_verdict v)
{
	const size_t len = strlen(x->headline);

	if (v == FR_VERDICT_CHRONIC)
		snprintf(x->headline + len, sizeof(x->headline) - len, "; as before");
}

const char *fr_rule_group_name(
	const struct fr_rule_group *g, const struct fr_process_facts *most, char ret[static 64])
{
	if (g->n == 1)
		snprintf(ret, 64, "%s (pid %u)", g->comm, most->pid);
	else
		snprintf(ret, 64, "%s (%zu processes, most is pid %u)", g->comm, g->n, most->pid);
	return ret;
}

const char *fr_rule_innermost(const struct fr_rules *r, uint32_t stack, bool user)
{
	const struct fr_stacks *stacks = fr_profile_stacks(r->profile);
	const struct fr_frames *frames = fr_profile_frames(r->profile);

	for (; stack != FR_STACK_NONE; stack = stacks->nodes[stack].parent) {
		const struct fr_frame *f = fr_frames_get(frames, stacks->nodes[stack].frame);
		const struct fr_code_object *o = fr_frames_object(frames, f->object);

		if (!user || (o->kind == FR_OBJECT_FILE && !strstr(o->short_name, "libc.")))
			return f->name;
	}
	return "?";
}

uint64_t fr_rule_waits_of(const struct fr_process_facts *p, enum fr_wait kind)
{
	return p->sums[FR_INCIDENT].wait_ns[kind];
}

const struct fr_process_facts *fr_rule_most(
	const struct fr_rules *r, const struct fr_rule_group *g, fr_rule_value value, enum fr_wait kind)
{
	const struct fr_process_facts *most = NULL;

	for (const struct fr_process_facts *p = r->facts->processes; p; p = p->hh.next)
		if (fr_rule_is_in(r, g, p) && (!most || value(p, kind) > value(most, kind)))
			most = p;
	return most;
}

enum fr_verdict fr_rules_judge(const struct fr_rules *r, double min, const uint64_t ns[static FR_PARTS],
	const uint64_t longest_ns[static FR_PARTS])
{
	/* If such long waits were there before, the number of them in a part is mostly chance: it must be
	   three times as many. */
	const bool is_same = longest_ns[FR_BEFORE] >= longest_ns[FR_INCIDENT] / 2;

	if (fr_rules_more(r, ns[FR_BEFORE], ns[FR_INCIDENT]) >= min * r->incident &&
		fr_rules_is_more(r, ns[FR_BEFORE] + (is_same ? ns[FR_BEFORE] / 2 : 0), ns[FR_INCIDENT]))
		return FR_VERDICT_NEW;
	return longest_ns[FR_INCIDENT] >= CHRONIC_LONGEST_NS &&
			       FR_SECONDS(ns[FR_INCIDENT]) >= CHRONIC_MIN * r->incident
		       ? FR_VERDICT_CHRONIC
		       : FR_VERDICT_NORMAL;
}

double fr_rules_score(const struct fr_rules *r, enum fr_verdict v, double bonus, double ns)
{
	const double share = FR_SECONDS(ns) / r->incident;

	return v == FR_VERDICT_CHRONIC ? CHRONIC_SCORE * FR_MIN(share, 1.0) : bonus + share;
}

double fr_rules_more(const struct fr_rules *r, uint64_t before_ns, uint64_t incident_ns)
{
	const double expected = r->before > 0 ? FR_SECONDS(before_ns) * r->incident / r->before : 0;

	return FR_SECONDS(incident_ns) - expected;
}

bool fr_rules_is_more(const struct fr_rules *r, uint64_t before_ns, uint64_t incident_ns)
{
	return FR_SECONDS(incident_ns) * r->before >= FR_RULE_MORE * FR_SECONDS(before_ns) * r->incident;
}

void fr_finding_compare(struct fr_finding *x, const struct fr_rules *r, const char *what, uint64_t before_ns,
	uint64_t incident_ns)
{
	fr_finding_evidence(x, "%s: %.2f s in the last %.1f s; before, %.2f s in %.1f s", what,
		FR_SECONDS(incident_ns), r->incident, FR_SECONDS(before_ns), r->before);
}

double fr_sums_share(const struct fr_sums *s, uint32_t classes)
{
	uint64_t most = 0;

	for (; classes; classes &= classes - 1)
		most = FR_MAX(most, s->class_ns[__builtin_ctz(classes)]);
	return s->cpu_ns ? (double)most / (double)s->cpu_ns : 0;
}

uint64_t fr_sums_class_ns(const struct fr_sums *s, uint32_t one_class)
{
	return s->class_ns[__builtin_ctz(one_class)];
}

/* All rules. Those of all processes get no group. */
static const struct {
	int (*run)(struct fr_rules *r, const struct fr_rule_group *g);
	bool of_group;
} rules[] = {{fr_rule_stuck, false}, {fr_rule_locks, false}, {fr_rule_forks, true},
	{fr_rule_throttling, true}, {fr_rule_reclaim, true}, {fr_rule_disk, true}, {fr_rule_server, true},
	{fr_rule_blocked, true}, {fr_rule_cpu, true}};

static int run_rules(struct fr_rules *r)
{
	int x = 0;

	for (size_t i = 0; i < FR_ARRAY_SIZE(rules) && x == 0; i++)
		if (!rules[i].of_group)
			x = rules[i].run(r, NULL);
		else
			for (const struct fr_rule_group *g = r->groups; g && x == 0; g = g->hh.next)
				x = rules[i].run(r, g);
	return x;
}

const char *fr_certainty_name(enum fr_certainty c)
{
	static const char *const names[] = {
		[FR_CERTAINTY_LOW] = "low", [FR_CERTAINTY_MEDIUM] = "medium", [FR_CERTAINTY_HIGH] = "high"};

	return names[c];
}

/* What is normal is hardly known without a time before, and lost records can hide another cause. */
static void lower_certainties(const struct fr_rules *r)
{
	const char *why = r->before < BEFORE_MIN		 ? "the time before is short"
			  : r->facts->lost || r->facts->left_out ? "records were lost"
								 : NULL;

	for (size_t i = 0; i < r->found->n && why; i++)
		if (r->found->v[i].certainty == FR_CERTAINTY_HIGH) {
			r->found->v[i].certainty = FR_CERTAINTY_MEDIUM;
			r->found->v[i].why = why;
		}
}

static bool is_found(const struct fr_rules *r, const char *comm)
{
	for (size_t i = 0; i < r->found->n; i++)
		if (r->found->v[i].comm == comm)
			return true;
	return false;
}

/* Finds who used most CPU time, if it did so before, too, and no finding is about it. */
static void find_steady(const struct fr_rules *r)
{
	const struct fr_rule_group *most = NULL;
	struct fr_steady *s = &r->found->steady;

	for (const struct fr_rule_group *g = r->groups; g; g = g->hh.next)
		if (!most || g->sums[FR_INCIDENT].cpu_ns > most->sums[FR_INCIDENT].cpu_ns)
			most = g;
	if (!most || FR_SECONDS(most->sums[FR_INCIDENT].cpu_ns) < STEADY_MIN * r->incident ||
		is_found(r, most->comm))
		return;
	s->comm = most->comm;
	s->pid = fr_rule_most(r, most, cpu_of, FR_WAIT_CPU)->pid;
	s->cpus = FR_SECONDS(most->sums[FR_INCIDENT].cpu_ns) / r->incident;
	s->before = r->before > 0 ? FR_SECONDS(most->sums[FR_BEFORE].cpu_ns) / r->before : 0;
}

static int compare_findings(const void *x, const void *y)
{
	const struct fr_finding *a = x, *b = y;

	return a->score > b->score ? -1 : a->score < b->score;
}

int fr_rules_run(const struct fr_profile *p, const struct fr_facts *f, struct fr_findings *ret)
{
	struct fr_rules r = {.profile = p,
		.facts = f,
		.found = ret,
		.before = fr_facts_seconds(f, FR_BEFORE),
		.incident = fr_facts_seconds(f, FR_INCIDENT)};
	int x;

	*ret = (struct fr_findings){0};
	x = make_groups(&r);
	if (x == 0)
		x = run_rules(&r);
	find_steady(&r);
	lower_certainties(&r);
	if (ret->n > 1)
		qsort(ret->v, ret->n, sizeof(*ret->v), compare_findings);
	FR_HASH_CLEAR(r.groups, free);
	return x;
}

void fr_findings_deinit(struct fr_findings *f)
{
	free(f->v);
	*f = (struct fr_findings){0};
}
