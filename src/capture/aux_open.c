// SPDX-License-Identifier: GPL-2.0-or-later
/* Finds out which events have an AUX area, and opens them. */
#include "capture/aux_area.h"
#include "capture/capture_internal.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "perfdata/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The ring of an AUX event has the records about its AUX data, and one for each context switch, which the
   decoders need. */
#define RING_MAX ((size_t)512 << 10)

/* The AUX data is recorded all the time, so there are no samples. perf opens AUX events in the same way. */
static void make_aux_attr(struct perf_event_attr *a)
{
	if (a->freq)
		a->sample_period = 1;
	a->freq = 0;
	a->sample_type = FR_SAMPLE_TYPE;
	a->branch_sample_type = 0;
	a->sample_regs_user = 0;
	a->sample_stack_user = 0;
	a->sample_max_stack = 0;
	a->exclude_callchain_user = 0;
	a->context_switch = 1;
}

static unsigned long open_flags(const struct fr_target *t)
{
	return t->cgroup_fd >= 0 ? PERF_FLAG_PID_CGROUP : 0;
}

static pid_t open_pid(const struct fr_target *t, size_t i)
{
	return t->cgroup_fd >= 0 ? t->cgroup_fd : t->n_tids ? t->tids[i] : -1;
}

/* Asks the kernel for an AUX area. It answers -EOPNOTSUPP if the PMU has none. A ring must be mapped first.
 */
static int map_aux(int fd)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct perf_event_mmap_page *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	void *aux;
	int code;

	if (p == MAP_FAILED)
		return -EOPNOTSUPP; /* the opening of the event says why */
	p->aux_offset = 2 * page;
	p->aux_size = page;
	aux = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, (off_t)(2 * page));
	code = aux == MAP_FAILED ? -errno : 0;
	if (aux != MAP_FAILED)
		munmap(aux, page);
	munmap(p, 2 * page);
	return code;
}

/* Returns whether the PMU of E has AUX areas. The PMUs with AUX areas refuse a second event while another
   program uses them (-EBUSY). So a PMU that is busy counts as one, and the message then is the right one. */
static bool has_aux(const struct fr_capture *c, const struct fr_target *t, const struct fr_event *e)
{
	struct perf_event_attr a = e->attr;
	_cleanup_close_ int fd = -1;
	uint8_t only[FR_CPUS_MAX / 8];
	size_t i = 0;

	for (size_t k = 0; c->previous && k < c->previous->n_aux; k++)
		if (c->previous->aux[k].area->event.attr.type == a.type)
			return true;
	if (e->cpus && fr_cpulist_parse(e->cpus, only, FR_CPUS_MAX) >= 0)
		while (i + 1 < c->n_sampled && !(only[c->cpus[i] / 8] & 1u << c->cpus[i] % 8))
			i++;
	make_aux_attr(&a);
	a.write_backward = 0;
	fd = fr_perf_open_adapt(&a, open_pid(t, 0), c->cpus[i], open_flags(t));
	if (fd < 0)
		return fd == -EBUSY;
	return map_aux(fd) != -EOPNOTSUPP;
}

/* Returns the length of the name of PMU without a number at its end: perf has one decoder for arm_spe_0 and
   arm_spe_1. */
static size_t kind_len(const char *pmu)
{
	size_t n = strlen(pmu);

	while (n > 0 && pmu[n - 1] >= '0' && pmu[n - 1] <= '9')
		n--;
	return n;
}

/* FIRST is the first AUX event, or E. */
static int check_event(const struct fr_event *first, const struct fr_event *e, struct fr_diag *d)
{
	const size_t n = kind_len(first->pmu);

	if (e->overwrite)
		return fr_fail(d, -EINVAL, "leave out the term: AUX data is always overwritten",
			"event %s has AUX data, and cannot have the term overwrite", e->name);
	if (n == kind_len(e->pmu) && strncmp(first->pmu, e->pmu, n) == 0)
		return 0;
	return fr_fail(d, -EINVAL, "record one of them, or record with two instances of flightrecd",
		"%s and %s both have AUX data, and perf decodes AUX data of one kind in a file", first->name,
		e->name);
}

int fr_aux_find(struct fr_capture *c, const struct fr_target *t, struct fr_diag *d)
{
	const struct fr_event *first = NULL;
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i + 1 < c->n_events; i++) {
		struct fr_event *e = &c->events[i];

		e->aux = e->pmu && has_aux(c, t, e);
		if (!e->aux)
			continue;
		make_aux_attr(&e->attr);
		e->attr.wakeup_watermark = (uint32_t)FR_MIN(c->ring_bytes[FR_RING_FORWARD], RING_MAX) / 4;
		first = first ? first : e;
		r = fr_explain_origin(d, check_event(first, e, d), e);
		n++;
	}
	if (r < 0 || n == 0)
		return r;
	c->aux = calloc(n * c->n_sampled, sizeof(*c->aux));
	return c->aux ? 0 : -ENOMEM;
}

