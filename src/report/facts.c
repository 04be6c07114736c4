// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/facts.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "sideband/blob.h"
#include "sideband/hash.h"

#include <errno.h>
#include <string.h>

#define INCIDENT_NS (10 * FR_NSEC_PER_SEC) /* the length of the incident if the recording is long enough */
#define WAITS_MAX (1u << 20)
#define CPU_MAX (1u << 21)
#define STUCK_SAMPLES 3 /* a wait for a CPU is judged if a busy CPU has at least so many samples in its time */

struct reader {
	struct fr_facts *facts;
	const struct fr_view *also;
	const struct fr_profile *profile;
};

double fr_facts_seconds(const struct fr_facts *f, int part)
{
	const uint64_t ns = part == FR_BEFORE ? f->incident_ns - f->from_ns : f->to_ns - f->incident_ns;

	return (double)ns / (double)FR_NSEC_PER_SEC;
}

const struct fr_process_facts *fr_facts_find(const struct fr_facts *f, uint32_t pid)
{
	return FR_HASH_FIND(f->processes, pid, pid);
}

static struct fr_process_facts *find_or_add(struct fr_facts *f, uint32_t pid)
{
	struct fr_process_facts *p = FR_HASH_FIND(f->processes, pid, pid);

	if (!p)
		p = FR_HASH_NEW(f->processes, pid, pid);
	return p;
}

static int part_of(const struct fr_facts *f, uint64_t time)
{
	return time < f->incident_ns ? FR_BEFORE : FR_INCIDENT;
}

static void add_classes(struct fr_sums *s, uint32_t classes, uint64_t ns)
{
	for (; classes; classes &= classes - 1)
		s->class_ns[__builtin_ctz(classes)] += ns;
}

static int add_function(struct reader *r, uint32_t stack, int part, uint64_t ns)
{
	struct fr_function_facts *f;
	uint32_t frame;

	if (stack == FR_STACK_NONE)
		return 0;
	frame = fr_profile_stacks(r->profile)->nodes[stack].frame;
	frame = fr_frames_get(fr_profile_frames(r->profile), frame)->same;
	f = FR_HASH_FIND(r->facts->functions, frame, frame);
	if (!f)
		f = FR_HASH_NEW(r->facts->functions, frame, frame);
	if (!f)
		return -ENOMEM;
	f->ns[part] += ns;
	f->samples[part]++;
	return 0;
}

static int add_cpu(struct reader *r, const struct fr_profile_sample *s)
{
	const struct fr_recording_event *e = fr_recording_event(fr_profile_recording(r->profile), s->event);
	const struct fr_task *task = fr_profile_task(r->profile, s->task);
	const uint64_t ns = fr_recording_event_ns(e, s->period);
	const int part = part_of(r->facts, s->time);
	struct fr_process_facts *p;
	uint32_t classes;

	r->facts->sample_ns = fr_recording_event_ns(e, 0);
	r->facts->n_cpus = FR_MAX(r->facts->n_cpus, s->cpu + 1);
	if (task->tid == 0)
		return 0; /* an idle CPU */
	p = find_or_add(r->facts, task->pid);
	if (!p || fr_classes_of_stack(&r->facts->classes, r->profile, s->stack, &classes) < 0 ||
		add_function(r, s->stack, part, ns) < 0)
		return -ENOMEM;
	p->comm = task->process;
	for (struct fr_sums *sums = &p->sums[part]; sums; sums = sums == &r->facts->all[part] ? NULL : &r->facts->all[part]) {
		sums->cpu_ns += ns;
		sums->cpu_samples++;
		add_classes(sums, classes, ns);
	}
	if (part == FR_BEFORE)
		return 0;
	p->slot_ns[FR_MIN((s->time - r->facts->incident_ns) * FR_FACTS_SLOTS /
				  FR_MAX(r->facts->to_ns - r->facts->incident_ns, 1ull),
		(uint64_t)FR_FACTS_SLOTS - 1)] += ns;
	if (r->facts->cpu.len / sizeof(struct fr_cpu_fact) >= CPU_MAX) {
		r->facts->left_out++;
		return 0;
	}
	return fr_buf_append(&r->facts->cpu,
		&(struct fr_cpu_fact){s->time, ns, s->task, s->stack, s->cpu}, sizeof(struct fr_cpu_fact));
}

