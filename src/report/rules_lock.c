// SPDX-License-Identifier: GPL-2.0-or-later
/* The rules about waits that other threads cause: for locks, and for readers of pipes and sockets. */
#include "base/cleanup.h"
#include "report/chain.h"
#include "report/rules_private.h"
#include "sideband/hash.h"

#include <errno.h>

#define LOCK_MIN 0.015			       /* threads that waited, on average over the incident */
#define LONGEST_MIN_NS (20 * FR_NSEC_PER_MSEC) /* the longest wait has at least this length */
#define READER_MIN 0.3			       /* the same; in each pipeline, one program is the slowest */
#define READER_WEIGHT 0.5 /* a reader that computes is a cpu-hog, too, which then comes first */
#define EFFECT_WEIGHT 0.5

/* The waits that one thread caused, or all threads of a process. */
struct root {
	UT_hash_handle hh;
	uint32_t id, pid; /* ID is the tid, or the pid; 0: it is not known who woke them */
	uint64_t ns[FR_PARTS], longest_ns[FR_PARTS], waits; /* WAITS: in the incident */
	const struct fr_wait_fact *longest, *shown;	    /* in the incident */
	struct fr_chain chain;				    /* of the one that is shown */
	const struct root *most;			    /* of a process: the thread that caused most */
};

static struct root *find_or_add(struct root **roots, uint32_t id)
{
	struct root *root = FR_HASH_FIND(*roots, id, id);

	return root ? root : FR_HASH_NEW(*roots, id, id);
}

static const struct fr_link *last_link(const struct fr_chain *c)
{
	return c->n ? &c->links[c->n - 1] : NULL;
}

static int add_wait(const struct fr_rules *r, const struct fr_chains *chains, struct root **roots,
	const struct fr_wait_fact *w, int part)
{
	struct fr_chain chain;
	const struct fr_link *last;
	struct root *root;

	fr_chains_follow(chains, w, &chain);
	if (w->classes & FR_CODE_FUTEX && w->kind == FR_WAIT_LOCK && chain.n &&
		chain.links[0].pid != fr_profile_task(r->profile, w->task)->pid)
		chain.n = 0; /* a signal ended the wait, such as that of a program that was killed */
	last = last_link(&chain);
	root = find_or_add(roots, last ? last->tid : 0);
	if (!root)
		return -ENOMEM;
	root->pid = last ? last->pid : 0;
	root->ns[part] += FR_MIN(w->blocked_ns, fr_facts_ns(r->facts, part));
	root->longest_ns[part] = FR_MAX(root->longest_ns[part], w->blocked_ns);
	if (part == FR_BEFORE)
		return 0;
	root->waits++;
	if (!root->longest || w->blocked_ns > root->longest->blocked_ns)
		root->longest = w;
	/* The chain with the most threads explains most, unless it is much shorter. */
	if (!root->shown || chain.n > root->chain.n ||
		(chain.n == root->chain.n && w->blocked_ns > root->shown->blocked_ns) ||
		root->shown->blocked_ns < root->longest->blocked_ns / 2) {
		root->shown = w;
		root->chain = chain;
	}
	return 0;
}

/* Sums the THREADS of each process. */
static int merge_threads(const struct root *threads, struct root **ret)
{
	for (const struct root *t = threads; t; t = t->hh.next) {
		struct root *p = find_or_add(ret, t->pid);

		if (!p)
			return -ENOMEM;
		for (int part = 0; part < FR_PARTS; part++) {
			p->ns[part] += t->ns[part];
			p->longest_ns[part] = FR_MAX(p->longest_ns[part], t->longest_ns[part]);
		}
		p->pid = t->pid;
		p->waits += t->waits;
		if (!p->longest || (t->longest && t->longest->blocked_ns > p->longest->blocked_ns))
			p->longest = t->longest;
		if (!p->most || t->ns[FR_INCIDENT] > p->most->ns[FR_INCIDENT])
			p->most = t;
	}
	return 0;
}

