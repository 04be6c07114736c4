// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/rules.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/units.h"
#include "report/chain.h"
#include "sideband/hash.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

/* Limits of the rules. CPU and WAIT are shares of one CPU or thread over the incident; the others are numbers. */
#define CPU_MIN 0.08
#define HOG_MIN 0.25	   /* for CPU time of no special kind */
#define BURST_NS (1500 * FR_NSEC_PER_MSEC) /* or so much CPU time in parts in which a CPU was nearly full */
#define WAIT_MIN 0.03
#define LOCK_MIN 0.015
#define LOCK_MAX_MIN_NS (20 * FR_NSEC_PER_MSEC) /* the longest wait for a lock has at least this length */
#define STUCK_MIN 0.05
#define FORKS_MIN 100
#define FORK_RATE_MIN 20.0 /* a second */
#define MORE 2.0	   /* at least so many times as much as before */
#define SPECIFIC 0.5 /* added to the score of a rule that names a cause, not only its effect on a CPU */

/* Processes with one name. */
struct group {
	UT_hash_handle hh;
	const char *comm;
	struct fr_sums sums[FR_PARTS];
	uint64_t stuck_ns, wait_max_ns[_FR_WAIT_N];
	const struct fr_process_facts *most; /* the process with the most CPU time and waits */
	uint64_t most_ns;
	size_t n, n_new;
};

struct rules {
	const struct fr_profile *profile;
	const struct fr_facts *facts;
	struct group *groups;
	struct fr_findings *found;
	double before, incident; /* seconds */
};

static uint64_t all_waits(const struct fr_sums *s)
{
	return s->wait_ns[FR_WAIT_CPU] + s->wait_ns[FR_WAIT_LOCK] + s->wait_ns[FR_WAIT_DISK] +
	       s->wait_ns[FR_WAIT_RECLAIM] + s->wait_ns[FR_WAIT_SERVER] + s->wait_ns[FR_WAIT_UNKNOWN];
}

static void add_sums(struct fr_sums *to, const struct fr_sums *s)
{
	to->cpu_ns += s->cpu_ns;
	to->cpu_samples += s->cpu_samples;
	to->forks += s->forks;
	for (size_t i = 0; i < FR_FACTS_CLASSES; i++)
		to->class_ns[i] += s->class_ns[i];
	for (size_t i = 0; i < _FR_WAIT_N; i++) {
		to->wait_ns[i] += s->wait_ns[i];
		to->waits[i] += s->waits[i];
	}
}

static int make_groups(struct rules *r)
{
	for (const struct fr_process_facts *p = r->facts->processes; p; p = p->hh.next) {
		const uint64_t ns = p->sums[FR_INCIDENT].cpu_ns + all_waits(&p->sums[FR_INCIDENT]);
		struct group *g;

		if (!p->comm)
			continue;
		g = FR_HASH_FIND(r->groups, comm, p->comm);
		if (!g)
			g = FR_HASH_NEW(r->groups, comm, p->comm);
		if (!g)
			return -ENOMEM;
		for (int part = 0; part < FR_PARTS; part++)
			add_sums(&g->sums[part], &p->sums[part]);
		for (size_t i = 0; i < _FR_WAIT_N; i++)
			g->wait_max_ns[i] = FR_MAX(g->wait_max_ns[i], p->wait_max_ns[i]);
		g->stuck_ns += p->stuck_ns;
		g->n++;
		g->n_new += p->is_new;
		if (!g->most || ns > g->most_ns) {
			g->most = p;
			g->most_ns = ns;
		}
	}
	return 0;
}

/* --- making findings --- */

static struct fr_finding *add_finding(
	struct rules *r, const char *rule, double score, const struct fr_process_facts *who)
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

static void __attribute__((format(printf, 2, 3))) headline(struct fr_finding *x, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(x->headline, sizeof(x->headline), format, args);
	va_end(args);
}

static void __attribute__((format(printf, 2, 3))) evidence(struct fr_finding *x, const char *format, ...)
{
	va_list args;

	if (x->n_evidence == FR_EVIDENCE_MAX)
		return;
	va_start(args, format);
	vsnprintf(x->evidence[x->n_evidence++], FR_LINE_MAX, format, args);
	va_end(args);
}

