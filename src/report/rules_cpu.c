// SPDX-License-Identifier: GPL-2.0-or-later
/* Rules about CPU time. */
#include "base/cleanup.h"
#include "report/rules_private.h"
#include "sideband/hash.h"

#include <errno.h>
#include <string.h>

/* Shares of one CPU over the incident. */
#define CPU_MIN 0.08
#define HOG_MIN 0.25   /* for CPU time of no special kind */
#define WANTED_MIN 0.5 /* the same, together with the waits for a CPU */
/* What hardly ever happens otherwise is telling, also if it takes little CPU time. */
#define RARE 0.25
#define FUNCTION_MIN 0.8 /* of its CPU time a group has in one function and in the kernel that it entered */
#define SAMPLES_MIN 50	 /* for a high certainty: the error is then below 15 % */
#define BURST_NS (1500 * FR_NSEC_PER_MSEC) /* or so much CPU time in parts in which a CPU was nearly full */

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
	double share;	    /* of the samples; 0: there are none */
	double with_kernel; /* the same, with those in the kernel that it entered; 0: it is of the kernel */
};

/* Returns the innermost function in STACK that is of a program and has a name, or FR_STACK_NONE. */
static uint32_t program_function(const struct fr_rules *r, uint32_t stack)
{
	const struct fr_stacks *stacks = fr_profile_stacks(r->profile);
	const struct fr_frames *frames = fr_profile_frames(r->profile);

	for (; stack != FR_STACK_NONE; stack = stacks->nodes[stack].parent) {
		const struct fr_frame *f = fr_frames_get(frames, stacks->nodes[stack].frame);

		if (f->is_known && fr_frames_object(frames, f->object)->kind == FR_OBJECT_FILE)
			return f->same;
	}
	return FR_STACK_NONE;
}

static int find_hot(const struct fr_rules *r, const struct fr_rule_group *g, struct hot *ret)
{
	const struct fr_stacks *stacks = fr_profile_stacks(r->profile);
	const struct fr_frames *names = fr_profile_frames(r->profile);
	const struct fr_cpu_fact *cpu = (const void *)r->facts->cpu.data;
	struct count *frames = NULL, *of_program = NULL, *of_stack = NULL;
	const struct count *most, *entered;
	uint64_t all = 0;
	int x = 0;

	*ret = (struct hot){.stack = FR_STACK_NONE};
	for (size_t i = 0; i < r->facts->cpu.len / sizeof(*cpu) && x == 0; i++) {
		const struct fr_process_facts *p =
			fr_facts_find(r->facts, fr_profile_task(r->profile, cpu[i].task)->pid);

		if (!p || !fr_rule_is_in(r, g, p) || cpu[i].stack == FR_STACK_NONE)
			continue;
		all++;
		x = count_up(&frames, fr_frames_get(names, stacks->nodes[cpu[i].stack].frame)->same, 1);
		if (x == 0)
			x = count_up(&of_program, program_function(r, cpu[i].stack), 1);
		if (x == 0)
			x = count_up(&of_stack, cpu[i].stack, 1);
	}
	most = find_most(frames);
	if (most && x == 0) {
		ret->frame = most->key;
		ret->share = (double)most->n / (double)all;
		entered = FR_HASH_FIND(of_program, key, most->key);
		ret->with_kernel = entered ? (double)entered->n / (double)all : 0;
		ret->stack = find_most(of_stack)->key;
	}
	FR_HASH_CLEAR(frames, free);
	FR_HASH_CLEAR(of_program, free);
	FR_HASH_CLEAR(of_stack, free);
	return x;
}

static uint64_t cpu_of(const struct fr_process_facts *p, enum fr_wait kind)
{
	return p->sums[FR_INCIDENT].cpu_ns;
}

/* Returns the CPU time of P in those parts of the incident in which it used nearly a whole CPU. */
static uint64_t burst_of(const struct fr_rules *r, const struct fr_process_facts *p)
{
	const double slot = r->incident * (double)FR_NSEC_PER_SEC / FR_FACTS_SLOTS;
	uint64_t sum = 0;

	for (size_t i = 0; i < FR_FACTS_SLOTS; i++)
		sum += (double)p->slot_ns[i] >= 0.7 * slot ? p->slot_ns[i] : 0;
	return sum;
}