static const char *name_thread(const struct fr_rules *r, uint32_t pid, uint32_t tid)
{
	const struct fr_task *task = fr_profile_find_thread(r->profile, pid, tid);

	return task ? task->comm : "?";
}

static void describe_link(const struct fr_rules *r, const struct fr_link *link, char ret[static 160])
{
	static const char *const doing[_FR_WAIT_N] = {[FR_WAIT_LOCK] = "waited for a lock",
		[FR_WAIT_DISK] = "waited for the disk",
		[FR_WAIT_RECLAIM] = "waited for memory",
		[FR_WAIT_SERVER] = "waited for a file server",
		[FR_WAIT_PEER] = "waited for a reader",
		[FR_WAIT_UNKNOWN] = "was blocked in the kernel",
		[FR_WAIT_SLEEP] = "slept",
		[FR_WAIT_IDLE] = "waited"};

	if (link->doing == FR_LINK_UNKNOWN)
		snprintf(ret, 160, "did something that was not recorded");
	else if (link->doing == FR_LINK_QUEUED)
		snprintf(ret, 160, "waited for a CPU in %.100s",
			fr_rule_innermost(r, link->wait->stack, true));
	else if (link->doing == FR_LINK_RAN)
		snprintf(ret, 160, "ran in %.100s", fr_rule_innermost(r, link->stack, true));
	else
		snprintf(ret, 160, "%s in %.100s", doing[link->wait->kind],
			fr_rule_innermost(r, link->wait->stack, true));
}

/* What the rules for locks and for readers differ in. */
struct kind {
	enum fr_wait wait;
	const char *rule, *what, *did, *waited;
	double bonus, weight;
	double min;	 /* threads that waited, on average over the incident */
	bool is_chronic; /* it is a finding also if it is not new */
};
static const struct kind lock = {FR_WAIT_LOCK, "lock", "waits for locks", "held up others",
	"waited for a lock", FR_RULE_SPECIFIC, 1, LOCK_MIN, true};
static const struct kind reader = {FR_WAIT_PEER, "slow-reader", "waits of writers",
	"read slower than others wrote, who waited", "waited to write to a pipe or a socket", 0,
	READER_WEIGHT, READER_MIN, false};

static void set_certainty(struct fr_finding *x, const struct fr_link *last)
{
	const bool is_whole = last && last->doing == FR_LINK_WAITED && last->wait->kind != FR_WAIT_LOCK;

	x->certainty = !last ? FR_CERTAINTY_LOW : is_whole ? FR_CERTAINTY_HIGH : FR_CERTAINTY_MEDIUM;
	if (!last)
		x->why = "it is not known who woke the waiting thread";
	else if (is_whole)
		x->why = "each thread of the chain woke the next one, and the last one waited for no lock";
	else
		x->why = "it woke the waiting threads, so it had what they waited for";
}

static void add_chain(struct fr_finding *x, const struct fr_rules *r, const struct root *shown)
{
	const struct fr_task *victim = fr_profile_task(r->profile, shown->shown->task);
	char what[160];

	fr_finding_evidence(x, "%s (thread %u) waited %.1f ms in %s", victim->comm, victim->tid,
		FR_MS(shown->shown->blocked_ns), fr_rule_innermost(r, shown->shown->stack, true));
	for (size_t i = 0; i < shown->chain.n; i++) {
		const struct fr_link *link = &shown->chain.links[i];

		describe_link(r, link, what);
		fr_finding_evidence(x, "%*s%s (thread %u) woke it, and before that %s", (int)(2 * i + 2), "",
			name_thread(r, link->pid, link->tid), link->tid, what);
	}
}

