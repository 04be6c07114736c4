// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/profile.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "sideband/blob.h"
#include "sideband/hash.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#define COMM_MAX 64	    /* names of kernel threads in /proc can be longer than those of records */
#define PROGRESS_EVERY 4096 /* records */
#define CHAIN_MAX (FR_RECORD_MAX / 8)
#define TASKS_MAX (1u << 19)

struct task_key {
	uint32_t pid, tid;
	const struct fr_blob *comm; /* equal names have the same blob; NULL: not known */
};

struct task {
	UT_hash_handle hh;
	struct task_key key;
	uint32_t number;
};

/* An address of a call chain. */
struct address {
	uint64_t at;
	uint16_t mode;
	bool is_return;
};

struct fr_profile {
	const struct fr_profile_config *config;
	struct fr_recording *recording;
	struct fr_cgroups *cgroups; /* NULL: the filter chooses no cgroup */
	struct fr_frames *frames;
	struct fr_stacks stacks;
	struct task *by_key;
	struct fr_task *tasks;
	size_t n_tasks, tasks_cap;
	struct fr_blob_pool comms;
	struct fr_profile_cuts cuts;
	struct address chain[CHAIN_MAX];
};

/* Says which events there are if the one of the filter is not there. A file in pipe format can have its
   events later. */
static int check_event(const struct fr_profile *p, struct fr_diag *d)
{
	const size_t n = fr_recording_n_events(p->recording);
	const char *wanted = p->config->filter.event;
	char names[256] = "its events are";
	size_t len = strlen(names);
	const char *separator = " ";

	for (size_t i = 0; i < n; i++) {
		const struct fr_recording_event *e = fr_recording_event(p->recording, i);

		if (!wanted || strcmp(e->name, wanted) == 0)
			return 0;
		if (e->is_sideband || len >= sizeof(names))
			continue;
		len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s", separator, e->name);
		separator = ", ";
	}
	return n == 0 ? 0
		      : fr_fail(d, -ENOENT, names, "--event: there is no event '%s' in %s", wanted,
				p->config->path);
}

