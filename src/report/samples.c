// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/samples.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>

#define SAMPLES_MAX (1u << 24)

static int add_sample(void *ctx, const struct fr_profile *p, const struct fr_profile_sample *s)
{
	struct fr_samples *x = ctx;

	if (x->n == SAMPLES_MAX)
		return -EFBIG;
	if (x->n == x->cap) {
		const size_t cap = x->cap ? 2 * x->cap : 4096;
		struct fr_kept_sample *v = reallocarray(x->v, cap, sizeof(*v));

		if (!v)
			return -ENOMEM;
		x->v = v;
		x->cap = cap;
	}
	if (x->n == 0)
		x->first_ns = s->time;
	x->last_ns = s->time;
	x->v[x->n++] = (struct fr_kept_sample){s->time, s->period, s->task, s->stack, s->event};
	return 0;
}

static int compare_u32(uint32_t a, uint32_t b)
{
	return a < b ? -1 : a > b;
}

static int compare(const void *x, const void *y, void *profile)
{
	const struct fr_kept_sample *a = x, *b = y;
	const struct fr_task *a_task = fr_profile_task(profile, a->task), *b_task = fr_profile_task(profile, b->task);
	int r = compare_u32(a_task->pid, b_task->pid);

	if (r == 0)
		r = compare_u32(a_task->tid, b_task->tid);
	if (r == 0)
		r = compare_u32(a->event, b->event);
	if (r == 0)
		r = a->time < b->time ? -1 : a->time > b->time;
	return r;
}

int fr_samples_read(struct fr_profile *p, struct fr_samples *ret, struct fr_diag *d)
{
	const struct fr_view view = {.sample = add_sample, .ctx = ret};
	struct fr_diag reading = {0};
	int r;

	*ret = (struct fr_samples){0};
	r = fr_profile_read(p, &view, &reading);
	if (r == -EFBIG)
		return fr_fail(d, r, "choose some of them: --from, --to, --pid, --comm, --event",
			"the file has more than %u samples, which is too many for this format", SAMPLES_MAX);
	if (r < 0) {
		if (d)
			*d = reading;
		return r;
	}
	if (ret->n > 1)
		qsort_r(ret->v, ret->n, sizeof(*ret->v), compare, p);
	return 0;
}

bool fr_samples_next(const struct fr_profile *p, const struct fr_samples *s, size_t *at, struct fr_samples_part *ret)
{
	const struct fr_task *task;

	if (*at >= s->n)
		return false;
	task = fr_profile_task(p, s->v[*at].task);
	*ret = (struct fr_samples_part){
		.v = &s->v[*at], .pid = task->pid, .tid = task->tid, .event = s->v[*at].event};
	for (; *at < s->n; (*at)++, ret->n++) {
		task = fr_profile_task(p, s->v[*at].task);
		if (task->pid != ret->pid || task->tid != ret->tid || s->v[*at].event != ret->event)
			break;
		ret->comm = task->comm;
	}
	return true;
}

void fr_samples_deinit(struct fr_samples *s)
{
	free(s->v);
	*s = (struct fr_samples){0};
}