static int report(struct fr_rules *r, const struct kind *kind, const struct root *p, enum fr_verdict v)
{
	const struct root *shown = p->most;
	const struct fr_link *last = last_link(&shown->chain);
	const struct fr_task *victim = fr_profile_task(r->profile, p->longest->task);
	const struct fr_process_facts *who = fr_facts_find(r->facts, last ? last->pid : victim->pid);
	/* If the thread had no CPU, the cause is who had it. */
	const bool is_effect = !last || last->doing == FR_LINK_QUEUED || last->doing == FR_LINK_UNKNOWN;
	const double weight = is_effect ? EFFECT_WEIGHT * kind->weight : kind->weight,
		     bonus = is_effect ? 0 : kind->bonus;
	struct fr_finding *x = fr_finding_add(
		r, kind->rule, fr_rules_score(r, v, bonus, (double)p->ns[FR_INCIDENT] * weight), who);
	char what[160];

	if (!x)
		return -ENOMEM;
	set_certainty(x, last);
	if (last) {
		x->pid = last->pid;
		x->tid = last->tid;
		describe_link(r, last, what);
		fr_finding_headline(x, "%s (pid %u, thread %u \"%s\") %s for %.0f ms: it %s",
			who && who->comm ? who->comm : "?", last->pid, last->tid,
			name_thread(r, last->pid, last->tid), kind->did, FR_MS(p->longest->blocked_ns), what);
	} else {
		fr_finding_headline(x, "%s (pid %u) %s, up to %.0f ms", victim->comm, victim->pid,
			kind->waited, FR_MS(p->longest->blocked_ns));
	}
	fr_finding_as_before(x, v);
	fr_finding_evidence(x, "%llu %s, %.2f s together, up to %.1f ms; before, %.2f s in %.1f s",
		(unsigned long long)p->waits, kind->what, FR_SECONDS(p->ns[FR_INCIDENT]),
		FR_MS(p->longest->blocked_ns), FR_SECONDS(p->ns[FR_BEFORE]), r->before);
	add_chain(x, r, shown);
	x->stack = !last ? p->longest->stack : last->wait ? last->wait->stack : last->stack;
	return 0;
}

static int judge_root(struct fr_rules *r, const struct kind *kind, const struct root *p)
{
	enum fr_verdict v;

	if (!p->longest || p->longest->blocked_ns < LONGEST_MIN_NS)
		return 0;
	v = fr_rules_judge(r, kind->min, p->ns, p->longest_ns);
	return v == FR_VERDICT_NEW || (v == FR_VERDICT_CHRONIC && kind->is_chronic) ? report(r, kind, p, v)
										    : 0;
}

static int judge_roots(struct fr_rules *r, const struct kind *kind, const struct root *processes)
{
	uint64_t known_ns = 0;
	int x = 0;

	for (const struct root *p = processes; p; p = p->hh.next)
		if (p->pid)
			known_ns += p->ns[FR_INCIDENT];
	for (const struct root *p = processes; p && x == 0; p = p->hh.next)
		if (p->pid || p->ns[FR_INCIDENT] > known_ns) /* a machine can hide some wakings */
			x = judge_root(r, kind, p);
	return x;
}

static int judge_kind(struct fr_rules *r, const struct fr_chains *chains, const struct kind *kind)
{
	const struct fr_wait_fact *waits = (const void *)r->facts->waits.data;
	struct root *threads = NULL, *processes = NULL;
	int x = 0;

	for (size_t i = 0; i < r->facts->waits.len / sizeof(*waits) && x == 0; i++)
		if (waits[i].kind == kind->wait && !waits[i].is_open)
			x = add_wait(r, chains, &threads, &waits[i],
				i < r->facts->first_wait ? FR_BEFORE : FR_INCIDENT);
	if (x == 0)
		x = merge_threads(threads, &processes);
	if (x == 0)
		x = judge_roots(r, kind, processes);
	FR_HASH_CLEAR(processes, free);
	FR_HASH_CLEAR(threads, free);
	return x;
}

int fr_rule_locks(struct fr_rules *r, const struct fr_rule_group *g)
{
	const struct fr_sums *now = &r->facts->all[FR_INCIDENT];
	struct fr_chains *chains;
	int x;

	if (!now->wait_ns[FR_WAIT_LOCK] && !now->wait_ns[FR_WAIT_PEER])
		return 0;
	x = fr_chains_new(r->profile, r->facts, &chains);
	if (x < 0)
		return x;
	x = judge_kind(r, chains, &lock);
	if (x == 0)
		x = judge_kind(r, chains, &reader);
	fr_chains_free(chains);
	return x;
}