int fr_profile_open(const struct fr_profile_config *config, struct fr_profile **ret, struct fr_diag *d)
{
	struct fr_profile *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return -ENOMEM;
	p->config = config;
	p->comms.bytes_max = SIZE_MAX;
	r = fr_recording_open(config->path, &p->recording, d);
	if (r == 0)
		r = fr_frames_new(&config->places, fr_recording_session(p->recording), &p->frames);
	if (r == 0)
		r = check_event(p, d);
	if (r == 0 && config->filter.cgroup)
		r = fr_cgroups_new(config->filter.cgroup, config->path, p->recording, &p->cgroups, d);
	if (r < 0) {
		fr_profile_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

struct fr_profile *fr_profile_free(struct fr_profile *p)
{
	if (!p)
		return NULL;
	FR_HASH_CLEAR(p->by_key, free);
	free(p->tasks);
	while (p->comms.all)
		fr_blob_unref(&p->comms, p->comms.all);
	fr_stacks_deinit(&p->stacks);
	fr_frames_free(p->frames);
	fr_cgroups_free(p->cgroups);
	fr_recording_free(p->recording);
	free(p);
	return NULL;
}

/* Returns a copy of a name, which has LEN bytes, that can be printed on any terminal; or NULL if there is
   no memory. */
static const char *intern_comm(struct fr_profile *p, const char *comm, size_t len)
{
	char text[COMM_MAX + 1] = "";
	const struct fr_blob *b;

	memcpy(text, comm, FR_MIN(len, (size_t)COMM_MAX));
	fr_utf8_sanitize(text);
	b = fr_blob_get(&p->comms, text, strlen(text) + 1);
	return b ? (const char *)b->data : NULL;
}

const char *fr_profile_name_process(struct fr_profile *p, uint32_t pid)
{
	const struct fr_blob *comm = fr_model_comm(fr_recording_model(p->recording), pid, pid);

	return comm ? intern_comm(p, (const char *)comm->data, comm->len) : NULL;
}

/* Appends a task with the name COMM, which has LEN bytes. Its process has the name PROCESS; NULL: that of the
   task. */
static int append_task(struct fr_profile *p, const struct task_key *key, const char *comm, size_t len,
	const struct fr_blob *process)
{
	struct fr_task task = {.pid = key->pid, .tid = key->tid};

	task.comm = intern_comm(p, comm, len);
	task.process = process ? intern_comm(p, (const char *)process->data, process->len) : task.comm;
	if (!task.comm || !task.process)
		return -ENOMEM;
	if (p->n_tasks == p->tasks_cap) {
		const size_t cap = p->tasks_cap ? 2 * p->tasks_cap : 256;
		struct fr_task *v = reallocarray(p->tasks, cap, sizeof(*v));

		if (!v)
			return -ENOMEM;
		p->tasks = v;
		p->tasks_cap = cap;
	}
	p->tasks[p->n_tasks++] = task;
	return 0;
}

/* Returns the task that stands for all threads for which there is no room, or UINT32_MAX if there is no
   memory. */
static uint32_t find_other_task(struct fr_profile *p)
{
	const struct task_key key = {.pid = UINT32_MAX, .tid = UINT32_MAX};

	p->cuts.tasks++;
	if (p->n_tasks == TASKS_MAX && append_task(p, &key, "[others]", 8, NULL) < 0)
		return UINT32_MAX;
	return TASKS_MAX;
}

/* Adds a task, and returns its number, or UINT32_MAX if there is no memory. */
static uint32_t add_task(struct fr_profile *p, const struct task_key *key)
{
	const struct fr_model *model = fr_recording_model(p->recording);
	struct task *t = FR_HASH_NEW(p->by_key, key, *key);
	char text[16];
	int r;

	if (!t)
		return UINT32_MAX;
	t->number = (uint32_t)p->n_tasks;
	fr_blob_ref((struct fr_blob *)key->comm);
	/* As perf does. */
	snprintf(text, sizeof(text), key->tid == 0 ? "swapper" : ":%d", (int)key->tid);
	if (key->comm)
		r = append_task(p, key, (const char *)key->comm->data, key->comm->len,
			fr_model_comm(model, key->pid, key->pid));
	else
		r = append_task(p, key, text, strlen(text), fr_model_comm(model, key->pid, key->pid));
	if (r < 0) {
		HASH_DEL(p->by_key, t);
		free(t);
		return UINT32_MAX;
	}
	return t->number;
}

/* Returns the task that made the sample, which is added if it is new; or UINT32_MAX if there is no memory. */
static uint32_t find_task(struct fr_profile *p, const struct fr_sample_fields *s)
{
	const struct task_key key = {
		s->pid, s->tid, fr_model_comm(fr_recording_model(p->recording), s->pid, s->tid)};
	const struct task *t = FR_HASH_FIND(p->by_key, key, key);

	if (t)
		return t->number;
	return p->n_tasks >= TASKS_MAX ? find_other_task(p) : add_task(p, &key);
}

/* Writes the addresses of the stack into p->chain, the innermost first. Returns their number. */
static size_t read_chain(struct fr_profile *p, const struct fr_sample_fields *s)
{
	uint16_t mode = s->mode;
	bool is_return = false;
	size_t n = 0;

	for (size_t i = 0; i < s->n_chain; i++) {
		if (fr_sample_is_marker(s->chain[i], &mode)) {
			is_return = false;
			continue;
		}
		p->chain[n++] = (struct address){s->chain[i], mode, is_return};
		is_return = true;
	}
	if (n == 0 && s->ip)
		p->chain[n++] = (struct address){s->ip, s->mode, false};
	return n;
}

static int find_stack(struct fr_profile *p, const struct fr_sample_fields *s, uint32_t *ret)
{
	const struct fr_model *model = fr_recording_model(p->recording);
	uint32_t frames[FR_FRAMES_AT_ONE_ADDRESS];
	size_t depth = 0;

	*ret = FR_STACK_NONE;
	for (size_t i = read_chain(p, s); i > 0; i--) {
		const struct address *a = &p->chain[i - 1];
		const int n = fr_frames_find(p->frames, model, s->pid, a->at, a->mode, a->is_return, frames);

		if (n < 0)
			return n;
		for (int k = 0; k < n && depth < FR_STACK_DEPTH_MAX; k++, depth++) {
			const uint32_t node = fr_stacks_push(&p->stacks, *ret, frames[k]);

			if (node == FR_STACK_NONE)
				return -ENOMEM;
			if (node == FR_STACK_FULL) {
				p->cuts.stacks++;
				return 0;
			}
			*ret = node;
		}
	}
	return 0;
}

static bool is_wanted_pid(const struct fr_profile_filter *f, uint32_t pid)
{
	for (size_t i = 0; i < f->n_pids; i++)
		if (f->pids[i] == pid)
			return true;
	return f->n_pids == 0;
}

static bool is_wanted_event(const struct fr_profile *p, const struct fr_recorded *r)
{
	const char *wanted = p->config->filter.event;

	return !wanted || !strcmp(wanted, fr_recording_event(p->recording, r->event)->name);
}

static bool is_wanted(const struct fr_profile *p, const struct fr_recorded *r)
{
	const struct fr_profile_filter *f = &p->config->filter;

	return r->time >= f->from_ns && (!f->to_ns || r->time <= f->to_ns) &&
	       is_wanted_pid(f, r->sample.pid) && (!f->has_cpu || f->cpu == r->sample.cpu) &&
	       is_wanted_event(p, r) &&
	       (!p->cgroups || fr_cgroups_have(p->cgroups, p->recording, &r->sample));
}

static int give_sample(struct fr_profile *p, const struct fr_view *view, const struct fr_recorded *r)
{
	struct fr_profile_sample s = {.time = r->time,
		.cpu = r->sample.cpu,
		.event = r->event,
		.period = r->sample.period,
		.recorded = r};
	int x;

	if (!is_wanted(p, r))
		return 0;
	s.task = find_task(p, &r->sample);
	if (s.task == UINT32_MAX)
		return -ENOMEM;
	if (p->config->filter.comm && fnmatch(p->config->filter.comm, p->tasks[s.task].comm, 0) != 0)
		return 0;
	x = find_stack(p, &r->sample, &s.stack);
	return x < 0 ? x : view->sample(view->ctx, p, &s);
}

int fr_profile_read(struct fr_profile *p, const struct fr_view *view, struct fr_diag *d)
{
	struct fr_recorded recorded;
	uint64_t done, total, n = 0;
	int r;

	while ((r = fr_recording_next(p->recording, &recorded)) == 1) {
		if (recorded.is_sample)
			r = give_sample(p, view, &recorded);
		else if (view->record)
			r = view->record(view->ctx, p, &recorded);
		if (r < 0)
			break;
		if (p->config->progress && ++n % PROGRESS_EVERY == 0) {
			fr_recording_progress(p->recording, &done, &total);
			p->config->progress(p->config->ctx, done, total);
		}
	}
	if (r < 0)
		return fr_fail_errno(d, r, NULL, "cannot read %s", p->config->path);
	if (p->config->progress) {
		fr_recording_progress(p->recording, &done, &total);
		p->config->progress(p->config->ctx, total, total);
	}
	return 0;
}

bool fr_profile_is_filtered(const struct fr_profile *p)
{
	const struct fr_profile_filter *f = &p->config->filter;

	return f->n_pids || f->comm || f->event || f->cgroup || f->has_cpu;
}

const struct fr_recording *fr_profile_recording(const struct fr_profile *p)
{
	return p->recording;
}

const struct fr_profile_cuts *fr_profile_cuts(const struct fr_profile *p)
{
	return &p->cuts;
}

const struct fr_frames *fr_profile_frames(const struct fr_profile *p)
{
	return p->frames;
}

const struct fr_stacks *fr_profile_stacks(const struct fr_profile *p)
{
	return &p->stacks;
}

size_t fr_profile_n_tasks(const struct fr_profile *p)
{
	return p->n_tasks;
}

const struct fr_task *fr_profile_task(const struct fr_profile *p, uint32_t task)
{
	return &p->tasks[task];
}

const struct fr_task *fr_profile_find_thread(const struct fr_profile *p, uint32_t pid, uint32_t tid)
{
	for (size_t i = p->n_tasks; i > 0; i--)
		if (p->tasks[i - 1].pid == pid && p->tasks[i - 1].tid == tid)
			return &p->tasks[i - 1];
	return NULL;
}