/* "postgres (pid 77)", or "cc1 (12 processes, the busiest is 77)". */
static const char *name_group(const struct group *g, char ret[static 64])
{
	if (g->n == 1)
		snprintf(ret, 64, "%s (pid %u)", g->comm, g->most->pid);
	else
		snprintf(ret, 64, "%s (%zu processes, most is pid %u)", g->comm, g->n, g->most->pid);
	return ret;
}

#define SECONDS(ns) ((double)(ns) / (double)FR_NSEC_PER_SEC)
#define MS(ns) ((double)(ns) / (double)FR_NSEC_PER_MSEC)

/* How much more than before, in seconds of the incident. */
static double more(const struct rules *r, uint64_t before_ns, uint64_t incident_ns)
{
	const double expected = r->before > 0 ? SECONDS(before_ns) * r->incident / r->before : 0;

	return SECONDS(incident_ns) - expected;
}

/* Returns whether the incident has at least MORE times as much, in relation to its length. */
static bool is_more(const struct rules *r, uint64_t before_ns, uint64_t incident_ns)
{
	return SECONDS(incident_ns) * r->before >= MORE * SECONDS(before_ns) * r->incident;
}

static void compare(struct fr_finding *x, const struct rules *r, const char *what, uint64_t before_ns, uint64_t incident_ns)
{
	evidence(x, "%s: %.2f s in the last %.1f s; before, %.2f s in %.1f s", what, SECONDS(incident_ns), r->incident,
		SECONDS(before_ns), r->before);
}

/* --- stacks --- */

struct count {
	UT_hash_handle hh;
	uint32_t key;
	uint64_t n;
};

static int count_up(struct count **counts, uint32_t key, uint64_t n)
{
	struct count *c = FR_HASH_FIND(*counts, key, key);

	if (!c)
		c = FR_HASH_NEW(*counts, key, key);
	if (!c)
		return -ENOMEM;
	c->n += n;
	return 0;
}

static const struct count *find_most(const struct count *counts)
{
	const struct count *most = counts;

	for (; counts; counts = counts->hh.next)
		if (counts->n > most->n)
			most = counts;
	return most;
}

/* The function in which the processes of a group were most often. */
struct hot {
	uint32_t frame, stack;
	double share; /* of the samples; 0: there are none */
};

static int find_hot(const struct rules *r, const struct group *g, struct hot *ret)
{
	const struct fr_stacks *stacks = fr_profile_stacks(r->profile);
	const struct fr_frames *names = fr_profile_frames(r->profile);
	const struct fr_cpu_fact *cpu = (const void *)r->facts->cpu.data;
	struct count *frames = NULL, *of_stack = NULL;
	const struct count *most;
	uint64_t all = 0;
	int x = 0;

	*ret = (struct hot){.stack = FR_STACK_NONE};
	for (size_t i = 0; i < r->facts->cpu.len / sizeof(*cpu) && x == 0; i++) {
		const struct fr_process_facts *p =
			fr_facts_find(r->facts, fr_profile_task(r->profile, cpu[i].task)->pid);

		if (!p || p->comm != g->comm || cpu[i].stack == FR_STACK_NONE)
			continue;
		all++;
		x = count_up(&frames, fr_frames_get(names, stacks->nodes[cpu[i].stack].frame)->same, 1);
		if (x == 0)
			x = count_up(&of_stack, cpu[i].stack, 1);
	}
	most = find_most(frames);
	if (most && x == 0) {
		ret->frame = most->key;
		ret->share = (double)most->n / (double)all;
		ret->stack = find_most(of_stack)->key;
	}
	FR_HASH_CLEAR(frames, free);
	FR_HASH_CLEAR(of_stack, free);
	return x;
}

static double share_of(const struct fr_sums *s, uint32_t classes)
{
	uint64_t most = 0;

	for (; classes; classes &= classes - 1)
		most = FR_MAX(most, s->class_ns[__builtin_ctz(classes)]);
	return s->cpu_ns ? (double)most / (double)s->cpu_ns : 0;
}

static uint64_t class_ns(const struct fr_sums *s, uint32_t one_class)
{
	return s->class_ns[__builtin_ctz(one_class)];
}

