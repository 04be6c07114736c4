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
#define PROCESSES_MAX (1u << 17)

/* The field waker_context of flightrec:offcpu, as its format names them. */
enum { WAKER_TASK = 1, WAKER_SOFTIRQ, WAKER_HARDIRQ };

struct reader {
	struct fr_facts *facts;
	const struct fr_view *also;
	struct fr_profile *profile;
};

uint64_t fr_facts_ns(const struct fr_facts *f, int part)
{
	return part == FR_BEFORE ? f->incident_ns - f->from_ns : f->to_ns - f->incident_ns;
}

double fr_facts_seconds(const struct fr_facts *f, int part)
{
	return (double)fr_facts_ns(f, part) / (double)FR_NSEC_PER_SEC;
}

const struct fr_process_facts *fr_facts_find(const struct fr_facts *f, uint32_t pid)
{
	return FR_HASH_FIND(f->processes, pid, pid);
}

const struct fr_wait_fact *fr_facts_waits(const struct fr_facts *f, size_t *ret_n)
{
	*ret_n = f->waits.len / sizeof(struct fr_wait_fact) - f->first_wait;
	return (const struct fr_wait_fact *)(const void *)f->waits.data + f->first_wait;
}

/* If there are too many processes, returns the one that stands for all others. */
static struct fr_process_facts *find_or_add(struct fr_facts *f, uint32_t pid)
{
	struct fr_process_facts *p = FR_HASH_FIND(f->processes, pid, pid);

	if (!p && HASH_COUNT(f->processes) >= PROCESSES_MAX) {
		pid = UINT32_MAX;
		p = FR_HASH_FIND(f->processes, pid, pid);
	}
	if (!p)
		p = FR_HASH_NEW(f->processes, pid, pid);
	return p;
}

