// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/aux.h"
#include "base/cleanup.h"
#include "base/thread.h"
#include "capture/aux_area.h"
#include "capture/capture_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

bool fr_capture_has_aux(const struct fr_capture *c)
{
	return c->n_aux > 0;
}

int fr_capture_ref_aux(const struct fr_capture *c, struct fr_aux_areas *ret)
{
	struct fr_aux_areas a = {0};

	if (c->n_aux > 0) {
		a.v = calloc(c->n_aux, sizeof(struct fr_aux_area *));
		if (!a.v)
			return -ENOMEM;
	}
	for (; a.n < c->n_aux; a.n++) {
		a.v[a.n] = c->aux[a.n].area;
		fr_aux_area_ref(a.v[a.n]);
	}
	*ret = a;
	return 0;
}

void fr_aux_areas_deinit(struct fr_aux_areas *a)
{
	for (size_t i = 0; i < a->n; i++)
		fr_aux_area_unref(a->v[i]);
	free(a->v);
	*a = (struct fr_aux_areas){0};
}

void fr_capture_look_at_aux(const struct fr_capture *c)
{
	fr_thread_assert_not(FR_THREAD_RECORDER);
	for (size_t i = 0; i < c->n_aux; i++)
		fr_aux_area_look(c->aux[i].area);
}

int fr_aux_snapshot_take(
	struct fr_aux_areas *areas, uint64_t since_ns, uint64_t until_ns, struct fr_aux_snapshot *ret)
{
	struct fr_aux_snapshot s = {.areas = *areas};

	fr_thread_assert_not(FR_THREAD_RECORDER);
	*areas = (struct fr_aux_areas){0};
	s.copies = calloc(FR_MAX(s.areas.n, (size_t)1), sizeof(*s.copies));
	if (!s.copies) {
		fr_aux_snapshot_deinit(&s);
		return -ENOMEM;
	}
	for (size_t i = 0; i < s.areas.n; i++)
		if (fr_aux_area_append_kept(s.areas.v[i], &s.records) < 0) {
			fr_aux_snapshot_deinit(&s);
			return -ENOMEM;
		}
	for (; s.n < s.areas.n; s.n++)
		if (fr_aux_area_copy(s.areas.v[s.n], since_ns, until_ns, &s.copies[s.n], &s.last_ns) < 0)
			s.n_failed++;
	*ret = s;
	return 0;
}

static int add_ids(const struct fr_aux_area *a, struct fr_buf *ids)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < a->n; i++) {
		const struct fr_id_index_entry e = {
			.id = a->ids[i], .idx = a->queue, .cpu = a->cpu, .tid = a->tids[i]};

		r = fr_buf_append(ids, &e, sizeof(e));
	}
	return r;
}

/* Describes the PMU. All AUX events of a recording have PMUs for one decoder, so the first area will do. */
static int describe_pmu(const struct fr_aux_area *a, struct fr_aux_data *ret)
{
	struct perf_event_mmap_page page;
	const struct fr_auxtrace_setup setup = {
		.page = &page,
		.per_cpu = true,
		.cpus = a->cpus,
		.n_cpus = a->n_cpus,
		.sched_switch = a->of_tasks ? 2 : 3,
	};
	struct fr_aux_clock now;
	int r;

	fr_aux_clock_read(&now);
	fr_aux_clock_convert(a->page, &a->opened, &now, &page);
	r = fr_time_conv(&ret->time_conv, &page);
	return r < 0 ? r : fr_auxtrace_info(&ret->info, &a->event.attr, a->event.pmu, &setup);
}

int fr_aux_snapshot_describe(const struct fr_aux_snapshot *s, struct fr_aux_data *ret)
{
	int r = s->n > 0 ? describe_pmu(s->areas.v[0], ret) : 0;

	for (size_t i = 0; r == 0 && i < s->n; i++)
		r = add_ids(s->areas.v[i], &ret->ids);
	if (r == 0)
		r = fr_buf_append(&ret->records, s->records.data, s->records.len);
	if (r < 0 || s->n == 0)
		return r;
	ret->pieces = calloc(s->n, sizeof(*ret->pieces));
	if (!ret->pieces)
		return -ENOMEM;
	for (; ret->n < s->n; ret->n++)
		ret->pieces[ret->n] = s->copies[ret->n].t;
	return 0;
}

void fr_aux_snapshot_deinit(struct fr_aux_snapshot *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->copies[i].mapped)
			munmap(s->copies[i].memory, s->copies[i].mapped);
	free(s->copies);
	fr_buf_deinit(&s->records);
	fr_aux_areas_deinit(&s->areas);
	*s = (struct fr_aux_snapshot){0};
}

static uint64_t load(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

void fr_capture_aux_stats(const struct fr_capture *c, struct fr_aux_stats *ret)
{
	const struct fr_aux_totals *t = &fr_aux_totals;

	*ret = (struct fr_aux_stats){
		.areas = c->n_aux,
		.pauses = load(&t->pauses),
		.copied_bytes = load(&t->copied_bytes),
		.gap_ns = load(&t->gap_ns),
		.longest_gap_ns = load(&t->longest_gap_ns),
		.looks = load(&t->looks),
		.longest_look_ns = load(&t->longest_look_ns),
	};
	for (size_t i = 0; i < c->n_aux; i++)
		ret->area_bytes += c->aux[i].area->aux_bytes;
}
