// SPDX-License-Identifier: GPL-2.0-or-later
/* The rule about waits that have not ended. */
#include "base/cleanup.h"
#include "report/rules_private.h"
#include "sideband/hash.h"

#include <errno.h>

#define STUCK_NS (2 * FR_NSEC_PER_SEC)
#define SLOW_NS (10 * FR_NSEC_PER_SEC) /* a slow disk is no stuck disk: other rules find it */
#define DEADLOCK_MIN 2		       /* threads */
#define SCORE 10.0		       /* nothing else is worse: it does not end */

/* A process with threads that wait. */
struct stuck {
	UT_hash_handle hh;
	uint32_t pid;
	size_t n_blocked; /* in state D */
	size_t n_futex;	  /* for a lock, a condition, or the end of a thread */
	bool is_timed;	  /* timers ended such waits, so these will end, too */
	const struct fr_wait_fact *longest, *shortest;
};

static uint32_t pid_of(const struct fr_rules *r, const struct fr_wait_fact *w)
{
	return fr_profile_task(r->profile, w->task)->pid;
}

static bool is_blocked(const struct fr_wait_fact *w)
{
	const bool is_slow =
		w->kind == FR_WAIT_DISK || w->kind == FR_WAIT_RECLAIM || w->kind == FR_WAIT_SERVER;

	return w->is_open && w->state == 'D' && !(w->classes & FR_CODE_KERNEL) &&
	       w->blocked_ns >= (is_slow ? SLOW_NS : STUCK_NS);
}

static bool is_futex(const struct fr_wait_fact *w)
{
	return w->is_open && w->state == 'S' && w->classes & FR_CODE_FUTEX && w->blocked_ns >= STUCK_NS;
}

static int add_wait(struct stuck **all, uint32_t pid, const struct fr_wait_fact *w)
{
	struct stuck *s = FR_HASH_FIND(*all, pid, pid);

	if (!s)
		s = FR_HASH_NEW(*all, pid, pid);
	if (!s)
		return -ENOMEM;
	s->n_blocked += is_blocked(w);
	s->n_futex += is_futex(w);
	if (!s->longest || w->blocked_ns > s->longest->blocked_ns)
		s->longest = w;
	if (!s->shortest || w->blocked_ns < s->shortest->blocked_ns)
		s->shortest = w;
	return 0;
}

/* Only another thread ends the wait of a futex. If all threads of a process wait for one, nobody is left. If
   they did so before the recording began, nobody has seen them run: a program that has nothing to do until a
   signal comes looks the same. */
static bool is_deadlock(const struct fr_rules *r, const struct stuck *s)
{
	const struct fr_process_facts *p = fr_facts_find(r->facts, s->pid);

	return p && s->n_futex >= DEADLOCK_MIN && s->n_futex + s->n_blocked == p->n_threads && !s->is_timed &&
	       FR_SECONDS(s->shortest->blocked_ns) < r->before + r->incident;
}

static const char *name_wait(const struct fr_wait_fact *w)
{
	static const char *const names[_FR_WAIT_N] = {[FR_WAIT_LOCK] = "a lock of the kernel",
		[FR_WAIT_DISK] = "the disk",
		[FR_WAIT_RECLAIM] = "memory",
		[FR_WAIT_SERVER] = "the server of a file system",
		[FR_WAIT_UNKNOWN] = "something in the kernel"};

	if (w->classes & FR_CODE_CHILD)
		return "its child";
	if (w->classes & FR_CODE_FUTEX)
		return "a lock, a condition or the end of a thread";
	return names[w->kind] ? names[w->kind] : "something";
}

static void add_threads(struct fr_finding *x, const struct fr_rules *r, const struct stuck *s)
{
	const struct fr_wait_fact *waits;
	size_t n;

	waits = fr_facts_waits(r->facts, &n);
	for (size_t i = 0; i < n; i++) {
		const struct fr_task *task = fr_profile_task(r->profile, waits[i].task);

		if (task->pid == s->pid && (is_blocked(&waits[i]) || is_futex(&waits[i])))
			fr_finding_evidence(x, "%s (thread %u) has waited %.1f s for %s, in state %c, in %s",
				task->comm, task->tid, FR_SECONDS(waits[i].blocked_ns), name_wait(&waits[i]),
				waits[i].state, fr_rule_innermost(r, waits[i].stack, false));
	}
}

static int report(struct fr_rules *r, const struct stuck *s)
{
	const struct fr_process_facts *who = fr_facts_find(r->facts, s->pid);
	const struct fr_task *task = fr_profile_task(r->profile, s->longest->task);
	const bool deadlock = is_deadlock(r, s);
	const size_t n = deadlock ? s->n_futex + s->n_blocked : s->n_blocked;
	struct fr_finding *x = fr_finding_add(r, "stuck", SCORE + (double)n, who);

	if (!x)
		return -ENOMEM;
	x->tid = task->tid;
	x->stack = s->longest->stack;
	x->certainty = deadlock ? FR_CERTAINTY_MEDIUM : FR_CERTAINTY_HIGH;
	x->why = deadlock ? "all its threads wait for each other, unless another process shares its memory"
			  : "the waits had not ended at the end of the recording";
	if (deadlock)
		fr_finding_headline(x,
			"%s (pid %u) is in a deadlock: all of its %zu threads wait, and none can wake "
			"another",
			who->comm, s->pid, n);
	else
		fr_finding_headline(x,
			"%s (pid %u) is stuck: %zu of its threads waited for %s for %.1f s, until the end",
			who->comm, s->pid, n, name_wait(s->longest), FR_SECONDS(s->longest->blocked_ns));
	add_threads(x, r, s);
	return 0;
}

/* Notes the processes in which a timer ended the wait for a futex. */
static void find_timed(const struct fr_rules *r, struct stuck *all)
{
	const struct fr_wait_fact *waits = (const void *)r->facts->waits.data;

	for (size_t i = 0; i < r->facts->waits.len / sizeof(*waits) && all; i++) {
		const uint32_t pid = pid_of(r, &waits[i]);
		struct stuck *s = !waits[i].is_open && waits[i].is_timed && waits[i].classes & FR_CODE_FUTEX
					  ? FR_HASH_FIND(all, pid, pid)
					  : NULL;

		if (s)
			s->is_timed = true;
	}
}

int fr_rule_stuck(struct fr_rules *r, const struct fr_rule_group *g)
{
	const struct fr_wait_fact *waits;
	struct stuck *all = NULL;
	size_t n;
	int x = 0;

	waits = fr_facts_waits(r->facts, &n);
	for (size_t i = 0; i < n && x == 0; i++)
		if (is_blocked(&waits[i]) || is_futex(&waits[i]))
			x = add_wait(&all, pid_of(r, &waits[i]), &waits[i]);
	find_timed(r, all);
	for (const struct stuck *s = all; s && x == 0; s = s->hh.next)
		if (s->n_blocked || is_deadlock(r, s))
			x = report(r, s);
	FR_HASH_CLEAR(all, free);
	return x;
}