/* Returns whether the event of A has ended for all time, because its CPU went offline. While it has not
   ended, the kernel refuses a second event (-EBUSY). */
static bool has_ended(const struct fr_aux_area *a, const struct fr_target *t)
{
	_cleanup_close_ int fd =
		a->of_tasks ? -1 : fr_perf_open(&a->event.attr, open_pid(t, 0), a->cpu, open_flags(t));

	return fd >= 0;
}

static struct fr_aux_area *find_area(
	const struct fr_capture *c, const struct fr_target *t, const struct fr_event *e, int cpu)
{
	const struct fr_capture *p = c->previous;

	/* The events of a cgroup belong to this cgroup only. */
	if (!p || p->cgroup.st_ino != c->cgroup.st_ino || p->cgroup.st_dev != c->cgroup.st_dev)
		return NULL;
	for (size_t i = 0; i < p->n_aux; i++)
		if (p->aux[i].area->cpu == cpu && fr_aux_area_is_of(p->aux[i].area, e) &&
			!has_ended(p->aux[i].area, t))
			return p->aux[i].area;
	return NULL;
}

static int open_events(
	const struct fr_target *t, struct fr_event *e, struct fr_aux_area *a, struct fr_diag *d)
{
	int fd, r = 0;

	for (size_t i = 0; r == 0 && i < a->max; i++) {
		fd = fr_perf_open_adapt(&e->attr, open_pid(t, i), a->cpu, open_flags(t));
		if (fd == -ESRCH && t->n_tids)
			continue;
		a->event.attr = e->attr;
		r = fd < 0 ? fr_explain_open(d, fd, e, a->cpu, t->n_tids ? t->tids[i] : -1)
			   : fr_aux_area_add(a, fd, t->n_tids ? t->tids[i] : -1, d);
	}
	return fr_explain_origin(d, r, e);
}

/* Makes an area with open events. */
static int open_area(struct fr_capture *c, const struct fr_target *t, struct fr_event *e, int cpu,
	struct fr_aux_area **ret, struct fr_diag *d)
{
	struct fr_aux_area *a;
	int r = fr_aux_area_new(e, cpu, FR_MAX(t->n_tids, (size_t)1), &a);

	if (r < 0)
		return r;
	a->of_tasks = t->n_tids > 0;
	a->enables_on_exec = c->enable_on_exec;
	a->aux_bytes = c->aux_bytes;
	a->ring_bytes = FR_MIN(c->ring_bytes[FR_RING_FORWARD], RING_MAX);
	a->cpus = malloc(c->n_sampled * sizeof(*a->cpus));
	if (a->cpus) {
		memcpy(a->cpus, c->cpus, c->n_sampled * sizeof(*a->cpus));
		a->n_cpus = c->n_sampled;
		r = open_events(t, e, a, d);
	} else {
		r = -ENOMEM;
	}
	if (r < 0 || a->n == 0) {
		fr_aux_area_unref(a);
		return r;
	}
	*ret = a;
	return 0;
}

/* Makes a view of the ring of A: another capture can have another view, with its own epoll set. */
static int add_view(struct fr_capture *c, struct fr_aux_area *a, size_t event, size_t cpu_index)
{
	struct fr_aux_view *v = &c->aux[c->n_aux++];
	int r = 0;

	*v = (struct fr_aux_view){
		.area = a,
		.event = (uint32_t)event,
		.cpu_index = (uint32_t)cpu_index,
		.ring = {.page = a->page,
			.data = (const uint8_t *)a->page + sysconf(_SC_PAGESIZE),
			.size = a->ring_bytes,
			.owner = &c->cells[event * c->n_cpus + cpu_index],
			.epoll_fd = c->epoll_fd},
	};
	for (size_t i = 0; r == 0 && i < a->n; i++)
		r = fr_ring_add_fd(&v->ring, a->fds[i]);
	return r;
}

int fr_aux_open_on_cpu(
	struct fr_capture *c, const struct fr_target *t, size_t event, size_t cpu_index, struct fr_diag *d)
{
	struct fr_event *e = &c->events[event];
	struct fr_aux_area *a = find_area(c, t, e, c->cpus[cpu_index]);
	int r = 0;

	if (a) {
		fr_aux_area_ref(a);
		e->attr = a->event.attr;
	} else {
		r = open_area(c, t, e, c->cpus[cpu_index], &a, d);
	}
	return r < 0 || !a ? r : add_view(c, a, event, cpu_index);
}
