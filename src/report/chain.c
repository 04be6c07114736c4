// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/chain.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>

#define SAMPLES_MAX (1u << 16) /* of all threads, that are looked at for one link */
#define LARGE_PARTS 4	       /* one of so many parts is large */

struct fr_chains {
	const struct fr_profile *profile;
	const struct fr_facts *facts;
	const struct fr_wait_fact *waits;
	uint32_t *order; /* indexes of the waits that have ended, sorted by thread and end */
	size_t n;
};

static uint32_t tid_of(const struct fr_profile *p, uint32_t task)
{
	return fr_profile_task(p, task)->tid;
}

/* Returns the wait number I in this order. */
static const struct fr_wait_fact *wait_at(const struct fr_chains *c, size_t i)
{
	return &c->waits[c->order[i]];
}

static int compare_waits(const void *x, const void *y, void *chains)
{
	const struct fr_chains *c = chains;
	const struct fr_wait_fact *a = &c->waits[*(const uint32_t *)x], *b = &c->waits[*(const uint32_t *)y];
	const uint32_t a_tid = tid_of(c->profile, a->task), b_tid = tid_of(c->profile, b->task);

	if (a_tid != b_tid)
		return a_tid < b_tid ? -1 : 1;
	return a->end_ns < b->end_ns ? -1 : a->end_ns > b->end_ns;
}

int fr_chains_new(const struct fr_profile *p, const struct fr_facts *f, struct fr_chains **ret)
{
	struct fr_chains *c = calloc(1, sizeof(*c));
	const size_t n = f->waits.len / sizeof(struct fr_wait_fact);

	if (!c)
		return -ENOMEM;
	c->profile = p;
	c->facts = f;
	c->waits = (const void *)f->waits.data;
	c->order = calloc(n + 1, sizeof(*c->order));
	if (!c->order) {
		fr_chains_free(c);
		return -ENOMEM;
	}
	for (size_t i = 0; i < n; i++)
		if (!c->waits[i].is_open)
			c->order[c->n++] = (uint32_t)i;
	qsort_r(c->order, c->n, sizeof(*c->order), compare_waits, c);
	*ret = c;
	return 0;
}

struct fr_chains *fr_chains_free(struct fr_chains *c)
{
	if (c)
		free(c->order);
	free(c);
	return NULL;
}

/* Returns the index of the first wait of TID that ends after TIME, or of a wait of a later thread. */
static size_t find_first(const struct fr_chains *c, uint32_t tid, uint64_t time)
{
	size_t low = 0, high = c->n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const uint32_t other = tid_of(c->profile, wait_at(c, middle)->task);

		if (other < tid || (other == tid && wait_at(c, middle)->end_ns <= time))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* What a thread did in a part of the recording. */
struct activity {
	uint64_t ran_ns, queued_ns, blocked_ns, longest_ns;
	const struct fr_wait_fact *longest; /* the wait that takes most of the time; NULL: there is none */
	uint32_t stack;			    /* of the last sample */
};

/* Returns how much of A … B is in FROM … TO. */
static uint64_t overlap(uint64_t a, uint64_t b, uint64_t from, uint64_t to)
{
	a = FR_MAX(a, from);
	b = FR_MIN(b, to);
	return b > a ? b - a : 0;
}

static void add_waits(
	const struct fr_chains *c, uint32_t tid, uint64_t from, uint64_t to, struct activity *ret)
{
	for (size_t i = find_first(c, tid, from); i < c->n && tid_of(c->profile, wait_at(c, i)->task) == tid;
		i++) {
		const struct fr_wait_fact *w = wait_at(c, i);
		const uint64_t woken = w->end_ns - w->runqueue_ns, begin = woken - w->blocked_ns;
		const uint64_t ns = overlap(begin, w->end_ns, from, to);

		if (begin >= to)
			break;
		ret->queued_ns += overlap(woken, w->end_ns, from, to);
		ret->blocked_ns += overlap(begin, woken, from, to);
		if (ns > ret->longest_ns) {
			ret->longest_ns = ns;
			ret->longest = w;
		}
	}
}

static void add_samples(
	const struct fr_chains *c, uint32_t tid, uint64_t from, uint64_t to, struct activity *ret)
{
	const struct fr_cpu_fact *cpu = (const void *)c->facts->cpu.data;
	const size_t n = c->facts->cpu.len / sizeof(*cpu);
	size_t low = 0, high = n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (cpu[middle].time < from)
			low = middle + 1;
		else
			high = middle;
	}
	high = low + FR_MIN(n - low, (size_t)SAMPLES_MAX);
	for (; low < high && cpu[low].time <= to; low++)
		if (tid_of(c->profile, cpu[low].task) == tid) {
			ret->ran_ns += cpu[low].ns;
			ret->stack = cpu[low].stack;
		}
}

static void describe(const struct activity *a, uint64_t all_ns, struct fr_link *link)
{
	const struct fr_wait_fact *w = a->longest;

	if (w && a->blocked_ns >= all_ns / 2 && w->blocked_ns >= w->runqueue_ns)
		link->doing = FR_LINK_WAITED;
	else if (a->ran_ns > 0 && (a->ran_ns >= a->queued_ns || a->ran_ns >= all_ns / LARGE_PARTS))
		link->doing = FR_LINK_RAN;
	else if (w && a->queued_ns >= all_ns / LARGE_PARTS)
		link->doing = FR_LINK_QUEUED;
	link->wait = link->doing == FR_LINK_WAITED || link->doing == FR_LINK_QUEUED ? w : NULL;
	link->stack = link->doing == FR_LINK_RAN ? a->stack : FR_STACK_NONE;
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
		struct activity a = {.stack = FR_STACK_NONE};

		*link = (struct fr_link){.pid = w->waker_pid, .tid = w->waker_tid};
		add_waits(c, link->tid, from, to, &a);
		if (a.blocked_ns < w->blocked_ns / 2)
			add_samples(c, link->tid, from, to, &a);
		describe(&a, w->blocked_ns, link);
		if (link->doing != FR_LINK_WAITED || a.longest_ns < w->blocked_ns / 2)
			return; /* several waits, one after the other, have no single waker */
		w = link->wait;
		if (w->kind != FR_WAIT_LOCK && w->kind != FR_WAIT_IDLE && w->kind != FR_WAIT_PEER)
			return;
	}
}
