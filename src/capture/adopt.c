// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/adopt.h"
#include "bpf/capture.h"
#include "capture/aux_area.h"
#include "capture/capture_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

int fr_capture_bpf_fds(const struct fr_capture *c, struct fr_bpf_fds *ret)
{
	struct fr_bpf_fds f = {0};
	struct fr_bpf_shared *shared;
	int r;

	if (!c->bpf)
		return -ENOENT;
	shared = fr_bpf_capture_shared(c->bpf);
	r = fr_bpf_capture_fds(c->bpf, &f);
	if (r == 0)
		r = fr_bpf_tracepoints_fds(c->tracepoints, shared, &f);
	for (int kind = 0; kind < _FR_BPF_FD_KINDS; kind++)
		shared->n_fds[kind] = (uint32_t)f.of[kind].n;
	if (r < 0)
		fr_bpf_fds_free(&f);
	else
		*ret = f;
	return r;
}

static uint32_t find_cell(const void *ctx, const char *name, uint32_t cpu)
{
	const struct fr_capture *c = ctx;
	size_t e = 0, i = 0;

	while (e < c->n_events && (!name || strcmp(c->events[e].name, name) != 0))
		e++;
	while (i < c->n_cpus && (uint32_t)c->cpus[i] != cpu)
		i++;
	return (uint32_t)(e < c->n_events && i < c->n_cpus ? e * c->n_cpus + i : c->n_events * c->n_cpus);
}

int fr_capture_adopt(struct fr_capture *c, const struct fr_adoption *a, struct fr_diag *d)
{
	const struct fr_bpf_adopted_config config = {a, c->epoll_fd, find_cell, c};

	return fr_bpf_adopted_new(&config, &c->adopted, d);
}

bool fr_capture_has_adopted(const struct fr_capture *c)
{
	return c->adopted != NULL;
}

bool fr_capture_continues_id(const struct fr_capture *c, uint64_t id)
{
	return c->adopted && fr_bpf_adopted_has_id(c->adopted, id);
}

void fr_capture_begin(struct fr_capture *c, uint64_t since_ns)
{
	if (c->adopted) {
		struct fr_tally t = {
			.ids = fr_bpf_adopted_ids(c->adopted), .cells = c->cells, .unknown = &c->unknown};

		fr_bpf_adopted_end_losses(c->adopted, &t);
	}
	if (!c->bpf)
		return;
	if (c->adopted) {
		fr_bpf_capture_forget_losses(c->bpf);
		fr_bpf_tracepoints_forget_losses(c->tracepoints);
	}
	fr_bpf_capture_begin(c->bpf, since_ns);
}

void fr_capture_end_adopted(struct fr_capture *c, uint64_t lost[static _FR_LOSS_MAX])
{
	const struct fr_counter_cell *rest = &c->cells[c->n_events * c->n_cpus];

	c->adopted = fr_bpf_adopted_free(c->adopted);
	for (unsigned i = 0; i < _FR_LOSS_MAX; i++)
		lost[i] += atomic_load_explicit(&rest->lost[i], memory_order_relaxed);
}

void fr_capture_set_lives_on(struct fr_capture *c, bool lives_on)
{
	c->lives_on = lives_on;
}

static bool is_bpf(const struct fr_event *e)
{
	return e->unwind || e->bpf || e->off_cpu;
}

static void disable(struct fr_capture *c, bool leaves)
{
	if (!leaves) {
		fr_bpf_capture_disable(c->bpf);
		fr_bpf_tracepoints_enable(c->tracepoints, false);
	}
	for (size_t i = c->n_open; i--;)
		if (!leaves || !is_bpf(&c->events[c->open[i].event]))
			(void)ioctl(c->open[i].fd, PERF_EVENT_IOC_DISABLE, 0);
	for (size_t i = 0; i < c->n_aux; i++)
		if (!fr_aux_area_is_shared(c->aux[i].area))
			fr_aux_area_disable(c->aux[i].area);
}

void fr_capture_disable(struct fr_capture *c)
{
	disable(c, false);
}

void fr_capture_leave(struct fr_capture *c)
{
	disable(c, c->lives_on);
}