/* STATE is that of flightrec:offcpu, as in ps(1). */
static enum fr_wait kind_of(uint32_t classes, char state)
{
	if (classes & (FR_CODE_RECLAIM | FR_CODE_SWAP))
		return FR_WAIT_RECLAIM;
	if (classes & FR_CODE_LOCK)
		return FR_WAIT_LOCK;
	if (classes & FR_CODE_SERVER)
		return FR_WAIT_SERVER;
	if (classes & FR_CODE_DISK)
		return FR_WAIT_DISK;
	if (classes & FR_CODE_SLEEP)
		return FR_WAIT_SLEEP;
	return state == 'D' ? FR_WAIT_UNKNOWN : FR_WAIT_IDLE;
}

int fr_wait_kind(struct fr_classes *c, const struct fr_profile *p, const struct fr_recording_event *e,
	const struct fr_profile_sample *s, enum fr_wait *ret)
{
	uint32_t classes;
	size_t len;
	const char *state = fr_recorded_text(e, &s->recorded->sample, "state", &len);
	const int r = fr_classes_of_stack(c, p, s->stack, &classes);

	*ret = kind_of(classes, len > 0 ? state[0] : '?');
	return r;
}

static void add_wait_sums(struct fr_sums *s, enum fr_wait kind, uint64_t ns)
{
	s->wait_ns[kind] += ns;
	s->waits[kind] += ns > 0;
}

static int add_wait(struct reader *r, const struct fr_profile_sample *s, const struct fr_recording_event *e)
{
	const struct fr_sample_fields *fields = &s->recorded->sample;
	const struct fr_task *task = fr_profile_task(r->profile, s->task);
	const int part = part_of(r->facts, s->time);
	uint64_t blocked, runqueue, context, pid, tid;
	struct fr_wait_fact wait = {.end_ns = s->time, .task = s->task, .stack = s->stack, .cpu = s->cpu};
	struct fr_process_facts *p;

	if (!fr_recorded_number(e, fields, "blocked", &blocked) ||
		!fr_recorded_number(e, fields, "runqueue", &runqueue) ||
		!fr_recorded_number(e, fields, "waker_context", &context) ||
		!fr_recorded_number(e, fields, "waker_pid", &pid) || !fr_recorded_number(e, fields, "waker_tid", &tid))
		return 0;
	p = find_or_add(r->facts, task->pid);
	if (!p || fr_wait_kind(&r->facts->classes, r->profile, e, s, &wait.kind) < 0)
		return -ENOMEM;
	p->comm = task->process;
	wait.blocked_ns = blocked;
	wait.runqueue_ns = runqueue;
	if (context == 1 && (int64_t)pid > 0) {
		wait.waker_pid = (uint32_t)pid;
		wait.waker_tid = (uint32_t)tid;
	}
	add_wait_sums(&p->sums[part], wait.kind, blocked);
	add_wait_sums(&p->sums[part], FR_WAIT_CPU, runqueue);
	add_wait_sums(&r->facts->all[part], wait.kind, blocked);
	add_wait_sums(&r->facts->all[part], FR_WAIT_CPU, runqueue);
	if (part == FR_BEFORE)
		return 0;
	p->wait_max_ns[wait.kind] = FR_MAX(p->wait_max_ns[wait.kind], blocked);
	p->wait_max_ns[FR_WAIT_CPU] = FR_MAX(p->wait_max_ns[FR_WAIT_CPU], runqueue);
	if (r->facts->waits.len / sizeof(wait) >= WAITS_MAX) {
		r->facts->left_out++;
		return 0;
	}
	return fr_buf_append(&r->facts->waits, &wait, sizeof(wait));
}

static int add_sample(void *ctx, const struct fr_profile *p, const struct fr_profile_sample *s)
{
	const struct fr_recording_event *e = fr_recording_event(fr_profile_recording(p), s->event);
	struct reader *r = ctx;
	int x = r->also ? r->also->sample(r->also->ctx, p, s) : 0;

	if (x < 0 || s->time < r->facts->from_ns || s->time > r->facts->to_ns)
		return x;
	if (fr_recording_event_is_cpu(e)) {
		r->facts->has_cpu = true;
		return add_cpu(r, s);
	}
	if (strcmp(e->name, "flightrec:offcpu") != 0)
		return 0;
	r->facts->has_waits = true;
	return add_wait(r, s, e);
}

