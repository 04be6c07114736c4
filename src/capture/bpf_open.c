// SPDX-License-Identifier: GPL-2.0-or-later
/* Opens what BPF programs record: decides which tracepoints they are, makes the BPF rings, and loads the
   programs. */
#include "capture/bpf_tracepoint.h"
#include "capture/capture_internal.h"
#include "capture/switches.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>

/* Explains why no program records the event E, although its term asks for one. The kernel explains best what
   is wrong with a filter. */
static int explain_no_program(const struct fr_capture *c, const struct fr_event *e,
	const struct fr_capture_config *config, const struct fr_target *t, struct fr_diag *d)
{
	struct fr_bpf_plan unused;
	int r = e->filter ? fr_filters_check(c, d) : 0;

	return r < 0 ? r : fr_explain_origin(d, fr_bpf_plan_event(e, config, t, &unused, d), e);
}

/* Decides which tracepoints BPF programs record. Sets RET to the plans of these tracepoints. */
static int plan_tracepoints(struct fr_capture *c, const struct fr_capture_config *config,
	const struct fr_target *t, struct fr_bpf_plan **ret, size_t *ret_n, struct fr_diag *d)
{
	struct fr_bpf_plan *plans = calloc(c->n_events, sizeof(*plans));
	size_t n = 0;
	int r = 0;

	if (!plans)
		return -ENOMEM;
	for (size_t i = 0; r >= 0 && i + 1 < c->n_events; i++) {
		struct fr_event *e = &c->events[i];

		r = n < FR_BPF_TRACEPOINTS_MAX ? fr_bpf_plan_event(e, config, t, &plans[n], NULL) : 0;
		if (r < 0)
			r = explain_no_program(c, e, config, t, d);
		e->bpf = r > 0;
		e->unwind &= e->bpf || !e->tracepoint;
		plans[n].event = (uint32_t)i;
		n += e->bpf;
	}
	if (r < 0 || !n) {
		free(plans);
		return r < 0 ? r : 0;
	}
	*ret = plans;
	*ret_n = n;
	return 0;
}

/* Opens the tracepoints that BPF programs record. If this fails, perf records those that have no term. */
static int open_tracepoints(
	struct fr_capture *c, struct fr_bpf_plan *plans, size_t n, int cgroup_fd, struct fr_diag *d)
{
	const struct fr_bpf_tracepoints_config config = {
		.events = c->events,
		.n_events = c->n_events,
		.cpus = c->cpus,
		.n_cpus = c->n_cpus,
		.n_sampled = c->n_sampled,
		.cells = c->cells,
		.cgroup_fd = cgroup_fd,
	};
	bool is_required = false;
	int r;

	for (size_t i = 0; i < c->n_events; i++)
		is_required |= c->events[i].bpf && c->events[i].capture == FR_CAPTURE_BPF;
	r = fr_bpf_tracepoints_new(&config, plans, n, c->bpf, &c->tracepoints, is_required ? d : NULL);
	if (r == 0 || is_required)
		return r;
	for (size_t i = 0; i < c->n_events; i++) {
		c->events[i].unwind &= !c->events[i].bpf;
		c->events[i].bpf = false;
	}
	return 0;
}

static int open_rings(struct fr_capture *c, const struct fr_capture_config *config, const struct fr_target *t,
	struct fr_diag *d)
{
	const size_t ring = c->ring_bytes[FR_RING_FORWARD];
	struct fr_bpf_capture_config bpf = {
		.unwinder = config->unwinder,
		.switches_fd = config->switches ? fr_switches_fd(config->switches) : -1,
		.cpus = c->cpus,
		.n_cpus = c->n_sampled,
		.ring_bytes = ring,
		.wakeup_bytes = FR_MIN(ring / 4, FR_WAKEUP_MAX),
		.epoll_fd = c->epoll_fd,
		.pids = config->pids,
		.n_pids = config->n_pids,
		.enable_on_exec = c->enable_on_exec,
		.cgroup_fd = t->cgroup_fd,
		.previous = config->previous ? config->previous->bpf : NULL,
		.sleeps_fd = config->sleeps_fd,
	};
	bool is_needed = false;

	for (size_t i = 0; i < c->n_events; i++) {
		is_needed |= c->events[i].unwind || c->events[i].bpf || c->events[i].off_cpu;
		if (c->events[i].off_cpu)
			bpf.off_cpu = &c->events[i];
	}
	return is_needed ? fr_bpf_capture_new(&bpf, &c->bpf, d) : 0;
}

int fr_bpf_open(struct fr_capture *c, const struct fr_capture_config *config, const struct fr_target *t,
	struct fr_diag *d)
{
	struct fr_bpf_plan *plans = NULL;
	size_t n = 0;
	int r = plan_tracepoints(c, config, t, &plans, &n, d);

	if (r == 0)
		r = open_rings(c, config, t, d);
	if (r == 0 && plans)
		return open_tracepoints(c, plans, n, t->cgroup_fd, d); /* takes PLANS */
	free(plans);
	return r;
}
