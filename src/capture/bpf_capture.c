// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/bpf_capture.h"
#include "base/cleanup.h"
#include "bpf/capture.h"
#include "unwind/unwinder.h"

#include "capture.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/mman.h>

struct fr_bpf_capture {
	const struct fr_unwinder *unwinder;
	struct capture *programs;
	struct fr_bpf_shared *shared; /* mapped */
	struct fr_bpf_ring *rings;
	size_t n_rings;
	struct opened {
		int link;
		struct fr_counter_cell *cell;
	} * opened;
	size_t n_opened;
};

static size_t shared_bytes(void)
{
	return FR_ALIGN_UP(sizeof(struct fr_bpf_shared), (size_t)sysconf(_SC_PAGESIZE));
}

static int load(struct fr_bpf_capture *b, const struct fr_unwinder *unwinder)
{
	void *p;
	int r;

	b->programs = capture__open();
	if (!b->programs)
		return -errno;
	r = bpf_map__set_max_entries(b->programs->maps.fr_rings, (__u32)libbpf_num_possible_cpus());
	if (r == 0)
		r = fr_unwinder_share_maps(unwinder, b->programs->obj);
	if (r == 0)
		r = capture__load(b->programs);
	if (r < 0)
		return r;
	p = mmap(NULL, shared_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED,
		bpf_map__fd(b->programs->maps.fr_bpf_shared), 0);
	if (p == MAP_FAILED)
		return -errno;
	b->shared = p;
	return 0;
}

static int add_ring(struct fr_bpf_capture *b, const struct fr_bpf_capture_config *c, size_t i)
{
	struct fr_bpf_ring *ring = &b->rings[i];
	/* Edge-triggered: a level-triggered ring would wake the recorder for each record. */
	struct epoll_event e = {.events = EPOLLIN | EPOLLET, .data.ptr = ring};
	int r = fr_bpf_ring_new(ring, c->ring_bytes);

	if (r < 0)
		return r;
	b->n_rings++;
	if (bpf_map_update_elem(bpf_map__fd(b->programs->maps.fr_rings), &c->cpus[i], &ring->fd, BPF_ANY) < 0)
		return -errno;
	return epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, ring->fd, &e) < 0 ? -errno : 0;
}

int fr_bpf_capture_new(
	const struct fr_bpf_capture_config *config, struct fr_bpf_capture **ret, struct fr_diag *d)
{
	struct fr_bpf_capture *b = calloc(1, sizeof(*b));
	int guards[FR_UNWINDER_LINKS_MAX], r;

	if (!b)
		return -ENOMEM;
	b->rings = calloc(config->n_cpus, sizeof(*b->rings));
	b->opened = calloc(FR_BPF_EVENTS_MAX, sizeof(*b->opened));
	r = b->rings && b->opened ? load(b, config->unwinder) : -ENOMEM;
	for (size_t i = 0; r == 0 && i < config->n_cpus; i++)
		r = add_ring(b, config, i);
	if (r < 0) {
		fr_bpf_capture_free(b);
		return fr_fail_errno(d, r, NULL, "cannot load the BPF programs that make samples");
	}
	b->unwinder = config->unwinder;
	b->shared->version = FR_BPF_SHARED_VERSION;
	b->shared->n_rings = (uint32_t)b->n_rings;
	b->shared->n_guards = (uint32_t)fr_unwinder_links(b->unwinder, guards);
	b->shared->wakeup_bytes = config->wakeup_bytes;
	*ret = b;
	return 0;
}

struct fr_bpf_capture *fr_bpf_capture_free(struct fr_bpf_capture *b)
{
	if (!b)
		return NULL;
	for (size_t i = 0; i < b->n_opened; i++)
		close(b->opened[i].link);
	for (size_t i = 0; i < b->n_rings; i++)
		fr_bpf_ring_free(&b->rings[i]);
	if (b->shared)
		munmap(b->shared, shared_bytes());
	capture__destroy(b->programs);
	free(b->opened);
	free(b->rings);
	free(b);
	return NULL;
}

static struct fr_bpf_event describe(const struct fr_event *e, int cpu, uint64_t id)
{
	const struct perf_event_attr *a = &e->attr;
	uint32_t flags = a->sample_type & PERF_SAMPLE_PERIOD ? FR_BPF_PERIOD : 0;