/* All functions without a name count as one, so they do not say that one function is hot. */
static bool is_library(const struct fr_rules *r, uint32_t frame)
{
	const struct fr_frames *frames = fr_profile_frames(r->profile);
	const struct fr_code_object *o = fr_frames_object(frames, fr_frames_get(frames, frame)->object);

	return fr_frames_get(frames, frame)->is_known && o->kind == FR_OBJECT_FILE &&
	       strstr(o->short_name, ".so");
}

/* Waits for a CPU that another thread had. */
static uint64_t queued_ns(const struct fr_rule_group *g)
{
	const uint64_t all = g->sums[FR_INCIDENT].wait_ns[FR_WAIT_CPU],
		       not_queued = FR_MAX(g->idle_cpu_ns, g->sums[FR_INCIDENT].throttled_ns);

	return all - FR_MIN(all, not_queued);
}

/* Describes the processes that waited for a CPU meanwhile. */
static void add_victims(struct fr_finding *x, const struct fr_rules *r, const struct fr_rule_group *hog)
{
	const struct fr_rule_group *most = NULL;

	for (const struct fr_rule_group *g = r->groups; g; g = g->hh.next)
		if (g != hog && (!most || queued_ns(g) > queued_ns(most)))
			most = g;
	if (most && FR_SECONDS(queued_ns(most)) > FR_RULE_WAIT_MIN * r->incident)
		fr_finding_evidence(x, "others waited for a CPU: %s most, %.2f s, up to %.1f ms", most->comm,
			FR_SECONDS(queued_ns(most)), FR_MS(most->sums[FR_INCIDENT].longest_ns[FR_WAIT_CPU]));
}

/* Kinds of code. The first one of which a group has SHARE of its CPU time decides; or WITH_FUNCTION, if
   nearly all of its CPU time belongs to one function. */
static const struct kind {
	const char *rule, *what;
	uint32_t classes;
	double share, with_function, bonus; /* WITH_FUNCTION 0: never; BONUS is added to the score */
} kinds[] = {
	{"timer-storm", ", most of it for timers and signals", FR_CODE_TIMER | FR_CODE_SIGNAL, 0.35, 0, RARE},
	/* On a virtual machine, most of the time of a page fault can be at the instruction that faults,
	   because the hypervisor handles a part of it. */
	{"page-fault-storm", ", much of it in page faults", FR_CODE_FAULT, 0.3, 0.2, 0},
	{"spin-lock", ", most of it in spin locks", FR_CODE_SPIN, 0.3, 0, RARE},
	{"network-load", ", most of it in the network", FR_CODE_NETWORK, 0.4, 0, 0},
	{"cpu-hog", ", most of it in system calls", FR_CODE_SYSCALL, 0.5, 0, 0},
	/* A large part of the time of short system calls is in the function that makes them. */
	{"cpu-hog", ", much of it in system calls", FR_CODE_SYSCALL, 0.35, 0, 0}};
static const struct kind library = {"hot-function", ", most of it in one function of a library", 0, 0.5, 0,
				 0},
			 other = {"cpu-hog", "", 0, 0, 0, 0};

static bool has_kind(const struct fr_sums *s, const struct hot *hot, const struct kind *kind)
{
	const double share = fr_sums_share(s, kind->classes);

	return share > kind->share ||
	       (kind->with_function > 0 && share > kind->with_function && hot->with_kernel > FUNCTION_MIN);
}

static const struct kind *find_kind(const struct fr_rules *r, const struct fr_sums *s, const struct hot *hot)
{
	for (size_t i = 0; i < FR_ARRAY_SIZE(kinds); i++)
		if (has_kind(s, hot, &kinds[i]))
			return &kinds[i];
	if (hot->share > library.share && is_library(r, hot->frame))
		return &library;
	return &other;
}

