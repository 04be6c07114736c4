// SPDX-License-Identifier: GPL-2.0-or-later
#include "unwind/unwinder_private.h"
#include "base/clock.h"
#include "base/thread.h"

#include <errno.h>
#include <stdlib.h>

#define MEMORY_BYTES (64ULL << 20)
/* If the records of a scan are too many, each scan makes the next one necessary. */
#define SCAN_PERIOD_NS (60 * FR_NSEC_PER_SEC)

static int make_parts(struct fr_unwinder *u, const struct fr_unwinder_config *config)
{
	struct fr_unwind_shared *shared = u->kernel.shared;
	int r = fr_unwind_memory_new(
		u->kernel.chunks_fd, config->memory_bytes ? config->memory_bytes : MEMORY_BYTES, &u->memory);

	if (r == 0)
		r = fr_unwind_objects_new(shared, u->memory, &u->objects);
	if (r == 0)
		r = fr_unwind_processes_new(shared, u->memory, u->objects, &u->processes);
	if (r < 0)
		return r;
	u->tables = (struct fr_unwind_tables){
		.objects = u->objects, .processes = u->processes, .memory = u->memory};
	u->memory_bytes = fr_unwind_memory_max(u->memory);
	u->cpu_budget_ppm = config->cpu_budget_ppm;
	fr_unwind_throttle_init(&u->throttle, fr_monotonic_ns());
	u->stats.notes_changes = u->kernel.notes_changes;
	return 0;
}

static int start_thread(struct fr_unwinder *u, struct fr_diag *d)
{
	const int r = pthread_create(&u->thread, NULL, unwind_run, u);

	if (r != 0)
		return fr_fail_errno(d, -r, NULL, "cannot start the thread of the unwinder");
	u->has_thread = true;
	fr_lock(&u->lock);
	while (!u->tid)
		fr_cond_wait(&u->changed, &u->lock);
	fr_unlock(&u->lock);
	return 0;
}

static int start(struct fr_unwinder *u, const struct fr_unwinder_config *config, struct fr_diag *d)
{
	int r = fr_unwind_kernel_open(&u->kernel, d);

	if (r < 0)
		return r;
	r = make_parts(u, config);
	if (r < 0)
		return fr_fail_errno(d, r, NULL, "cannot make the memory of unwind tables");
	r = fr_unwind_kernel_attach(&u->kernel, d);
	return r < 0 ? r : start_thread(u, d);
}

int fr_unwinder_start(const struct fr_unwinder_config *config, struct fr_unwinder **ret, struct fr_diag *d)
{
	struct fr_unwinder *u = calloc(1, sizeof(*u));
	int r;

	fr_thread_assert_may_wait();
	if (!u)
		return fr_fail_errno(d, -ENOMEM, NULL, "cannot start the unwinder");
	fr_lock_init(&u->lock);
	fr_cond_init(&u->changed);
	r = start(u, config, d);
	if (r < 0) {
		fr_unwinder_stop(u);
		return r;
	}
	*ret = u;
	return 0;
}

static void join_thread(struct fr_unwinder *u)
{
	if (!u->has_thread)
		return;
	fr_lock(&u->lock);
	u->stop = true;
	fr_cond_broadcast(&u->changed);
	fr_unlock(&u->lock);
	pthread_join(u->thread, NULL);
}

struct fr_unwinder *fr_unwinder_stop(struct fr_unwinder *u)
{
	if (!u)
		return NULL;
	join_thread(u);
	fr_unwind_processes_free(u->processes);
	fr_unwind_objects_free(u->objects);
	fr_unwind_memory_free(u->memory);
	fr_unwind_kernel_close(&u->kernel);
	fr_reorder_deinit(&u->order);
	fr_buf_deinit(&u->incoming);
	fr_cond_deinit(&u->changed);
	fr_lock_deinit(&u->lock);
	free(u);
	return NULL;
}

pid_t fr_unwinder_tid(const struct fr_unwinder *u)
{
	return u->tid; /* does not change after the start */
}

void fr_unwinder_set(struct fr_unwinder *u, const struct fr_unwinder_config *config)
{
	fr_lock(&u->lock);
	u->memory_bytes = fr_unwind_memory_round(config->memory_bytes ? config->memory_bytes : MEMORY_BYTES);
	u->cpu_budget_ppm = config->cpu_budget_ppm;
	fr_cond_broadcast(&u->changed);
	fr_unlock(&u->lock);
}

int fr_unwinder_share_maps(const struct fr_unwinder *u, struct bpf_object *object)
{
	return fr_unwind_kernel_share(&u->kernel, object);
}

size_t fr_unwinder_links(const struct fr_unwinder *u, int ret[static FR_UNWINDER_LINKS_MAX])
{
	return u ? fr_unwind_kernel_links(&u->kernel, ret) : 0;
}

static void push(struct fr_unwinder *u, const struct perf_event_header *h) FR_REQUIRES(u->lock)
{
	const bool has_room = u->incoming.len + u->pending_bytes + h->size <= UNWIND_QUEUE_BYTES;

	if (has_room && fr_buf_append(&u->incoming, h, h->size) == 0)
		return;
	u->stats.queue_drops++;
	u->wants_scan = true;
	unwind_distrust(u);
}

void fr_unwinder_update(struct fr_unwinder *u, const void *records, size_t len)
{
	struct fr_record_iter it = fr_record_iter(records, len);
	const struct perf_event_header *h;

	fr_lock(&u->lock);
	while ((h = fr_record_next(&it)))
		if (fr_unwind_processes_need(h))
			push(u, h);
	fr_unlock(&u->lock);
}

bool fr_unwinder_end_round(struct fr_unwinder *u, uint64_t since_ns)
{
	const uint64_t now_ns = fr_monotonic_ns();
	bool wants_scan;

	fr_lock(&u->lock);
	u->since_ns = since_ns;
	wants_scan = u->wants_scan && now_ns >= u->no_scan_ns;
	if (wants_scan) {
		u->wants_scan = false;
		u->no_scan_ns = now_ns + SCAN_PERIOD_NS;
	}
	fr_cond_broadcast(&u->changed);
	fr_unlock(&u->lock);
	return wants_scan;
}

bool fr_unwinder_is_behind(const struct fr_unwinder *u)
{
	struct fr_lock *lock = (struct fr_lock *)&u->lock; /* to the caller, the unwinder does not change */
	bool is_behind;

	fr_lock(lock);
	is_behind = u->incoming.len + u->pending_bytes > UNWIND_QUEUE_BYTES / 2;
	fr_unlock(lock);
	return is_behind;
}

void fr_unwinder_distrust(struct fr_unwinder *u)
{
	fr_lock(&u->lock);
	unwind_distrust(u);
	fr_unlock(&u->lock);
}

void fr_unwinder_trust(struct fr_unwinder *u, uint64_t scan_ns)
{
	fr_lock(&u->lock);
	if (u->is_distrusted && scan_ns >= u->distrust_ns)
		u->trust_ns = scan_ns;
	fr_unlock(&u->lock);
}

void fr_unwinder_stats(const struct fr_unwinder *u, struct fr_unwinder_stats *ret)
{
	struct fr_lock *lock = (struct fr_lock *)&u->lock; /* to the caller, the unwinder does not change */
	struct fr_unwind_counters c;

	fr_unwind_kernel_count(&u->kernel, &c);
	fr_lock(lock);
	*ret = u->stats;
	fr_unlock(lock);
	for (int i = 0; i < _FR_UNWIND_RESULTS; i++)
		ret->walks[i] = c.walks[i];
	ret->frames = c.frames;
}
