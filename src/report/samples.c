// SPDX-License-Identifier: GPL-2.0-or-later
#include "report/samples.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>

#define IN_MEMORY (1u << 21) /* samples */
#define WINDOW 4096u	     /* samples of a run that are read at a time */

/* Sorted samples. All places are numbers of samples in the file, or in memory if there is no file. */
struct fr_samples_run {
	size_t part, part_end, end;    /* where the current part begins and ends, and where the run ends */
	struct fr_kept_sample *window; /* NULL: it is in memory */
	size_t window_at, window_n;
};

static int compare_u32(uint32_t a, uint32_t b)
{
	return a < b ? -1 : a > b;
}

/* Compares the parts to which A and B belong. */
static int compare_parts(
	const struct fr_profile *profile, const struct fr_kept_sample *a, const struct fr_kept_sample *b)
{
	const struct fr_task *a_task = fr_profile_task(profile, a->task),
			     *b_task = fr_profile_task(profile, b->task);
	int r = compare_u32(a_task->pid, b_task->pid);

	if (r == 0)
		r = compare_u32(a_task->tid, b_task->tid);
	return r ? r : compare_u32(a->event, b->event);
}

static int compare(const void *x, const void *y, void *profile)
{
	const struct fr_kept_sample *a = x, *b = y;
	const int r = compare_parts(profile, a, b);

	return r ? r : a->time < b->time ? -1 : a->time > b->time;
}

/* Sorts the samples in memory, which become the next run. */
static int add_run(struct fr_samples *x, const struct fr_profile *p)
{
	const size_t at = x->n_runs ? x->runs[x->n_runs - 1].end : 0;
	struct fr_samples_run *v = reallocarray(x->runs, x->n_runs + 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	x->runs = v;
	x->runs[x->n_runs++] = (struct fr_samples_run){.part = at, .part_end = at, .end = at + x->n};
	if (x->n > 1)
		qsort_r(x->v, x->n, sizeof(*x->v), compare, (void *)p);
	return 0;
}

static int spill_run(struct fr_samples *x, const struct fr_profile *p)
{
	int r = add_run(x, p);

	if (r == 0)
		r = fr_spill_append(&x->spill, x->v, x->n * sizeof(*x->v));
	if (r == 0) {
		x->runs[x->n_runs - 1].window = malloc(WINDOW * sizeof(*x->v));
		r = x->runs[x->n_runs - 1].window ? 0 : -ENOMEM;
	}
	x->n = 0;
	return r;
}

static int add_sample(void *ctx, const struct fr_profile *p, const struct fr_profile_sample *s)
{
	struct fr_samples *x = ctx;
	const int r = x->n == IN_MEMORY ? spill_run(x, p) : 0;

	if (r < 0)
		return r;
	if (x->n == x->cap) {
		const size_t cap = x->cap ? 2 * x->cap : 4096;
		struct fr_kept_sample *v = reallocarray(x->v, cap, sizeof(*v));

		if (!v)
			return -ENOMEM;
		x->v = v;
		x->cap = cap;
	}
	if (x->n == 0 && x->n_runs == 0)
		x->first_ns = s->time;
	x->last_ns = s->time;
	x->v[x->n++] = (struct fr_kept_sample){s->time, s->period, s->task, s->stack, s->event};
	return 0;
}

int fr_samples_read(struct fr_profile *p, struct fr_samples *ret, struct fr_diag *d)
{
	const struct fr_view view = {.sample = add_sample, .ctx = ret};
	int r;

	*ret = (struct fr_samples){.spill = FR_SPILL_INIT};
	r = fr_profile_read(p, &view, d);
	if (r < 0)
		return r;
	if (ret->n_runs == 0)
		return add_run(ret, p);
	r = spill_run(ret, p);
	free(ret->v);
	ret->v = NULL;
	return r < 0 ? fr_fail_errno(d, r, NULL, "cannot write a temporary file") : 0;
}

/* Returns the sample AT of the run, or NULL if it cannot be read. */
static const struct fr_kept_sample *read_sample(struct fr_samples *x, struct fr_samples_run *run, size_t at)
{
	int r;

	if (!run->window)
		return &x->v[at];
	if (at < run->window_at || at >= run->window_at + run->window_n) {
		run->window_at = at;
		run->window_n = FR_MIN(run->end - at, (size_t)WINDOW);
		r = fr_spill_read(&x->spill, at * sizeof(*x->v), run->window, run->window_n * sizeof(*x->v));
		if (r < 0) {
			run->window_n = 0;
			x->error = x->error ? x->error : r;
			return NULL;
		}
	}
	return &run->window[at - run->window_at];
}

/* Finds the first sample of the next part: the smallest one of the first samples of all runs. */
static const struct fr_kept_sample *find_smallest(const struct fr_profile *p, struct fr_samples *s)
{
	const struct fr_kept_sample *smallest = NULL;

	for (size_t i = 0; i < s->n_runs; i++) {
		struct fr_samples_run *run = &s->runs[i];
		const struct fr_kept_sample *first;

		if (run->part == run->end)
			continue;
		first = read_sample(s, run, run->part);
		if (!first)
			return NULL;
		if (!smallest || compare_parts(p, first, smallest) < 0)
			smallest = first;
	}
	return smallest;
}

bool fr_samples_next(const struct fr_profile *p, struct fr_samples *s, struct fr_samples_part *ret)
{
	const struct fr_kept_sample *smallest, *k;
	struct fr_kept_sample first;

	for (size_t i = 0; i < s->n_runs; i++)
		s->runs[i].part = s->runs[i].part_end;
	smallest = find_smallest(p, s);
	if (!smallest)
		return false;
	first = *smallest;
	*ret = (struct fr_samples_part){.samples = s,
		.pid = fr_profile_task(p, first.task)->pid,
		.tid = fr_profile_task(p, first.task)->tid,
		.event = first.event};
	for (size_t i = 0; i < s->n_runs; i++) {
		struct fr_samples_run *run = &s->runs[i];

		for (; run->part_end < run->end; run->part_end++) {
			k = read_sample(s, run, run->part_end);
			if (!k)
				return false;
			if (compare_parts(p, k, &first) != 0)
				break;
			ret->n++;
			ret->period += k->period;
			ret->comm = fr_profile_task(p, k->task)->comm;
			ret->process = fr_profile_task(p, k->task)->process;
		}
	}
	return true;
}

const struct fr_kept_sample *fr_samples_get(
	const struct fr_samples_part *part, struct fr_samples_place *place)
{
	struct fr_samples *s = part->samples;
	struct fr_samples_run *run;

	for (; place->run < s->n_runs; place->run++, place->n = 0) {
		run = &s->runs[place->run];
		if (place->n < run->part_end - run->part)
			return read_sample(s, run, run->part + place->n++);
	}
	return NULL;
}

int fr_samples_check(const struct fr_samples *s, struct fr_diag *d)
{
	return s->error < 0 ? fr_fail_errno(d, s->error, NULL, "cannot read a temporary file") : 0;
}

void fr_samples_deinit(struct fr_samples *s)
{
	for (size_t i = 0; i < s->n_runs; i++)
		free(s->runs[i].window);
	free(s->runs);
	free(s->v);
	fr_spill_deinit(&s->spill);
	*s = (struct fr_samples){.spill = FR_SPILL_INIT};
}
