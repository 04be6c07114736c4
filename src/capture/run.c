// SPDX-License-Identifier: GPL-2.0-or-later
/* Enables and drains an open capture, changes its frequencies, and reads its counters. */
#include "capture/aux_area.h"
#include "capture/capture_internal.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

struct described {
	struct fr_event_desc *desc;
	uint32_t event;
};

static int add_id(void *ctx, uint64_t id, uint32_t event, uint32_t cpu_index)
{
	const struct described *to = ctx;

	(void)cpu_index;
	return event == to->event ? fr_event_desc_add_id(to->desc, id) : 0;
}

int fr_capture_describe(const struct fr_capture *c, struct fr_session *s)
{
	for (size_t e = 0; e < c->n_events; e++) {
		struct perf_event_attr attr = c->events[e].attr;
		struct fr_event_desc *desc;
		int r;

		/* Leave out the watermark, which depends on KernelBuffer=: an event with another watermark is
		   still the same event. */
		attr.wakeup_watermark = 0;
		r = fr_session_add_event(s, &attr, c->events[e].name, NULL, 0, &desc);

		for (size_t i = 0; r == 0 && i < c->n_open; i++)
			if (c->open[i].event == e)
				r = fr_event_desc_add_id(desc, c->open[i].id);
		if (r == 0 && c->events[e].bpf)
			r = fr_bpf_tracepoints_foreach_id(
				c->tracepoints, add_id, &(struct described){desc, (uint32_t)e});
		for (size_t i = 0; r == 0 && i < c->n_aux; i++)
			if (c->aux[i].event == e)
				r = fr_event_desc_add_ids(desc, c->aux[i].area->ids, c->aux[i].area->n);
		if (r < 0)
			return r;
	}
	return 0;
}

static int enable_aux(struct fr_capture *c, struct fr_diag *d)
{
	for (size_t i = 0; i < c->n_aux; i++) {
		int r = fr_aux_area_enable(c->aux[i].area);

		if (r < 0)
			return fr_fail_errno(d, r, NULL, "cannot enable %s on CPU %d",
				c->events[c->aux[i].event].name, c->cpus[c->aux[i].cpu_index]);
	}
	return 0;
}