/* Returns whether the CPU time of a group, of no special kind, is enough to be a cause. On a full machine it
   gets less than it wants: the time that it waits for a CPU counts, too. */
static bool is_hog(const struct fr_rules *r, const struct fr_rule_group *g, double extra)
{
	const struct fr_sums *b = &g->sums[FR_BEFORE], *s = &g->sums[FR_INCIDENT];
	const double wanted = extra + fr_rules_more(r, b->wait_ns[FR_WAIT_CPU], s->wait_ns[FR_WAIT_CPU]);

	return extra >= HOG_MIN * r->incident || wanted >= WANTED_MIN * r->incident ||
	       burst_of(r, fr_rule_most(r, g, cpu_of, FR_WAIT_CPU)) >= BURST_NS;
}

static void describe_hot(struct fr_finding *x, const struct fr_rules *r, const struct hot *hot)
{
	const struct fr_frames *frames = fr_profile_frames(r->profile);
	const struct fr_frame *frame;

	x->stack = hot->stack;
	if (hot->share <= 0)
		return;
	frame = fr_frames_get(frames, hot->frame);
	fr_finding_evidence(x, "hottest function: %s in %s, %.0f %% of its samples", frame->name,
		fr_frames_object(frames, frame->object)->short_name, 100 * hot->share);
}

/* Code of a special kind is a finding also if there was as much before. Other CPU time is what a machine is
   for. */
static enum fr_verdict judge_cpu(
	const struct fr_rules *r, const struct fr_rule_group *g, const struct kind *kind, double extra)
{
	const bool is_special = kind >= kinds && kind < kinds + FR_ARRAY_SIZE(kinds);

	if (extra >= CPU_MIN * r->incident && (is_special || is_hog(r, g, extra)))
		return FR_VERDICT_NEW;
	return is_special && FR_SECONDS(g->sums[FR_INCIDENT].cpu_ns) >= HOG_MIN * r->incident
		       ? FR_VERDICT_CHRONIC
		       : FR_VERDICT_NORMAL;
}

int fr_rule_cpu(struct fr_rules *r, const struct fr_rule_group *g)
{
	const struct fr_sums *b = &g->sums[FR_BEFORE], *s = &g->sums[FR_INCIDENT];
	const double extra = fr_rules_more(r, b->cpu_ns, s->cpu_ns);
	const bool many = s->cpu_samples >= SAMPLES_MIN;
	const struct fr_process_facts *most;
	const struct kind *kind;
	enum fr_verdict v;
	struct fr_finding *x;
	struct hot hot;
	char name[64];

	/* Another rule says why it frees memory or makes processes. */
	if (FR_SECONDS(s->cpu_ns) < CPU_MIN * r->incident || fr_sums_share(s, FR_CODE_RECLAIM) > 0.3 ||
		fr_sums_share(s, FR_CODE_FORK) > 0.4)
		return 0;
	if (find_hot(r, g, &hot) < 0)
		return -ENOMEM;
	kind = find_kind(r, s, &hot);
	v = judge_cpu(r, g, kind, extra);
	if (v == FR_VERDICT_NORMAL)
		return 0;
	most = fr_rule_most(r, g, cpu_of, FR_WAIT_CPU);
	x = fr_finding_add(r, kind->rule,
		fr_rules_score(
			r, v, kind->bonus, v == FR_VERDICT_NEW ? extra * FR_NSEC_PER_SEC : (double)s->cpu_ns),
		most);
	if (!x)
		return -ENOMEM;
	x->certainty = many ? FR_CERTAINTY_HIGH : FR_CERTAINTY_MEDIUM;
	x->why = many ? "there are many samples of it" : "there are few samples of it";
	fr_finding_headline(x, "%s used %.2f s of CPU time in the last %.1f s%s",
		fr_rule_group_name(g, most, name), FR_SECONDS(s->cpu_ns), r->incident, kind->what);
	fr_finding_as_before(x, v);
	fr_finding_compare(x, r, "CPU time", b->cpu_ns, s->cpu_ns);
	describe_hot(x, r, &hot);
	add_victims(x, r, g);
	return 0;
}