static int part_of(const struct fr_facts *f, uint64_t time)
{
	return time < f->incident_ns ? FR_BEFORE : FR_INCIDENT;
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

/* The name of a process that has ended is not known any more: then the task is named after its number, as
 * ":77". */
static void describe_process(struct fr_process_facts *p, const struct fr_task *task, uint32_t classes)
{
	if (!p->comm || task->process[0] != ':')
		p->comm = task->process;
	p->is_kernel |= (classes & FR_CODE_KERNEL) != 0;
}

static void add_cpu_sums(struct fr_sums *s, uint32_t classes, uint64_t ns)
{
	s->cpu_ns += ns;
	s->cpu_samples++;
	for (; classes; classes &= classes - 1)
		s->class_ns[__builtin_ctz(classes)] += ns;
}

static size_t slot_of(const struct fr_facts *f, uint64_t time)
{
	const uint64_t slot =
		(time - f->incident_ns) * FR_FACTS_SLOTS / FR_MAX(f->to_ns - f->incident_ns, 1ull);

	return FR_MIN(slot, (uint64_t)FR_FACTS_SLOTS - 1);
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
	describe_process(p, task, classes);
	add_cpu_sums(&p->sums[part], classes, ns);
	add_cpu_sums(&r->facts->all[part], classes, ns);
	if (part == FR_BEFORE)
		return 0;
	p->slot_ns[slot_of(r->facts, s->time)] += ns;
	if (r->facts->cpu.len / sizeof(struct fr_cpu_fact) >= CPU_MAX) {
		r->facts->left_out++;
		return 0;
	}
	return fr_buf_append(&r->facts->cpu, &(struct fr_cpu_fact){s->time, ns, s->task, s->stack, s->cpu},
		sizeof(struct fr_cpu_fact));
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
	if (classes & FR_CODE_PEER)
		return FR_WAIT_PEER;
	if (classes & FR_CODE_SLEEP)
		return FR_WAIT_SLEEP;
	return state == 'D' && !(classes & FR_CODE_CHILD) ? FR_WAIT_UNKNOWN : FR_WAIT_IDLE;
}

/* Returns the name of the innermost function if it is one of the kernel, or "". */
static const char *name_kernel_function(const struct fr_profile *p, uint32_t stack)
{
	const struct fr_frames *frames = fr_profile_frames(p);
	const struct fr_frame *f;

	if (stack == FR_STACK_NONE)
		return "";
	f = fr_frames_get(frames, fr_profile_stacks(p)->nodes[stack].frame);
	return fr_frames_object(frames, f->object)->kind == FR_OBJECT_KERNEL ? f->name : "";
}

static int classify_wait(struct fr_classes *c, const struct fr_profile *p, uint32_t stack, uint32_t *ret)
{
	const int r = fr_classes_of_stack(c, p, stack, ret);

	/* The parent of a vfork. The function that waits for the child is a part of this one. */
	if (!strcmp(name_kernel_function(p, stack), "kernel_clone"))
		*ret |= FR_CODE_CHILD;
	return r;
}

int fr_wait_kind(struct fr_classes *c, const struct fr_profile *p, const struct fr_recording_event *e,
	const struct fr_profile_sample *s, enum fr_wait *ret)
{
	uint32_t classes;
	size_t len;
	const char *state = fr_recorded_text(e, &s->recorded->sample, "state", &len);
	const int r = classify_wait(c, p, s->stack, &classes);

	*ret = kind_of(classes, len > 0 ? state[0] : '?');
	return r;
}

/* Since Linux 6.18, a thread whose cgroup has used up its quota leaves the CPU in a task work. The stack of
   the wait has no functions of the scheduler, so task_work_run() is then the innermost one. At the end of a
   system call, other work is done there, and a thread can be preempted in it. So only what an interrupt began
   counts. */
static bool is_throttled(const struct fr_profile *p, const struct fr_wait_fact *w)
{
	const char *name = name_kernel_function(p, w->stack);

	return !strcmp(name, "throttle_cfs_rq_work") ||
	       (!strcmp(name, "task_work_run") && !(w->classes & FR_CODE_SYSCALL));
}

/* A wait can have begun long before its part, so at most MAX_NS of it count. */
static void add_wait_sums(struct fr_sums *s, const struct fr_wait_fact *w, uint64_t max_ns, bool throttled)
{
	const uint64_t blocked = FR_MIN(w->blocked_ns, max_ns), queued = FR_MIN(w->runqueue_ns, max_ns);

	s->wait_ns[w->kind] += blocked;
	s->waits[w->kind] += blocked > 0;
	s->wait_ns[FR_WAIT_CPU] += queued;
	s->waits[FR_WAIT_CPU] += queued > 0;
	s->throttled_ns += throttled ? queued : 0;
	s->longest_ns[w->kind] = FR_MAX(s->longest_ns[w->kind], w->blocked_ns);
}

/* Reads the fields of the sample of a wait. Returns false if they are not those of flightrec:offcpu. */
static bool read_wait(
	const struct fr_recording_event *e, const struct fr_profile_sample *s, struct fr_wait_fact *w)
{
	const struct fr_sample_fields *fields = &s->recorded->sample;
	uint64_t context, pid, tid;
	size_t len;
	const char *state = fr_recorded_text(e, fields, "state", &len);

	if (!fr_recorded_number(e, fields, "blocked", &w->blocked_ns) ||
		!fr_recorded_number(e, fields, "runqueue", &w->runqueue_ns) ||
		!fr_recorded_number(e, fields, "waker_context", &context) ||
		!fr_recorded_number(e, fields, "waker_pid", &pid) ||
		!fr_recorded_number(e, fields, "waker_tid", &tid))
		return false;
	w->state = len > 0 ? state[0] : '?';
	w->is_timed = context == WAKER_SOFTIRQ || context == WAKER_HARDIRQ;
	if (context == WAKER_TASK && (int64_t)pid > 0) {
		w->waker_pid = (uint32_t)pid;
		w->waker_tid = (uint32_t)tid;
	}
	return true;
}

/* Keeps W, which is of PART. Each part has a limit of its own. */
static int keep_wait(struct fr_facts *f, const struct fr_wait_fact *w, int part)
{
	const size_t n = f->waits.len / sizeof(*w);

	if (n - (part == FR_BEFORE ? 0 : f->first_wait) >= WAITS_MAX) {
		f->left_out++;
		return 0;
	}
	f->first_wait += part == FR_BEFORE;
	return fr_buf_append(&f->waits, w, sizeof(*w));
}

static int add_wait(
	struct reader *r, const struct fr_profile_sample *s, const struct fr_recording_event *e, bool is_open)
{
	const struct fr_task *task = fr_profile_task(r->profile, s->task);
	const int part = part_of(r->facts, s->time);
	struct fr_wait_fact wait = {
		.end_ns = s->time, .task = s->task, .stack = s->stack, .cpu = s->cpu, .is_open = is_open};
	const uint64_t max_ns = fr_facts_ns(r->facts, part);
	bool throttled;
	struct fr_process_facts *p;

	if (!read_wait(e, s, &wait))
		return 0;
	p = find_or_add(r->facts, task->pid);
	if (!p || classify_wait(&r->facts->classes, r->profile, s->stack, &wait.classes) < 0)
		return -ENOMEM;
	wait.kind = kind_of(wait.classes, wait.state);
	throttled = is_throttled(r->profile, &wait);
	describe_process(p, task, wait.classes);
	add_wait_sums(&p->sums[part], &wait, max_ns, throttled);
	add_wait_sums(&r->facts->all[part], &wait, max_ns, throttled);
	return keep_wait(r->facts, &wait, part);
}

static int add_sample(void *ctx, const struct fr_profile *p, const struct fr_profile_sample *s)
{
	const struct fr_recording_event *e = fr_recording_event(fr_profile_recording(p), s->event);
	/* These waits have the time of the end of the window, which can be after the last other sample. */
	const bool is_open = !strcmp(e->name, "flightrec:waiting");
	struct reader *r = ctx;
	int x = r->also ? r->also->sample(r->also->ctx, p, s) : 0;

	if (x < 0 || s->time < r->facts->from_ns || (s->time > r->facts->to_ns && !is_open))
		return x;
	if (fr_recording_event_is_cpu(e)) {
		r->facts->has_cpu = true;
		return add_cpu(r, s);
	}
	if (!is_open && strcmp(e->name, "flightrec:offcpu") != 0)
		return 0;
	r->facts->has_waits = true;
	return add_wait(r, s, e, is_open);
}

static int add_fork(struct reader *r, const struct fr_record_task *fork, uint64_t time)
{
	const int part = part_of(r->facts, time);
	struct fr_process_facts *parent;

	/* The recorder wrote the others, for processes that were there before. */
	if (fork->pid == fork->ppid || fork->header.misc & PERF_RECORD_MISC_FORK_EXEC ||
		time < r->facts->from_ns)
		return 0;
	parent = find_or_add(r->facts, fork->ppid);
	if (!parent)
		return -ENOMEM;
	if (!parent->comm) /* it has no sample yet */
		parent->comm = fr_profile_name_process(r->profile, fork->ppid);
	parent->sums[part].forks++;
	r->facts->all[part].forks++;
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

static void count_threads(const struct fr_profile *p, struct fr_facts *f)
{
	const struct fr_model *m = fr_recording_model(fr_profile_recording(p));

	for (struct fr_process_facts *x = f->processes; x; x = x->hh.next)
		x->n_threads = fr_model_n_threads(m, x->pid);
}

/* Sets the times of the two parts. */
static int set_parts(const struct fr_profile *p, uint64_t incident_ns, struct fr_facts *f, struct fr_diag *d)
{
	const int r = fr_recording_window(fr_profile_recording(p), &f->from_ns, &f->to_ns, d);

	f->incident_ns = f->to_ns - (incident_ns ? FR_MIN(incident_ns, f->to_ns - f->from_ns)
						 : FR_MIN(INCIDENT_NS, (f->to_ns - f->from_ns) / 2));
	return r;
}

int fr_facts_read(struct fr_profile *p, uint64_t incident_ns, const struct fr_view *also,
	struct fr_facts *ret, struct fr_diag *d)
{
	struct reader reader = {ret, also, p};
	const struct fr_view view = {.sample = add_sample, .record = add_record, .ctx = &reader};
	int r;

	*ret = (struct fr_facts){0};
	r = set_parts(p, incident_ns, ret, d);
	if (r == 0)
		r = fr_profile_read(p, &view, d);
	if (r == 0)
		r = fr_facts_judge_queues(p, ret);
	if (r == 0)
		count_threads(p, ret);
	ret->n_cpus = FR_MAX(ret->n_cpus, fr_recording_n_cpus(fr_profile_recording(p)));
	return r;
}

void fr_facts_deinit(struct fr_facts *f)
{
	FR_HASH_CLEAR(f->processes, free);
	FR_HASH_CLEAR(f->functions, free);
	fr_buf_deinit(&f->waits);
	fr_buf_deinit(&f->cpu);
	fr_classes_deinit(&f->classes);
}