/* --- the rules --- */

static int rule_forks(struct rules *r)
{
	const struct fr_sums *before = &r->facts->all[FR_BEFORE], *now = &r->facts->all[FR_INCIDENT];
	const double rate = (double)now->forks / r->incident, old = r->before > 0 ? (double)before->forks / r->before : 0;
	const struct group *most = NULL;
	struct fr_finding *x;

	if (now->forks < FORKS_MIN || rate < FORK_RATE_MIN || rate < MORE * old)
		return 0;
	for (const struct group *g = r->groups; g; g = g->hh.next)
		if (!most || g->sums[FR_INCIDENT].forks > most->sums[FR_INCIDENT].forks)
			most = g;
	x = add_finding(r, "fork-storm", SPECIFIC + SECONDS(class_ns(now, FR_CODE_FORK)) / r->incident + rate / 1000,
		most->most);
	if (!x)
		return -ENOMEM;
	headline(x, "%s (pid %u) made %llu of %llu new processes, %.0f a second", most->comm, most->most->pid,
		(unsigned long long)most->sums[FR_INCIDENT].forks, (unsigned long long)now->forks, rate);
	evidence(x, "new processes: %.0f a second; before, %.1f a second", rate, old);
	compare(x, r, "CPU time to make and end processes", class_ns(before, FR_CODE_FORK), class_ns(now, FR_CODE_FORK));
	return 0;
}

static int rule_throttling(struct rules *r, const struct group *g)
{
	const struct fr_sums *s = &g->sums[FR_INCIDENT];
	char name[64];
	struct fr_finding *x;

	if (SECONDS(g->stuck_ns) < STUCK_MIN * r->incident || g->stuck_ns < s->wait_ns[FR_WAIT_CPU] / 2)
		return 0;
	x = add_finding(r, "cpu-throttling", SPECIFIC + SECONDS(g->stuck_ns) / r->incident, g->most);
	if (!x)
		return -ENOMEM;
	headline(x, "%s could run and was not allowed to for %.2f of %.1f s: the CPU quota of its cgroup",
		name_group(g, name), SECONDS(g->stuck_ns), r->incident);
	evidence(x, "it waited %llu times for a CPU, up to %.1f ms, while the CPU was idle",
		(unsigned long long)s->waits[FR_WAIT_CPU], MS(g->wait_max_ns[FR_WAIT_CPU]));
	evidence(x, "it ran for %.2f s", SECONDS(s->cpu_ns));
	return 0;
}

static int rule_reclaim(struct rules *r, const struct group *g)
{
	const struct fr_sums *b = &g->sums[FR_BEFORE], *s = &g->sums[FR_INCIDENT];
	const uint64_t before = b->wait_ns[FR_WAIT_RECLAIM] + class_ns(b, FR_CODE_RECLAIM),
		       now = s->wait_ns[FR_WAIT_RECLAIM] + class_ns(s, FR_CODE_RECLAIM);
	const bool cgroup = class_ns(s, FR_CODE_CGROUP_RECLAIM) > 0;
	char name[64];
	struct fr_finding *x;

	if (more(r, before, now) < WAIT_MIN * r->incident || !is_more(r, before, now))
		return 0;
	x = add_finding(r, "memory-reclaim", SPECIFIC + more(r, before, now) / r->incident, g->most);
	if (!x)
		return -ENOMEM;
	headline(x, "%s needed memory, and %s: it spent %.2f of %.1f s to free memory", name_group(g, name),
		cgroup ? "its cgroup had reached its limit" : "the machine had none left", SECONDS(now), r->incident);
	compare(x, r, "CPU time to free memory", class_ns(b, FR_CODE_RECLAIM), class_ns(s, FR_CODE_RECLAIM));
	compare(x, r, "waits for memory or swap", b->wait_ns[FR_WAIT_RECLAIM], s->wait_ns[FR_WAIT_RECLAIM]);
	return 0;
}

