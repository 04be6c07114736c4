// SPDX-License-Identifier: GPL-2.0-or-later
#include "capture/bpf_adopted.h"
#include "base/cleanup.h"
#include "bpf/capture.h"
#include "capture/bpf_tracepoint.h"
#include "capture/cutover.h"
#include "capture/record_set.h"
#include "perfdata/record.h"
#include "perfdata/session.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#define CPU_BITS ((1ULL << FR_BPF_ID_CPU_BITS) - 1)
/* The positions of a run in a ring span less: a run has at most FR_RUN_MAX bytes, and each of its records has
   a header in the ring. */
#define RUN_SPAN_MAX (2u * FR_RUN_MAX)

struct set {
	struct fr_bpf_shared *shared; /* mapped */
	uint64_t *lost; /* mapped: of tracepoints, as in bpf_tracepoint.c; NULL: there are none */
	size_t n_lost;
	/* This instance or the previous one has counted so many losses of each event, and then of each
	   tracepoint. The shared memory keeps the counts of the previous instance. So if this instance is
	   killed before it has saved its own counts, the next one counts these losses again. */
	uint64_t *counted;
	/* The cut-overs from the older set and to the younger set, which owns the latter. NULL: there is no
	   such set. */
	struct fr_cutover *begin, *end;
	struct adopted_ring {
		struct fr_bpf_ring ring;
		const struct set *set;
		const struct fr_bpf_adopted *all;
		uint64_t doubt_until; /* the history can have records before this position */
	} * rings;
	size_t n;
};

struct fr_bpf_adopted {
	struct fr_id_table cells;	/* each id of an adopted event */
	struct fr_id_table tracepoints; /* ids of tracepoints */
	struct fr_id_table live;	/* ids of all sets, also of a set whose samples do not count yet */
	struct fr_record_set newest;	/* of the history */
	uint32_t own_pid;
	int epoll_fd;
	bool losses_ended;
	struct set *sets; /* oldest first */
	size_t n;
};

/* The programs of the previous instance do not know which threads are ours, which tracepoints have to
   exclude. */
static bool is_own_tracepoint(const struct fr_bpf_adopted *a, const struct fr_sample *s)
{
	return s->pid == a->own_pid && fr_id_table_find(&a->tracepoints, s->id) != FR_ID_UNKNOWN;
}

static bool wants(const struct fr_bpf_ring *ring, uint64_t at, const struct perf_event_header *h)
{
	const struct adopted_ring *r = ring->ctx;
	const struct fr_sample *s = (const void *)h;

	if (!r->set->begin && s->time < r->set->shared->from_ns)
		return false;
	if (is_own_tracepoint(r->all, s))
		return false;
	if (at < r->doubt_until && fr_record_set_has(&r->all->newest, h))
		return false;
	if (r->set->begin && !fr_cutover_keeps(r->set->begin, h))
		return false;
	return !r->set->end || fr_cutover_keeps(r->set->end, h);
}

