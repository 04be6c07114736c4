// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/aux_area.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "capture/event_internal.h"
#include "capture/perf_open.h"
#include "perfdata/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/* The memory that a copy takes before it stops the events, for what is written until then. */
#define REST_BYTES (256u << 10)

static _Atomic uint32_t next_queue;
struct fr_aux_totals fr_aux_totals;

int fr_aux_area_new(const struct fr_event *e, int cpu, size_t max, struct fr_aux_area **ret)
{
	struct fr_aux_area *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	fr_lock_init(&a->lock);
	fr_lock_init(&a->kept.lock);
	a->references = 1;
	a->cpu = cpu;
	a->max = max;
	a->kept.max = 2 * max + 16; /* an ITRACE_START for each event, and some AUX_OUTPUT_HW_IDs */
	a->fds = calloc(max, sizeof(*a->fds));
	a->ids = calloc(max, sizeof(*a->ids));
	a->tids = calloc(max, sizeof(*a->tids));
	a->kept.records = calloc(a->kept.max, sizeof(*a->kept.records));
	if (fr_event_copy(&a->event, e) < 0 || !a->fds || !a->ids || !a->tids || !a->kept.records) {
		fr_aux_area_unref(a);
		return -ENOMEM;
	}
	a->queue = next_queue++;
	fr_aux_clock_read(&a->opened);
	*ret = a;
	return 0;
}

void fr_aux_area_ref(struct fr_aux_area *a)
{
	atomic_fetch_add(&a->references, 1);
}

void fr_aux_area_unref(struct fr_aux_area *a)
{
	if (!a || atomic_fetch_sub(&a->references, 1) > 1)
		return;
	if (a->aux)
		munmap((void *)a->aux, a->aux_bytes);
	if (a->page)
		munmap(a->page, (size_t)sysconf(_SC_PAGESIZE) + a->ring_bytes);
	for (size_t i = 0; i < a->n; i++)
		close(a->fds[i]);
	fr_event_deinit(&a->event);
	fr_lock_deinit(&a->lock);
	fr_lock_deinit(&a->kept.lock);
	free(a->kept.records);
	free(a->fds);
	free(a->ids);
	free(a->tids);
	free(a->cpus);
	free(a);
}

bool fr_aux_area_is_of(const struct fr_aux_area *a, const struct fr_event *e)
{
	const struct perf_event_attr *x = &a->event.attr, *y = &e->attr;

	/* Other members can differ, because the kernel did not know some bits. */
	return strcmp(a->event.name, e->name) == 0 && x->type == y->type && x->config == y->config &&
	       x->config1 == y->config1 && x->config2 == y->config2 && x->sample_period == y->sample_period &&
	       x->exclude_user == y->exclude_user && x->exclude_kernel == y->exclude_kernel &&
	       x->exclude_hv == y->exclude_hv;
}

/* Maps the ring, and then the AUX area behind it. The AUX area is mapped without PROT_WRITE, so the kernel
   overwrites it. */
static int map(struct fr_aux_area *a, int fd, struct fr_diag *d)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *p = mmap(NULL, page + a->ring_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		return fr_explain_map(d, -errno, a->ring_bytes, a->n_cpus);
	a->page = p;
	a->page->aux_offset = FR_ALIGN_UP(page + a->ring_bytes, a->aux_bytes);
	a->page->aux_size = a->aux_bytes;
	p = mmap(NULL, a->aux_bytes, PROT_READ, MAP_SHARED, fd, (off_t)a->page->aux_offset);
	if (p == MAP_FAILED)
		return fr_explain_aux_map(d, -errno, &a->event, a->aux_bytes, a->n_cpus);
	a->aux = p;
	fr_aux_window_init(&a->window, a->aux_bytes);
	return 0;
}

int fr_aux_area_add(struct fr_aux_area *a, int fd, pid_t tid, struct fr_diag *d)
{
	a->fds[a->n] = fd;
	a->tids[a->n] = tid;
	if (ioctl(fd, PERF_EVENT_IOC_ID, &a->ids[a->n++]) < 0)
		return fr_fail_errno(d, -errno, NULL, "cannot read the id of %s", a->event.name);
	if (a->n == 1)
		return map(a, fd, d);
	if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, a->fds[0]) < 0)
		return fr_fail_errno(
			d, -errno, NULL, "cannot direct %s to the AUX area of CPU %d", a->event.name, a->cpu);
	return 0;
}

static int switch_events(const struct fr_aux_area *a, unsigned long request)
{
	int r = 0;

	for (size_t i = 0; i < a->n; i++)
		if (ioctl(a->fds[i], request, 0) < 0 && r == 0)
			r = -errno;
	return r;
}