static int rule_storage(struct rules *r, const struct group *g, enum fr_wait kind, const char *rule, const char *what)
{
	const struct fr_sums *b = &g->sums[FR_BEFORE], *s = &g->sums[FR_INCIDENT];
	const double extra = more(r, b->wait_ns[kind], s->wait_ns[kind]);
	char name[64];
	struct fr_finding *x;

	if (extra < WAIT_MIN * r->incident || !is_more(r, b->wait_ns[kind], s->wait_ns[kind]))
		return 0;
	x = add_finding(r, rule, extra / r->incident, g->most);
	if (!x)
		return -ENOMEM;
	headline(x, "%s waited %.2f of %.1f s for %s, up to %.1f ms", name_group(g, name), SECONDS(s->wait_ns[kind]),
		r->incident, what, MS(g->wait_max_ns[kind]));
	compare(x, r, "waits", b->wait_ns[kind], s->wait_ns[kind]);
	evidence(x, "%llu waits of 1 ms or more, %.1f ms on average", (unsigned long long)s->waits[kind],
		MS(s->wait_ns[kind]) / (double)FR_MAX(s->waits[kind], 1ull));
	return 0;
}

/* Returns the CPU time of the group's busiest process in those parts of the incident in which it used nearly a whole
   CPU. */
static uint64_t burst_of(const struct rules *r, const struct group *g)
{
	const double slot = r->incident * (double)FR_NSEC_PER_SEC / FR_FACTS_SLOTS;
	uint64_t sum = 0;

	for (size_t i = 0; i < FR_FACTS_SLOTS; i++)
		sum += (double)g->most->slot_ns[i] >= 0.7 * slot ? g->most->slot_ns[i] : 0;
	return sum;
}

static bool is_library(const struct rules *r, uint32_t frame)
{
	const struct fr_frames *frames = fr_profile_frames(r->profile);
	const struct fr_code_object *o = fr_frames_object(frames, fr_frames_get(frames, frame)->object);

	return o->kind == FR_OBJECT_FILE && strstr(o->short_name, ".so");
}

/* Describes the processes that waited for a CPU meanwhile. */
static void add_victims(struct fr_finding *x, const struct rules *r, const struct group *hog)
{
	const struct group *most = NULL;

	for (const struct group *g = r->groups; g; g = g->hh.next)
		if (g != hog && (!most || g->sums[FR_INCIDENT].wait_ns[FR_WAIT_CPU] >
						 most->sums[FR_INCIDENT].wait_ns[FR_WAIT_CPU]))
			most = g;
	if (most && SECONDS(most->sums[FR_INCIDENT].wait_ns[FR_WAIT_CPU]) > WAIT_MIN * r->incident)
		evidence(x, "others waited for a CPU: %s most, %.2f s, up to %.1f ms", most->comm,
			SECONDS(most->sums[FR_INCIDENT].wait_ns[FR_WAIT_CPU]), MS(most->wait_max_ns[FR_WAIT_CPU]));
}

/* The rules about CPU time exclude each other: the kind of code decides. */
static int rule_cpu(struct rules *r, const struct group *g)
{
	const struct fr_sums *b = &g->sums[FR_BEFORE], *s = &g->sums[FR_INCIDENT];
	const double extra = more(r, b->cpu_ns, s->cpu_ns);
	const struct fr_frames *frames = fr_profile_frames(r->profile);
	const char *rule = "cpu-hog", *why = "";
	struct fr_finding *x;
	struct hot hot;
	char name[64];

	if (extra < CPU_MIN * r->incident || share_of(s, FR_CODE_RECLAIM) > 0.3 || share_of(s, FR_CODE_FORK) > 0.4)
		return 0;
	if (find_hot(r, g, &hot) < 0)
		return -ENOMEM;
	if (share_of(s, FR_CODE_TIMER | FR_CODE_SIGNAL) > 0.35) {
		rule = "timer-storm";
		why = ", most of it for timers and signals";
	} else if (share_of(s, FR_CODE_FAULT) > 0.4) {
		rule = "page-fault-storm";
		why = ", most of it in page faults";
	} else if (share_of(s, FR_CODE_SPIN) > 0.3) {
		rule = "spin-lock";
		why = ", most of it in spin locks";
	} else if (share_of(s, FR_CODE_NETWORK) > 0.4) {
		rule = "network-load";
		why = ", most of it in the network";
	} else if (hot.share > 0.5 && is_library(r, hot.frame)) {
		rule = "hot-function";
		why = ", most of it in one function of a library";
	}
	if (!strcmp(rule, "cpu-hog") || !strcmp(rule, "hot-function"))
		if (extra < HOG_MIN * r->incident && burst_of(r, g) < BURST_NS)
			return 0;
	x = add_finding(r, rule, extra / r->incident, g->most);
	if (!x)
		return -ENOMEM;
	headline(x, "%s used %.2f s of CPU time in the last %.1f s%s", name_group(g, name), SECONDS(s->cpu_ns), r->incident,
		why);
	compare(x, r, "CPU time", b->cpu_ns, s->cpu_ns);
	if (hot.share > 0) {
		const struct fr_frame *frame = fr_frames_get(frames, hot.frame);

		x->stack = hot.stack;
		evidence(x, "hottest function: %s in %s, %.0f %% of its samples", frame->name,
			fr_frames_object(frames, frame->object)->short_name, 100 * hot.share);
	}
	add_victims(x, r, g);
	return 0;
}