int fr_capture_enable(struct fr_capture *c, enum fr_capture_part part, struct fr_diag *d)
{
	int r;

	if (part == FR_CAPTURE_SAMPLES && c->enable_on_exec)
		return 0; /* also the programs of offcpu enable themselves */
	if (part == FR_CAPTURE_SAMPLES && !c->filters_set) {
		r = fr_filters_set(c, NULL, 0, d);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < c->n_open; i++) {
		bool sideband = c->open[i].event == c->n_events - 1;

		if (sideband != (part == FR_CAPTURE_SIDEBAND))
			continue;
		if (!fr_switch_is_by_program(&c->events[c->open[i].event]) &&
			fr_switch_is_off(c, &c->events[c->open[i].event]))
			continue;
		if (ioctl(c->open[i].fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
			return fr_fail_errno(d, -errno, NULL, "cannot enable %s on CPU %d",
				c->events[c->open[i].event].name, c->cpus[c->open[i].cpu_index]);
	}
	if (part == FR_CAPTURE_SIDEBAND)
		return 0;
	fr_bpf_capture_enable(c->bpf);
	fr_bpf_tracepoints_enable(c->tracepoints, true);
	return enable_aux(c, d);
}

uint64_t fr_capture_frequency(const struct fr_capture *c)
{
	for (size_t e = 0; e < c->n_events; e++)
		if (c->events[e].attr.freq)
			return c->events[e].attr.sample_freq;
	return 0;
}

uint64_t fr_capture_off_cpu_threshold(const struct fr_capture *c)
{
	for (size_t e = 0; e < c->n_events; e++)
		if (c->events[e].off_cpu)
			return c->events[e].threshold_ns;
	return 0;
}

int fr_capture_open_waits(const struct fr_capture *c)
{
	return fr_bpf_capture_open_waits(c->bpf);
}

/* On an error, *RET_FAILED is the index of the open event whose frequency the kernel did not change. */
static int set_frequencies(struct fr_capture *c, unsigned divisor, size_t *ret_failed)
{
	c->divisor = divisor;
	for (size_t i = 0; i < c->n_open; i++) {
		const struct fr_event *e = &c->events[c->open[i].event];
		uint64_t value = fr_switch_rate_value(c, e);

		if (!e->attr.freq)
			continue;
		if (ioctl(c->open[i].fd, PERF_EVENT_IOC_PERIOD, &value) < 0) {
			*ret_failed = i;
			return -errno;
		}
	}
	return 0;
}

int fr_capture_set_divisor(struct fr_capture *c, unsigned divisor, struct fr_diag *d)
{
	const unsigned before = c->divisor;
	size_t failed = 0, ignored;
	int r;

	fr_thread_assert_not(FR_THREAD_RECORDER);
	r = set_frequencies(c, divisor, &failed);
	if (r == 0) {
		fr_bpf_capture_set_threshold(c->bpf, fr_capture_off_cpu_threshold(c) * divisor);
		return 0;
	}
	(void)set_frequencies(c, before, &ignored);
	return fr_fail_errno(d, r, "check the sysctl kernel.perf_event_max_sample_rate",
		"cannot change the frequency of %s", c->events[c->open[failed].event].name);
}

int fr_capture_epoll_fd(const struct fr_capture *c)
{
	return c->epoll_fd;
}

void fr_capture_handle_epoll(struct fr_capture *c, void *data_ptr, uint32_t epoll_events)
{
	(void)c;
	if (epoll_events & (EPOLLHUP | EPOLLERR))
		fr_ring_handle_hang_up(data_ptr);
}

bool fr_capture_has_ended(const struct fr_capture *c)
{
	for (unsigned kind = 0; kind < FR_RING_OVERWRITE; kind++)
		for (size_t i = 0; i < c->n_cpus; i++)
			if (c->rings[kind][i].polled < c->rings[kind][i].n_fds)
				return false;
	return true;
}

static struct fr_tally make_tally(struct fr_capture *c, enum fr_ring_kind kind)
{
	return (struct fr_tally){
		.ids = &c->ids,
		.cells = c->cells,
		.unknown = &c->unknown,
		.last = &c->unknown,
		.only_known = kind != FR_RING_OVERWRITE,
		.no_build_ids = !c->events[c->n_events - 1].attr.build_id,
		.lost_as = kind == FR_RING_SIDEBAND ? FR_LOSS_SIDEBAND : FR_LOSS_KERNEL_RING,
	};
}

struct aux_sink {
	struct fr_aux_area *area;
	const struct fr_capture_ops *ops;
};

static void take_aux_run(void *ctx, const struct fr_run *run)
{
	const struct aux_sink *s = ctx;

	fr_aux_area_keep(s->area, run);
	(fr_aux_area_is_shared(s->area) ? s->ops->shared : s->ops->samples)(s->ops->ctx, run);
}

/* Drains the rings of the AUX areas. During a reload, two captures drain such a ring one after the other, so
   the kernel's data_tail says where the drain begins. */
static size_t drain_aux(struct fr_capture *c, const struct fr_capture_ops *ops)
{
	struct fr_tally t = make_tally(c, FR_RING_FORWARD);
	size_t bytes = 0;

	t.run_max = ops->samples_max;
	for (size_t i = 0; i < c->n_aux; i++) {
		struct fr_aux_view *v = &c->aux[i];
		struct aux_sink sink = {v->area, ops};

		t.cpu_index = (unsigned)c->aux[i].cpu_index;
		v->ring.tail = v->ring.page->data_tail;
		bytes += fr_ring_drain(&v->ring, &t, c->bounce, take_aux_run, &sink);
		fr_cell_add_lost(v->ring.owner, FR_LOSS_AUX_PAUSED,
			atomic_exchange_explicit(&v->area->pauses_to_count, 0, memory_order_relaxed));
	}
	return bytes;
}

/* While there are adopted rings, the samples of this capture count only from fr_capture_begin() on. */
static size_t drain_bpf(struct fr_capture *c, const struct fr_capture_ops *ops)
{
	struct fr_tally t = make_tally(c, FR_RING_FORWARD);

	if (!c->bpf || (c->adopted && !fr_bpf_capture_has_begun(c->bpf)))
		return 0;
	t.run_max = ops->samples_max;
	if (c->tracepoints)
		fr_bpf_tracepoints_count_lost(c->tracepoints);
	return fr_bpf_capture_drain(
		c->bpf, &t, &c->unknown, c->bounce, ops->bpf ? ops->bpf : ops->samples, ops->ctx);
}

static size_t drain_adopted(struct fr_capture *c, const struct fr_capture_ops *ops)
{
	struct fr_tally t = make_tally(c, FR_RING_FORWARD);

	if (!c->adopted)
		return 0;
	t.ids = fr_bpf_adopted_ids(c->adopted);
	t.only_known = false;
	t.run_max = ops->samples_max;
	return fr_bpf_adopted_drain(
		c->adopted, &t, &c->unknown, c->bounce, ops->adopted ? ops->adopted : ops->samples, ops->ctx);
}

size_t fr_capture_drain(struct fr_capture *c, const struct fr_capture_ops *ops)
{
	size_t bytes = 0;

	fr_thread_assert(FR_THREAD_RECORDER);
	for (unsigned kind = 0; kind < FR_RING_OVERWRITE; kind++) {
		struct fr_tally t = make_tally(c, kind);

		t.run_max = kind == FR_RING_SIDEBAND ? 0 : ops->samples_max;
		for (size_t i = 0; i < c->n_cpus; i++) {
			t.cpu_index = (unsigned)i;
			if (c->rings[kind][i].page)
				bytes += fr_ring_drain(&c->rings[kind][i], &t, c->bounce,
					kind == FR_RING_SIDEBAND ? ops->sideband : ops->samples, ops->ctx);
		}
	}
	/* A cut-over needs the records of the adopted rings first. */
	bytes += drain_adopted(c, ops);
	return bytes + drain_bpf(c, ops) + drain_aux(c, ops);
}

size_t fr_capture_drain_overwrite(struct fr_capture *c, const struct fr_capture_ops *ops)
{
	struct fr_tally t = make_tally(c, FR_RING_OVERWRITE);
	size_t bytes = 0;

	fr_thread_assert(FR_THREAD_RECORDER);
	for (size_t i = 0; c->has_overwrite && i < c->n_cpus; i++) {
		t.cpu_index = (unsigned)i;
		if (c->rings[FR_RING_OVERWRITE][i].page)
			bytes += fr_ring_read_overwritable(
				&c->rings[FR_RING_OVERWRITE][i], &t, &c->look, ops->samples, ops->ctx);
	}
	return bytes;
}

bool fr_capture_has_overwrite(const struct fr_capture *c)
{
	return c->has_overwrite;
}

size_t fr_capture_n_events(const struct fr_capture *c)
{
	return c->n_events;
}

size_t fr_capture_n_cpus(const struct fr_capture *c)
{
	return c->n_cpus;
}

size_t fr_capture_n_sampled_cpus(const struct fr_capture *c)
{
	return c->n_sampled;
}

int fr_capture_cpu_number(const struct fr_capture *c, size_t cpu_index)
{
	return c->cpus[cpu_index];
}

const char *fr_capture_event_name(const struct fr_capture *c, size_t event_index)
{
	return c->events[event_index].name;
}

static void add_counter(struct fr_counter *sum, const struct fr_counter *n)
{
	sum->samples += n->samples;
	for (unsigned i = 0; i < _FR_LOSS_MAX; i++)
		sum->lost[i] += n->lost[i];
}

void fr_capture_counter(
	const struct fr_capture *c, size_t event_index, size_t cpu_index, struct fr_counter *ret)
{
	const size_t i = event_index * c->n_cpus + cpu_index;
	const struct fr_counter_cell *cell = &c->cells[i];

	ret->samples = atomic_load_explicit(&cell->samples, memory_order_relaxed);
	for (unsigned k = 0; k < _FR_LOSS_MAX; k++)
		ret->lost[k] = atomic_load_explicit(&cell->lost[k], memory_order_relaxed);
	if (c->inherited)
		add_counter(ret, &c->inherited[i]);
}

/* Returns the index in C of the event that has the same name as the event with the index EVENT in the capture
   `from`; or c->n_events if C has no event of this name. If several events have this name, the n-th of them
   in `from` belongs to the n-th of them in C. */
static size_t find_same_event(const struct fr_capture *c, const struct fr_capture *from, size_t event)
{
	const char *name = from->events[event].name;
	size_t nth = 0, e = 0;

	for (size_t i = 0; i < event; i++)
		nth += !strcmp(from->events[i].name, name);
	for (; e < c->n_events; e++)
		if (!strcmp(c->events[e].name, name) && nth-- == 0)
			break;
	return e;
}

static size_t find_cpu(const struct fr_capture *c, int cpu)
{
	size_t i = 0;

	while (i < c->n_cpus && c->cpus[i] != cpu)
		i++;
	return i;
}

void fr_capture_inherit_counters(
	struct fr_capture *c, const struct fr_capture *from, uint64_t lost[static _FR_LOSS_MAX])
{
	struct fr_counter rest = {0};

	c->inherited = calloc(c->n_events * c->n_cpus, sizeof(*c->inherited));
	for (size_t e = 0; e < from->n_events; e++) {
		const size_t event = find_same_event(c, from, e);

		for (size_t i = 0; i < from->n_cpus; i++) {
			const size_t cpu = find_cpu(c, from->cpus[i]);
			const bool has = c->inherited && event < c->n_events && cpu < c->n_cpus;
			struct fr_counter n;

			fr_capture_counter(from, e, i, &n);
			add_counter(has ? &c->inherited[event * c->n_cpus + cpu] : &rest, &n);
		}
	}
	for (unsigned i = 0; i < _FR_LOSS_MAX; i++)
		lost[i] += rest.lost[i];
}

uint64_t fr_capture_sideband_lost(const struct fr_capture *c)
{
	const struct fr_counter_cell *cells = &c->cells[(c->n_events - 1) * c->n_cpus];
	uint64_t sum = 0;

	for (size_t i = 0; i < c->n_cpus; i++)
		sum += atomic_load_explicit(&cells[i].lost[FR_LOSS_SIDEBAND], memory_order_relaxed) +
		       atomic_load_explicit(&cells[i].lost[FR_LOSS_TORN], memory_order_relaxed);
	return sum;
}