int fr_aux_area_enable(struct fr_aux_area *a)
{
	int r = 0;

	fr_lock(&a->lock);
	if (!a->is_enabled)
		r = switch_events(a, PERF_EVENT_IOC_ENABLE);
	a->is_enabled = r == 0;
	fr_unlock(&a->lock);
	return r;
}

void fr_aux_area_disable(struct fr_aux_area *a)
{
	fr_lock(&a->lock);
	(void)switch_events(a, PERF_EVENT_IOC_DISABLE);
	a->is_enabled = a->enables_on_exec = false;
	fr_unlock(&a->lock);
}

/* Stops the events for a look. Returns false, and does nothing, if the area is not in use: a look would then
   also start the events. When an exec has enabled the events, there are records in the ring. */
static bool stop(struct fr_aux_area *a) FR_REQUIRES(a->lock)
{
	const bool has_begun =
		a->enables_on_exec && __atomic_load_n(&a->page->data_head, __ATOMIC_ACQUIRE) > 0;

	if (!a->is_enabled && !has_begun)
		return false;
	(void)switch_events(a, PERF_EVENT_IOC_DISABLE);
	return true;
}

/* The area is stopped. Returns the time. */
static uint64_t look(struct fr_aux_area *a) FR_REQUIRES(a->lock)
{
	const uint64_t now_ns = fr_monotonic_ns();

	/* The kernel sets aux_head after the AUX data. */
	(void)fr_aux_window_look(
		&a->window, a->aux, __atomic_load_n(&a->page->aux_head, __ATOMIC_ACQUIRE), now_ns);
	return now_ns;
}

static void raise_maximum(_Atomic uint64_t *maximum, uint64_t ns)
{
	if (ns > atomic_load_explicit(maximum, memory_order_relaxed))
		atomic_store_explicit(maximum, ns, memory_order_relaxed);
}

static void count_pause(struct fr_aux_area *a, uint64_t gap_ns, uint64_t bytes)
{
	atomic_fetch_add_explicit(&a->pauses_to_count, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&fr_aux_totals.pauses, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&fr_aux_totals.copied_bytes, bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&fr_aux_totals.gap_ns, gap_ns, memory_order_relaxed);
	raise_maximum(&fr_aux_totals.longest_gap_ns, gap_ns);
}

/* Stops the events for a look, and starts them. Returns how long they were stopped; 0 if the area is not in
   use. */
static uint64_t look_briefly(struct fr_aux_area *a) FR_REQUIRES(a->lock)
{
	const uint64_t begin_ns = fr_monotonic_ns();

	if (!stop(a))
		return 0;
	(void)look(a);
	(void)switch_events(a, PERF_EVENT_IOC_ENABLE);
	return fr_monotonic_ns() - begin_ns;
}

void fr_aux_area_look(struct fr_aux_area *a)
{
	uint64_t took_ns;

	fr_lock(&a->lock);
	took_ns = look_briefly(a);
	fr_unlock(&a->lock);
	atomic_fetch_add_explicit(&fr_aux_totals.looks, took_ns > 0, memory_order_relaxed);
	raise_maximum(&fr_aux_totals.longest_look_ns, took_ns);
}

/* Stops the events, copies what was written since the first copy, and starts them. The first copy is of
   EARLY, and is at ret->memory, which has room for EARLY and a whole area. */
static void copy_rest(struct fr_aux_area *a, const struct fr_aux_part *early, uint64_t since_ns,
	uint64_t until_ns, struct fr_aux_copy *ret, uint64_t *ret_ns) FR_REQUIRES(a->lock)
{
	const uint64_t begin_ns = fr_monotonic_ns(), early_end = early->position + early->len;
	uint8_t *to = ret->memory;
	struct fr_aux_part all, rest;

	if (!stop(a))
		return;
	*ret_ns = look(a);
	all = rest = fr_aux_window_take(&a->window, since_ns, until_ns);
	ret->t.data = to;
	/* The bytes that are only in EARLY were overwritten during the first copy or after it. */
	if (all.position < early_end) {
		rest = (struct fr_aux_part){early_end, all.position + all.len - early_end};
		ret->t.data = to + (all.position - early->position);
		to += early->len;
	}
	fr_aux_window_copy(&a->window, a->aux, &rest, to);
	(void)switch_events(a, PERF_EVENT_IOC_ENABLE);
	ret->gap_ns += fr_monotonic_ns() - begin_ns;
	ret->t.offset = all.position;
	ret->t.len = all.len;
	count_pause(a, ret->gap_ns, all.len);
}