/* --- locks --- */

/* The waits that one thread caused. */
struct root {
	UT_hash_handle hh;
	uint32_t tid;
	uint64_t wait_ns, waits;
	const struct fr_wait_fact *longest, *shown;
	struct fr_chain chain; /* of the one that is shown */
};

static int add_lock_wait(const struct fr_chains *chains, struct root **roots, const struct fr_wait_fact *w)
{
	struct fr_chain chain;
	struct root *root;
	uint32_t tid;

	fr_chains_follow(chains, w, &chain);
	tid = chain.n ? chain.links[chain.n - 1].tid : 0;
	root = FR_HASH_FIND(*roots, tid, tid);
	if (!root)
		root = FR_HASH_NEW(*roots, tid, tid);
	if (!root)
		return -ENOMEM;
	root->wait_ns += w->blocked_ns;
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

static const char *name_thread(const struct rules *r, uint32_t pid, uint32_t tid)
{
	const struct fr_task *task = fr_profile_find_thread(r->profile, pid, tid);

	return task ? task->comm : "?";
}

static const char *innermost(const struct rules *r, uint32_t stack, bool user)
{
	const struct fr_stacks *stacks = fr_profile_stacks(r->profile);
	const struct fr_frames *frames = fr_profile_frames(r->profile);

	for (; stack != FR_STACK_NONE; stack = stacks->nodes[stack].parent) {
		const struct fr_frame *f = fr_frames_get(frames, stacks->nodes[stack].frame);
		const enum fr_object_kind kind = fr_frames_object(frames, f->object)->kind;

		if (!user || (kind == FR_OBJECT_FILE && !strstr(fr_frames_object(frames, f->object)->short_name, "libc.")))
			return f->name;
	}
	return "?";
}

static void describe_link(const struct rules *r, const struct fr_link *link, char ret[static 160])
{
	static const char *const doing[_FR_WAIT_N] = {[FR_WAIT_CPU] = "waited for a CPU",
		[FR_WAIT_LOCK] = "waited for a lock",
		[FR_WAIT_DISK] = "waited for the disk",
		[FR_WAIT_RECLAIM] = "waited for memory",
		[FR_WAIT_SERVER] = "waited for a file server",
		[FR_WAIT_UNKNOWN] = "was blocked in the kernel",
		[FR_WAIT_SLEEP] = "slept",
		[FR_WAIT_IDLE] = "waited"};

	if (link->doing == FR_LINK_RAN)
		snprintf(ret, 160, "ran in %.100s", innermost(r, link->stack, true));
	else
		snprintf(ret, 160, "%s in %.100s", doing[link->wait->kind], innermost(r, link->wait->stack, true));
}

static int report_lock(struct rules *r, const struct root *root)
{
	const struct fr_task *victim = fr_profile_task(r->profile, root->shown->task);
	const struct fr_link *last = root->chain.n ? &root->chain.links[root->chain.n - 1] : NULL;
	const struct fr_process_facts *who = last ? fr_facts_find(r->facts, last->pid) : NULL;
	struct fr_finding *x = add_finding(r, "lock", SPECIFIC + SECONDS(root->wait_ns) / r->incident, who);
	char what[160];

	if (!x)
		return -ENOMEM;
	if (last) {
		x->pid = last->pid;
		x->tid = last->tid;
		describe_link(r, last, what);
		headline(x, "%s (pid %u, thread %u \"%s\") held up others for %.0f ms: it %s", who && who->comm ? who->comm : "?",
			last->pid, last->tid, name_thread(r, last->pid, last->tid), MS(root->longest->blocked_ns), what);
	} else {
		headline(x, "%s (pid %u) waited up to %.0f ms for a lock", victim->comm, victim->pid,
			MS(root->longest->blocked_ns));
	}
	evidence(x, "%llu waits for locks, %.2f s together, up to %.1f ms", (unsigned long long)root->waits,
		SECONDS(root->wait_ns), MS(root->longest->blocked_ns));
	evidence(x, "%s (thread %u) waited %.1f ms in %s", victim->comm, victim->tid, MS(root->shown->blocked_ns),
		innermost(r, root->shown->stack, true));
	for (size_t i = 0; i < root->chain.n; i++) {
		describe_link(r, &root->chain.links[i], what);
		evidence(x, "%*s%s (thread %u) woke it, and before that %s", (int)(2 * i + 2), "",
			name_thread(r, root->chain.links[i].pid, root->chain.links[i].tid), root->chain.links[i].tid, what);
	}
	x->stack = last && last->doing == FR_LINK_RAN ? last->stack : last ? last->wait->stack : root->longest->stack;
	return 0;
}

static int rule_locks(struct rules *r)
{
	const struct fr_wait_fact *waits = (const void *)r->facts->waits.data;
	const struct fr_sums *before = &r->facts->all[FR_BEFORE], *now = &r->facts->all[FR_INCIDENT];
	struct fr_chains *chains;
	struct root *roots = NULL;
	int x;

	if (!is_more(r, before->wait_ns[FR_WAIT_LOCK], now->wait_ns[FR_WAIT_LOCK]))
		return 0;
	x = fr_chains_new(r->profile, r->facts, &chains);
	if (x < 0)
		return x;
	for (size_t i = 0; i < r->facts->waits.len / sizeof(*waits) && x == 0; i++)
		if (waits[i].kind == FR_WAIT_LOCK)
			x = add_lock_wait(chains, &roots, &waits[i]);
	for (const struct root *root = roots; root && x == 0; root = root->hh.next)
		if (SECONDS(root->wait_ns) >= LOCK_MIN * r->incident && root->longest->blocked_ns >= LOCK_MAX_MIN_NS)
			x = report_lock(r, root);
	FR_HASH_CLEAR(roots, free);
	fr_chains_free(chains);
	return x;
}

static int rules_of_group(struct rules *r, const struct group *g)
{
	int x = rule_throttling(r, g);

	if (x == 0)
		x = rule_reclaim(r, g);
	if (x == 0)
		x = rule_storage(r, g, FR_WAIT_DISK, "disk", "the disk");
	if (x == 0)
		x = rule_storage(r, g, FR_WAIT_SERVER, "file-server", "the server of a file system");
	if (x == 0)
		x = rule_storage(r, g, FR_WAIT_UNKNOWN, "blocked", "the kernel, uninterruptibly");
	return x == 0 ? rule_cpu(r, g) : x;
}

static int compare_findings(const void *x, const void *y)
{
	const struct fr_finding *a = x, *b = y;

	return a->score > b->score ? -1 : a->score < b->score;
}

int fr_rules_run(const struct fr_profile *p, const struct fr_facts *f, struct fr_findings *ret)
{
	struct rules r = {.profile = p,
		.facts = f,
		.found = ret,
		.before = fr_facts_seconds(f, FR_BEFORE),
		.incident = fr_facts_seconds(f, FR_INCIDENT)};
	int x;

	*ret = (struct fr_findings){0};
	x = make_groups(&r);
	if (x == 0)
		x = rule_forks(&r);
	if (x == 0)
		x = rule_locks(&r);
	for (const struct group *g = r.groups; g && x == 0; g = g->hh.next)
		x = rules_of_group(&r, g);
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
