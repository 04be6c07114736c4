// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/cleanup.h"
#include "base/clock.h"
#include "report/facts.h"

#include <errno.h>
#include <stdlib.h>

#define WAIT_SAMPLES 3			  /* a wait is judged if a busy CPU has so many samples in its time */
#define WAIT_MAX_NS (2 * FR_NSEC_PER_SEC) /* a cgroup gets a new quota each period, which has 1 s at most */
#define IDLE_PARTS 10 /* a longer wait is none if the CPUs were idle for one of so many parts of it */
#define LOOK_UPS_MAX (1u << 26) /* so that a hostile file does not take long */

static int compare_cpus(const void *x, const void *y)
{
	const struct fr_cpu_fact *a = x, *b = y;

	if (a->cpu != b->cpu)
		return a->cpu < b->cpu ? -1 : 1;
	return a->time < b->time ? -1 : a->time > b->time;
}

/* Returns the index of the first sample of CPU at TIME or later. CPUS is sorted by CPU and time. */
static size_t find_cpu(const struct fr_cpu_fact *cpus, size_t n, uint32_t cpu, uint64_t time)
{
	const struct fr_cpu_fact wanted = {.cpu = cpu, .time = time};
	size_t low = 0, high = n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (compare_cpus(&cpus[middle], &wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* What the CPUs did while a thread waited for one. */
struct meanwhile {
	uint64_t samples; /* that a busy CPU has in this time */
	uint64_t idle;	  /* of them, those that even the busiest CPU does not have */
	bool ran;	  /* there is a sample of the thread itself */
};

/* The samples of CPU time in the incident. */
struct queues {
	const struct fr_profile *profile;
	struct fr_facts *facts;
	const struct fr_cpu_fact *cpus; /* sorted by CPU and time */
	size_t n, looked_up;
};

/* The thread can have waited in the queue of any CPU. */
static void look_at(struct queues *q, const struct fr_wait_fact *w, struct meanwhile *ret)
{
	const uint64_t begin_ns = w->end_ns - w->runqueue_ns;
	const uint32_t tid = fr_profile_task(q->profile, w->task)->tid;
	uint64_t busiest = 0;
	size_t next;

	*ret = (struct meanwhile){.samples = w->runqueue_ns / q->facts->sample_ns};
	for (size_t at = 0; at < q->n && !ret->ran; at = next) {
		const uint32_t cpu = q->cpus[at].cpu;
		const size_t first = find_cpu(q->cpus, q->n, cpu, begin_ns),
			     end = find_cpu(q->cpus, q->n, cpu, w->end_ns);

		for (size_t i = first; i < end && !ret->ran; i++)
			ret->ran = fr_profile_task(q->profile, q->cpus[i].task)->tid == tid;
		busiest = FR_MAX(busiest, (uint64_t)(end - first));
		next = cpu == UINT32_MAX ? q->n : find_cpu(q->cpus, q->n, cpu + 1, 0);
		q->looked_up += 1 + (end > first ? end - first : 0);
	}
	ret->idle = ret->samples - FR_MIN(ret->samples, busiest);
}

/* A machine can hide that a thread got a CPU. Then the thread seems to wait, although it runs or sleeps. */
static bool is_hidden(const struct fr_wait_fact *w, const struct meanwhile *m)
{
	return m->ran || (w->runqueue_ns > WAIT_MAX_NS && m->idle > m->samples / IDLE_PARTS);
}

static void subtract(struct fr_sums *s, uint64_t ns)
{
	s->wait_ns[FR_WAIT_CPU] -= FR_MIN(ns, s->wait_ns[FR_WAIT_CPU]);
	s->waits[FR_WAIT_CPU] -= s->waits[FR_WAIT_CPU] > 0;
}

/* A thread that was preempted and could run, while the CPUs were idle, was not allowed to: its cgroup had
   used up its quota. */
static void judge_wait(struct queues *q, const struct fr_wait_fact *w)
{
	struct fr_facts *f = q->facts;
	struct fr_process_facts *x =
		FR_HASH_FIND(f->processes, pid, fr_profile_task(q->profile, w->task)->pid);
	const uint64_t counted_ns = FR_MIN(w->runqueue_ns, fr_facts_ns(f, FR_INCIDENT));
	struct meanwhile m = {0};

	if (!x)
		return;
	if (w->runqueue_ns >= WAIT_SAMPLES * f->sample_ns && q->looked_up < LOOK_UPS_MAX)
		look_at(q, w, &m);
	if (is_hidden(w, &m)) {
		subtract(&x->sums[FR_INCIDENT], counted_ns);
		subtract(&f->all[FR_INCIDENT], counted_ns);
		return;
	}
	x->sums[FR_INCIDENT].longest_ns[FR_WAIT_CPU] =
		FR_MAX(x->sums[FR_INCIDENT].longest_ns[FR_WAIT_CPU], w->runqueue_ns);
	if (w->state != 'R' || w->blocked_ns || w->runqueue_ns > WAIT_MAX_NS || m.idle <= m.samples / 2)
		return;
	x->idle_cpu_ns += m.idle * f->sample_ns;
	x->idle_cpu_waits++;
}

int fr_facts_judge_queues(const struct fr_profile *p, struct fr_facts *f)
{
	_cleanup_buf_ struct fr_buf sorted = {0};
	struct queues q = {.profile = p, .facts = f, .n = f->cpu.len / sizeof(struct fr_cpu_fact)};
	const struct fr_wait_fact *waits;
	size_t n_waits;

	/* Samples that the filter left out would look like an idle CPU. */
	if (q.n == 0 || !f->sample_ns || fr_profile_is_filtered(p))
		return 0;
	if (fr_buf_append(&sorted, f->cpu.data, f->cpu.len) < 0)
		return -ENOMEM;
	q.cpus = (const void *)sorted.data;
	qsort(sorted.data, q.n, sizeof(*q.cpus), compare_cpus);
	waits = fr_facts_waits(f, &n_waits);
	for (size_t i = 0; i < n_waits; i++)
		if (waits[i].runqueue_ns)
			judge_wait(&q, &waits[i]);
	return 0;
}