static int map_shared(int fd, struct fr_bpf_shared **ret, struct fr_diag *d)
{
	struct bpf_map_info info = {0};
	__u32 len = sizeof(info);
	void *p;

	if (bpf_obj_get_info_by_fd(fd, &info, &len) < 0 || info.type != BPF_MAP_TYPE_ARRAY ||
		info.value_size != sizeof(**ret) || !(info.map_flags & BPF_F_MMAPABLE))
		return fr_fail(d, -EBADMSG, NULL, "they are of another version");
	p = mmap(NULL, sizeof(**ret), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return fr_fail_errno(d, -errno, NULL, "their memory cannot be mapped");
	if (((struct fr_bpf_shared *)p)->version != FR_BPF_SHARED_VERSION) {
		munmap(p, sizeof(**ret));
		return fr_fail(d, -EBADMSG, NULL, "they are of another version");
	}
	*ret = p;
	return 0;
}

static int adopt_ring(struct fr_bpf_adopted *a, struct set *s, int fd, struct fr_diag *d)
{
	struct adopted_ring *r = &s->rings[s->n];
	struct epoll_event e = {.events = EPOLLIN | EPOLLET, .data.ptr = r};
	int code = fr_bpf_ring_adopt(&r->ring, fd);

	if (code < 0)
		return fr_fail_errno(d, code, NULL, "a ring cannot be mapped");
	s->n++;
	r->set = s;
	r->all = a;
	r->doubt_until = fr_bpf_ring_consumed(&r->ring) + RUN_SPAN_MAX;
	r->ring.wants = wants;
	r->ring.ctx = r;
	return epoll_ctl(a->epoll_fd, EPOLL_CTL_ADD, r->ring.fd, &e) < 0
		       ? fr_fail_errno(d, -errno, NULL, "a ring cannot be polled")
		       : 0;
}

/* The links of the unwinder's programs can be in another set. */
static bool is_complete(const struct fr_bpf_shared *shared, const struct fr_bpf_fds *f)
{
	bool complete = true;

	for (int kind = 0; kind < _FR_BPF_FD_KINDS; kind++)
		complete &= kind == FR_BPF_FD_GUARD || f->of[kind].n == shared->n_fds[kind];
	return complete && shared->n_events <= FR_BPF_EVENTS_MAX &&
	       shared->n_tracepoints <= FR_BPF_SHARED_TRACEPOINTS;
}

/* Maps the losses of tracepoints. */
static int map_lost(struct set *s, int fd)
{
	const size_t n = (size_t)libbpf_num_possible_cpus() * s->shared->n_tracepoints;
	struct bpf_map_info info = {0};
	__u32 len = sizeof(info);
	void *p;

	if (bpf_obj_get_info_by_fd(fd, &info, &len) < 0 || info.type != BPF_MAP_TYPE_ARRAY ||
		info.value_size != sizeof(*s->lost) || info.max_entries != 2 * n)
		return -EBADMSG;
	p = mmap(NULL, 2 * n * sizeof(*s->lost), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return -errno;
	s->lost = p;
	s->n_lost = n;
	return 0;
}

static int copy_counted(struct set *s)
{
	s->counted = calloc(s->shared->n_events + s->n_lost + 1, sizeof(*s->counted));
	if (!s->counted)
		return -ENOMEM;
	memcpy(s->counted, s->shared->counted, s->shared->n_events * sizeof(*s->counted));
	if (s->n_lost)
		memcpy(s->counted + s->shared->n_events, s->lost + s->n_lost,
			s->n_lost * sizeof(*s->counted));
	return 0;
}

static int adopt_rings(struct fr_bpf_adopted *a, struct set *s, const struct fr_bpf_fds *f, struct fr_diag *d)
{
	int r = 0;

	if (!is_complete(s->shared, f))
		return fr_fail(d, -EBADMSG, "raise FileDescriptorStoreMax= in the unit file",
			"the descriptor store does not have all of their descriptors");
	if (f->of[FR_BPF_FD_LOST].n)
		r = map_lost(s, f->of[FR_BPF_FD_LOST].fds[0]);
	if (r < 0)
		return fr_fail_errno(d, r, NULL, "the losses of tracepoints cannot be mapped");
	r = copy_counted(s);
	if (r < 0)
		return r;
	s->rings = calloc(f->of[FR_BPF_FD_RING].n, sizeof(*s->rings));
	if (!s->rings)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < f->of[FR_BPF_FD_RING].n; i++)
		r = adopt_ring(a, s, f->of[FR_BPF_FD_RING].fds[i], d);
	return r;
}

static int add_live(struct fr_bpf_adopted *a, const struct fr_bpf_shared *shared)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < FR_MIN(shared->n_tracepoints, FR_BPF_SHARED_TRACEPOINTS); i++)
		r = fr_id_table_add(&a->live, shared->tracepoint_ids[i], 0);

	for (uint32_t i = 0; r == 0 && i < FR_MIN(shared->n_events, FR_BPF_EVENTS_MAX); i++)
		r = fr_id_table_add(&a->live, shared->events[i].id, 0);
	return r;
}

static void set_deinit(struct set *s, int epoll_fd)
{
	for (size_t i = 0; i < s->n; i++) {
		/* The epoll set forgets a file only when nobody has it open, and the descriptor store has. */
		(void)epoll_ctl(epoll_fd, EPOLL_CTL_DEL, s->rings[i].ring.fd, NULL);
		fr_bpf_ring_free(&s->rings[i].ring);
	}
	if (s->lost)
		munmap(s->lost, 2 * s->n_lost * sizeof(*s->lost));
	if (s->shared)
		munmap(s->shared, sizeof(*s->shared));
	free(s->rings);
	free(s->counted);
	fr_cutover_free(s->begin);
	*s = (struct set){0};
}

/* The previous instance was killed between two of its sets, before it could take the records near the time
   of S from both. It can have taken some of the older set: NEWEST has the newest records of the history. */