static int add_fork(struct reader *r, const struct fr_record_task *fork, uint64_t time)
{
	const int part = part_of(r->facts, time);
	struct fr_process_facts *parent, *child;

	/* The recorder wrote the others, for processes that were there before. */
	if (fork->pid == fork->ppid || fork->header.misc & PERF_RECORD_MISC_FORK_EXEC || time < r->facts->from_ns)
		return 0;
	parent = find_or_add(r->facts, fork->ppid);
	child = find_or_add(r->facts, fork->pid);
	if (!parent || !child)
		return -ENOMEM;
	parent->sums[part].forks++;
	r->facts->all[part].forks++;
	child->parent = fork->ppid;
	child->is_new = part == FR_INCIDENT;
	return 0;
}

static int add_record(void *ctx, const struct fr_profile *p, const struct fr_recorded *recorded)
{
	const struct perf_event_header *h = recorded->record;
	struct reader *r = ctx;

	if (h->type == PERF_RECORD_FORK && h->size >= sizeof(struct fr_record_task))
		return add_fork(r, (const void *)h, recorded->time);
	if (h->type == PERF_RECORD_LOST && h->size >= sizeof(struct fr_record_lost))
		r->facts->lost += ((const struct fr_record_lost *)h)->lost;
	return 0;
}

/* Sets the times of the two parts. */
static int set_parts(const struct fr_profile *p, uint64_t incident_ns, struct fr_facts *f, struct fr_diag *d)
{
	const int r = fr_recording_window(fr_profile_recording(p), &f->from_ns, &f->to_ns, d);

	f->incident_ns = f->to_ns - FR_MIN(incident_ns ? incident_ns : INCIDENT_NS, (f->to_ns - f->from_ns) / 2);
	return r;
}

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

/* A thread that could run, while its CPU was idle, was not allowed to: its cgroup had used up its quota. So for each
   wait for a CPU, the samples of this CPU in its time are counted. */
static int find_stuck(const struct fr_profile *profile, struct fr_facts *f)
{
	const size_t n = f->cpu.len / sizeof(struct fr_cpu_fact);
	const struct fr_wait_fact *waits = (const void *)f->waits.data;
	_cleanup_buf_ struct fr_buf sorted = {0};
	struct fr_cpu_fact *cpus;

	if (n == 0 || !f->sample_ns)
		return 0;
	if (fr_buf_append(&sorted, f->cpu.data, f->cpu.len) < 0)
		return -ENOMEM;
	cpus = (void *)sorted.data;
	qsort(cpus, n, sizeof(*cpus), compare_cpus);
	for (size_t i = 0; i < f->waits.len / sizeof(*waits); i++) {
		const struct fr_wait_fact *w = &waits[i];
		const uint64_t all = w->runqueue_ns / f->sample_ns;
		size_t busy;
		struct fr_process_facts *p;

		if (all < STUCK_SAMPLES)
			continue;
		busy = find_cpu(cpus, n, w->cpu, w->end_ns) - find_cpu(cpus, n, w->cpu, w->end_ns - w->runqueue_ns);
		p = FR_HASH_FIND(f->processes, pid, fr_profile_task(profile, w->task)->pid);
		if (p && busy < all)
			p->stuck_ns += (all - busy) * f->sample_ns;
	}
	return 0;
}

int fr_facts_read(struct fr_profile *p, uint64_t incident_ns, const struct fr_view *also, struct fr_facts *ret,
	struct fr_diag *d)
{
	struct reader reader = {ret, also, p};
	const struct fr_view view = {.sample = add_sample, .record = add_record, .ctx = &reader};
	int r;

	*ret = (struct fr_facts){0};
	r = set_parts(p, incident_ns, ret, d);
	if (r == 0)
		r = fr_profile_read(p, &view, d);
	return r < 0 ? r : find_stuck(p, ret);
}

void fr_facts_deinit(struct fr_facts *f)
{
	FR_HASH_CLEAR(f->processes, free);
	FR_HASH_CLEAR(f->functions, free);
	fr_buf_deinit(&f->waits);
	fr_buf_deinit(&f->cpu);
	fr_classes_deinit(&f->classes);
}