	if (a->sample_type & PERF_SAMPLE_CALLCHAIN)
		flags |= FR_BPF_CALLCHAIN | (a->exclude_callchain_kernel ? 0 : FR_BPF_KERNEL_STACK) |
			 (a->exclude_callchain_user ? 0 : FR_BPF_USER_STACK);
	return (struct fr_bpf_event){
		.id = id,
		.cpu = (uint32_t)cpu,
		.flags = flags,
		.max_stack = a->sample_max_stack ? FR_MIN(a->sample_max_stack, FR_BPF_STACK_MAX)
						 : FR_BPF_STACK_MAX,
	};
}

int fr_bpf_capture_add(struct fr_bpf_capture *b, const struct fr_event *e, int fd, int cpu, uint64_t id,
	struct fr_counter_cell *cell, struct fr_diag *d)
{
	const size_t i = b->n_opened;
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = i);
	int link;

	if (i == FR_BPF_EVENTS_MAX)
		return fr_fail(d, -E2BIG, "record fewer events with call-graph=unwind",
			"more than %u events on all CPUs with call-graph=unwind", FR_BPF_EVENTS_MAX);
	b->shared->events[i] = describe(e, cpu, id);
	/* bpf_program__attach_perf_event_opts() would also enable the event. */
	link = bpf_link_create(bpf_program__fd(b->programs->progs.sample), fd, BPF_PERF_EVENT, &opts);
	if (link < 0)
		return fr_fail_errno(d, -errno, NULL, "cannot attach a BPF program to %s", e->name);
	b->opened[b->n_opened++] = (struct opened){link, cell};
	b->shared->n_events = (uint32_t)b->n_opened;
	b->shared->n_links++;
	return 0;
}

static void count_lost(struct fr_bpf_capture *b)
{
	for (size_t i = 0; i < b->n_opened; i++) {
		const uint64_t lost = __atomic_load_n(&b->shared->lost[i], __ATOMIC_RELAXED);

		if (lost == b->shared->counted[i])
			continue;
		fr_cell_add_lost(b->opened[i].cell, FR_LOSS_KERNEL_RING, lost - b->shared->counted[i]);
		b->shared->counted[i] = lost;
	}
}

size_t fr_bpf_capture_drain(struct fr_bpf_capture *b, struct fr_tally *t, struct fr_counter_cell *owner,
	uint8_t *bounce, fr_run_fn sink, void *ctx)
{
	size_t bytes = 0;

	for (size_t i = 0; i < b->n_rings; i++)
		bytes += fr_bpf_ring_drain(&b->rings[i], t, owner, bounce, sink, ctx);
	count_lost(b);
	return bytes;
}

void fr_bpf_capture_begin(struct fr_bpf_capture *b, uint64_t since_ns)
{
	__atomic_store_n(&b->shared->from_ns, since_ns, __ATOMIC_RELEASE);
}

bool fr_bpf_capture_has_begun(const struct fr_bpf_capture *b)
{
	return b->shared->from_ns != 0;
}

int fr_bpf_capture_fds(const struct fr_bpf_capture *b, struct fr_bpf_fds *ret)
{
	int guards[FR_UNWINDER_LINKS_MAX];
	const size_t n_guards = fr_unwinder_links(b->unwinder, guards);
	struct fr_bpf_fds f = {0};
	int r = fr_bpf_fds_add(&f, FR_BPF_FD_SHARED, bpf_map__fd(b->programs->maps.fr_bpf_shared));

	for (size_t i = 0; r == 0 && i < b->n_rings; i++)
		r = fr_bpf_fds_add(&f, FR_BPF_FD_RING, b->rings[i].fd);
	for (size_t i = 0; r == 0 && i < b->n_opened; i++)
		r = fr_bpf_fds_add(&f, FR_BPF_FD_LINK, b->opened[i].link);
	for (size_t i = 0; r == 0 && i < n_guards; i++)
		r = fr_bpf_fds_add(&f, FR_BPF_FD_GUARD, guards[i]);
	if (r < 0)
		fr_bpf_fds_free(&f);
	else
		*ret = f;
	return r;
}