static int add_cutover(const struct fr_buf *newest, struct set *older, struct set *s)
{
	struct fr_record_iter it = fr_record_iter(newest->data, newest->len);
	const struct perf_event_header *h;

	s->begin = fr_cutover_new();
	if (!s->begin)
		return -ENOMEM;
	older->end = s->begin;
	fr_cutover_set_time(s->begin, s->shared->from_ns);
	while ((h = fr_record_next(&it)))
		(void)fr_cutover_keeps(s->begin, h);
	return 0;
}

/* Adopts the set F, if its samples have begun to count. If they have, the set before it ends. */
static int adopt_set(
	struct fr_bpf_adopted *a, const struct fr_buf *newest, const struct fr_bpf_fds *f, struct fr_diag *d)
{
	struct set *s = &a->sets[a->n];
	struct fr_bpf_shared *shared = NULL;
	int r = -ENOENT;

	if (f->of[FR_BPF_FD_SHARED].n)
		r = map_shared(f->of[FR_BPF_FD_SHARED].fds[0], &shared, d);
	if (!shared)
		return r == -ENOENT ? 0 : r;
	s->shared = shared;
	r = add_live(a, shared);
	if (r == 0 && shared->from_ns)
		r = adopt_rings(a, s, f, d);
	if (r == 0 && shared->from_ns && a->n)
		r = add_cutover(newest, &a->sets[a->n - 1], s);
	if (r < 0 || !shared->from_ns) {
		set_deinit(s, a->epoll_fd);
		return r;
	}
	a->n++;
	return 0;
}

static int adopt_sets(struct fr_bpf_adopted *a, const struct fr_adoption *adoption, struct fr_diag *d)
{
	size_t guards = 0;
	int r = 0;

	a->sets = calloc(adoption->n, sizeof(*a->sets));
	if (!a->sets)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < adoption->n; i++) {
		r = adopt_set(a, adoption->newest, &adoption->sets[i], d);
		guards += adoption->sets[i].of[FR_BPF_FD_GUARD].n;
	}
	if (r < 0 || a->n == 0)
		return r < 0 ? r : -ENOENT;
	if (guards < a->sets[a->n - 1].shared->n_fds[FR_BPF_FD_GUARD])
		return fr_fail(d, -EBADMSG, "raise FileDescriptorStoreMax= in the unit file",
			"the descriptor store does not have all links of the unwinder");
	return 0;
}

static int index_session(const struct fr_session *s, struct fr_id_table *ret)
{
	int r = 0;

	for (size_t e = 0; e < s->n_events; e++)
		for (size_t i = 0; r == 0 && i < s->events[e].n_ids; i++)
			r = fr_id_table_add(ret, s->events[e].ids[i], (uint32_t)e);
	return r;
}

static int index_events(struct fr_bpf_adopted *a, const struct fr_bpf_adopted_config *c, const struct set *s,
	const struct fr_id_table *known)
{
	const struct fr_session *session = c->adoption->session;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < s->shared->n_events; i++) {
		const struct fr_bpf_event *e = &s->shared->events[i];
		const uint32_t found = fr_id_table_find(known, e->id);
		const struct fr_event_desc *desc = found < session->n_events ? &session->events[found] : NULL;

		r = fr_id_table_add(&a->cells, e->id, c->find_cell(c->ctx, desc ? desc->name : NULL, e->cpu));
		if (r == 0 && desc && desc->attr.type == PERF_TYPE_TRACEPOINT)
			r = fr_id_table_add(&a->tracepoints, e->id, 0);
	}
	return r;
}

/* The ids of tracepoints have their CPU in them, and are larger than those of the kernel. */
static bool is_tracepoint_of(const struct fr_bpf_adopted *a, uint64_t id)
{
	return id >> 32 && fr_id_table_find(&a->live, id & ~CPU_BITS) != FR_ID_UNKNOWN;
}

static int index_tracepoints(struct fr_bpf_adopted *a, const struct fr_bpf_adopted_config *c)
{
	const struct fr_session *s = c->adoption->session;
	int r = 0;

	for (size_t e = 0; e < s->n_events; e++)
		for (size_t i = 0; r == 0 && i < s->events[e].n_ids; i++) {
			const uint64_t id = s->events[e].ids[i];

			if (!is_tracepoint_of(a, id))
				continue;
			r = fr_id_table_add(
				&a->cells, id, c->find_cell(c->ctx, s->events[e].name, id & CPU_BITS));
			if (r == 0)
				r = fr_id_table_add(&a->tracepoints, id, 0);
		}
	return r;
}

