// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/chain.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>

struct fr_chains {
	const struct fr_profile *profile;
	const struct fr_facts *facts;
	const struct fr_wait_fact **waits; /* sorted by thread and end */
	size_t n;
};

static uint32_t tid_of(const struct fr_profile *p, uint32_t task)
{
	return fr_profile_task(p, task)->tid;
}

static int compare_waits(const void *x, const void *y, void *profile)
{
	const struct fr_wait_fact *a = *(const struct fr_wait_fact *const *)x,
				  *b = *(const struct fr_wait_fact *const *)y;
	const uint32_t a_tid = tid_of(profile, a->task), b_tid = tid_of(profile, b->task);

	if (a_tid != b_tid)
		return a_tid < b_tid ? -1 : 1;
	return a->end_ns < b->end_ns ? -1 : a->end_ns > b->end_ns;
}

int fr_chains_new(const struct fr_profile *p, const struct fr_facts *f, struct fr_chains **ret)
{
	const struct fr_wait_fact *waits = (const void *)f->waits.data;
	struct fr_chains *c = calloc(1, sizeof(*c));
	const size_t n = f->waits.len / sizeof(*waits);

	if (c)
		c->waits = reallocarray(NULL, n + 1, sizeof(*c->waits));
	if (!c || !c->waits) {
		free(c);
		return -ENOMEM;
	}
	c->profile = p;
	c->facts = f;
	c->n = n;
	for (size_t i = 0; i < n; i++)
		c->waits[i] = &waits[i];
	qsort_r(c->waits, n, sizeof(*c->waits), compare_waits, (void *)p);
	*ret = c;
	return 0;
}

struct fr_chains *fr_chains_free(struct fr_chains *c)
{
	if (c)
		free(c->waits);
	free(c);
	return NULL;
}

/* Returns the index of the first wait of TID that ends after TIME, or of a wait of a later thread. */
static size_t find_first(const struct fr_chains *c, uint32_t tid, uint64_t time)
{
	size_t low = 0, high = c->n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const uint32_t other = tid_of(c->profile, c->waits[middle]->task);

		if (other < tid || (other == tid && c->waits[middle]->end_ns <= time))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Returns the wait of TID that takes most of the time FROM … TO, and how much; or NULL. */
static const struct fr_wait_fact *find_longest(
	const struct fr_chains *c, uint32_t tid, uint64_t from, uint64_t to, uint64_t *ret_ns)
{
	const struct fr_wait_fact *longest = NULL;

	*ret_ns = 0;
	for (size_t i = find_first(c, tid, from); i < c->n && tid_of(c->profile, c->waits[i]->task) == tid; i++) {
		const struct fr_wait_fact *w = c->waits[i];
		const uint64_t begin = w->end_ns - w->runqueue_ns - w->blocked_ns;
		const uint64_t a = FR_MAX(begin, from), b = FR_MIN(w->end_ns, to);

		if (begin >= to)
			break;
		if (b > a && b - a > *ret_ns) {
			*ret_ns = b - a;
			longest = w;
		}
	}
	return longest;
}

/* Returns the stack of TID with the most samples in FROM … TO: the last one of them, because few stacks repeat
   exactly. */
static uint32_t find_stack(const struct fr_chains *c, uint32_t tid, uint64_t from, uint64_t to)
{
	const struct fr_cpu_fact *cpu = (const void *)c->facts->cpu.data;
	const size_t n = c->facts->cpu.len / sizeof(*cpu);
	size_t low = 0, high = n;
	uint32_t stack = FR_STACK_NONE;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (cpu[middle].time < from)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < n && cpu[low].time <= to; low++)
		if (tid_of(c->profile, cpu[low].task) == tid)
			stack = cpu[low].stack;
	return stack;
}

static bool is_in(const struct fr_chain *chain, uint32_t tid)
{
	for (size_t i = 0; i < chain->n; i++)
		if (chain->links[i].tid == tid)
			return true;
	return false;
}

void fr_chains_follow(const struct fr_chains *c, const struct fr_wait_fact *w, struct fr_chain *ret)
{
	const uint32_t first = tid_of(c->profile, w->task);

	ret->n = 0;
	while (ret->n < FR_CHAIN_MAX && w->waker_tid && w->waker_tid != first && !is_in(ret, w->waker_tid)) {
		struct fr_link *link = &ret->links[ret->n++];
		const uint64_t to = w->end_ns - w->runqueue_ns, from = to - w->blocked_ns;
		uint64_t ns;

		*link = (struct fr_link){.pid = w->waker_pid, .tid = w->waker_tid, .stack = FR_STACK_NONE};
		link->wait = find_longest(c, link->tid, from, to, &ns);
		if (!link->wait || ns < w->blocked_ns / 2) {
			link->wait = NULL;
			link->stack = find_stack(c, link->tid, from, to);
			return;
		}
		link->doing = FR_LINK_WAITED;
		w = link->wait;
		if (w->kind != FR_WAIT_LOCK && w->kind != FR_WAIT_IDLE)
			return;
	}
}