/* Copies in two steps, so that the gap does not grow with the size of the area: most bytes while the events
   write, and the rest while they are stopped. */
static int copy_new(struct fr_aux_area *a, uint64_t since_ns, uint64_t until_ns, struct fr_aux_copy *ret,
	uint64_t *ret_ns) FR_REQUIRES(a->lock)
{
	struct fr_aux_part early;
	void *to;

	ret->gap_ns = look_briefly(a);
	early = fr_aux_window_peek(&a->window, since_ns, until_ns);
	to = mmap(NULL, early.len + a->aux_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (to == MAP_FAILED)
		return -errno;
	ret->memory = to;
	ret->mapped = early.len + a->aux_bytes;
	fr_aux_window_copy(&a->window, a->aux, &early, to);
	/* The memory for the rest is there before the events stop. */
	memset((uint8_t *)to + early.len, 0, FR_MIN(a->aux_bytes, (size_t)REST_BYTES));
	copy_rest(a, &early, since_ns, until_ns, ret, ret_ns);
	return 0;
}

/* Gives back the memory behind the copy. */
static void trim(struct fr_aux_copy *c)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const size_t used =
		c->t.len > 0 ? (size_t)((const uint8_t *)c->t.data - (uint8_t *)c->memory) + c->t.len : 0;
	const size_t keep = FR_ALIGN_UP(used, page), all = FR_ALIGN_UP(c->mapped, page);

	if (keep < all)
		munmap((uint8_t *)c->memory + keep, all - keep);
	c->mapped = keep;
}

int fr_aux_area_copy(struct fr_aux_area *a, uint64_t since_ns, uint64_t until_ns, struct fr_aux_copy *ret,
	uint64_t *ret_ns)
{
	int r;

	*ret = (struct fr_aux_copy){.event = a->event.name,
		.t = {.cpu = a->cpu, .tid = -1, .idx = a->queue, .reference = fr_monotonic_ns()}};
	fr_lock(&a->lock);
	r = copy_new(a, since_ns, until_ns, ret, ret_ns);
	fr_unlock(&a->lock);
	if (r == 0)
		trim(ret);
	return r;
}

/* Returns whether the kernel writes a record of the type of H only when an event starts. */
static bool is_about_start(const struct perf_event_header *h)
{
	return (h->type == PERF_RECORD_ITRACE_START || h->type == PERF_RECORD_AUX_OUTPUT_HW_ID) &&
	       h->size <= FR_AUX_KEPT_BYTES && h->size >= sizeof(*h) + sizeof(struct fr_sample_id);
}

static const struct fr_sample_id *sample_id(const struct perf_event_header *h)
{
	return (const void *)((const uint8_t *)h + h->size - sizeof(struct fr_sample_id));
}

/* Returns whether B replaces the older record A. Only events of tasks belong to one thread for all time. */
static bool replaces(
	const struct fr_aux_area *area, const struct perf_event_header *a, const struct perf_event_header *b)
{
	return a->type == b->type && sample_id(a)->id == sample_id(b)->id &&
	       (!area->of_tasks || sample_id(a)->tid == sample_id(b)->tid);
}

static void keep(struct fr_aux_area *a, const struct perf_event_header *h) FR_REQUIRES(a->kept.lock)
{
	struct fr_aux_kept *k = &a->kept;
	size_t i = 0;

	while (i < k->n && !replaces(a, (const void *)k->records[i], h))
		i++;
	if (i == k->n && k->n < k->max) {
		k->n++;
	} else if (i == k->n) {
		i = k->next;
		k->next = i + 1 < k->max ? i + 1 : 0;
	}
	memcpy(k->records[i], h, h->size);
}

void fr_aux_area_keep(struct fr_aux_area *a, const struct fr_run *run)
{
	struct fr_record_iter it = fr_record_iter(run->data, run->len);
	const struct perf_event_header *h;

	while ((h = fr_record_next(&it)))
		if (is_about_start(h)) {
			fr_lock(&a->kept.lock);
			keep(a, h);
			fr_unlock(&a->kept.lock);
		}
}

int fr_aux_area_append_kept(struct fr_aux_area *a, struct fr_buf *ret)
{
	struct fr_aux_kept *k = &a->kept;
	int r = 0;

	fr_lock(&k->lock);
	for (size_t i = 0; r == 0 && i < k->n; i++)
		r = fr_buf_append(
			ret, k->records[i], ((const struct perf_event_header *)k->records[i])->size);
	fr_unlock(&k->lock);
	return r;
}