static int index_all(struct fr_bpf_adopted *a, const struct fr_bpf_adopted_config *c)
{
	_cleanup_(fr_id_table_deinit) struct fr_id_table known = {0};
	int r = index_session(c->adoption->session, &known);

	for (size_t i = 0; r == 0 && i < a->n; i++)
		r = index_events(a, c, &a->sets[i], &known);
	return r == 0 ? index_tracepoints(a, c) : r;
}

int fr_bpf_adopted_new(
	const struct fr_bpf_adopted_config *config, struct fr_bpf_adopted **ret, struct fr_diag *d)
{
	struct fr_record_set newest;
	struct fr_bpf_adopted *a;
	int r = fr_record_set_init(&newest, config->adoption->newest);

	if (r < 0)
		return r;
	a = calloc(1, sizeof(*a));
	if (!a) {
		fr_record_set_deinit(&newest);
		return -ENOMEM;
	}
	a->newest = newest;
	a->own_pid = (uint32_t)getpid();
	a->epoll_fd = config->epoll_fd;
	r = adopt_sets(a, config->adoption, d);
	if (r == 0)
		r = index_all(a, config);
	if (r < 0) {
		fr_bpf_adopted_free(a);
		return r;
	}
	*ret = a;
	return 0;
}

struct fr_bpf_adopted *fr_bpf_adopted_free(struct fr_bpf_adopted *a)
{
	if (!a)
		return NULL;
	for (size_t i = 0; i < a->n; i++)
		set_deinit(&a->sets[i], a->epoll_fd);
	fr_record_set_deinit(&a->newest);
	fr_id_table_deinit(&a->cells);
	fr_id_table_deinit(&a->tracepoints);
	fr_id_table_deinit(&a->live);
	free(a->sets);
	free(a);
	return NULL;
}

const struct fr_id_table *fr_bpf_adopted_ids(const struct fr_bpf_adopted *a)
{
	return &a->cells;
}

bool fr_bpf_adopted_has_id(const struct fr_bpf_adopted *a, uint64_t id)
{
	return fr_id_table_find(&a->live, id) != FR_ID_UNKNOWN || is_tracepoint_of(a, id);
}

static void count_lost_tracepoints(const struct set *s, struct fr_tally *t)
{
	const size_t n_cpus = s->n_lost ? s->n_lost / s->shared->n_tracepoints : 0;

	for (size_t i = 0; i < s->n_lost; i++) {
		const uint64_t lost = __atomic_load_n(&s->lost[i], __ATOMIC_RELAXED);
		uint64_t *counted = &s->counted[s->shared->n_events + i];
		uint32_t cell;

		if (lost == *counted)
			continue;
		cell = fr_id_table_find(t->ids, s->shared->tracepoint_ids[i / n_cpus] + i % n_cpus);
		fr_cell_add_lost(cell == FR_ID_UNKNOWN ? t->unknown : &t->cells[cell], FR_LOSS_KERNEL_RING,
			lost - *counted);
		*counted = lost;
	}
}

static void count_lost(const struct set *s, struct fr_tally *t)
{
	for (uint32_t i = 0; i < s->shared->n_events; i++) {
		const uint64_t lost = __atomic_load_n(&s->shared->lost[i], __ATOMIC_RELAXED);

		if (lost == s->counted[i])
			continue;
		fr_cell_add_lost(&t->cells[fr_id_table_find(t->ids, s->shared->events[i].id)],
			FR_LOSS_KERNEL_RING, lost - s->counted[i]);
		s->counted[i] = lost;
	}
	count_lost_tracepoints(s, t);
}

size_t fr_bpf_adopted_drain(struct fr_bpf_adopted *a, struct fr_tally *t, struct fr_counter_cell *owner,
	uint8_t *bounce, fr_run_fn sink, void *ctx)
{
	size_t bytes = 0;

	for (size_t i = 0; i < a->n; i++) {
		struct set *s = &a->sets[i];

		if (s->begin)
			fr_cutover_begin_new(s->begin);
		if (s->end)
			fr_cutover_begin_old(s->end);
		for (size_t k = 0; k < s->n; k++) {
			t->cpu_index = (unsigned)k;
			bytes += fr_bpf_ring_drain(&s->rings[k].ring, t, owner, bounce, sink, ctx);
		}
		if (!a->losses_ended)
			count_lost(s, t);
	}
	return bytes;
}

void fr_bpf_adopted_end_losses(struct fr_bpf_adopted *a, struct fr_tally *t)
{
	for (size_t i = 0; i < a->n; i++)
		count_lost(&a->sets[i], t);
	a->losses_ended = true;
}
