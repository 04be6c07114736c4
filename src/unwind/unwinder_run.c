// SPDX-License-Identifier: GPL-2.0-or-later
/* The thread fr-unwinder. */
#include "unwind/unwinder_private.h"
#include "base/clock.h"
#include "base/thread.h"
#include "unwind/files.h"

#include <string.h>
#include <unistd.h>

#define LOOK_NS (200 * FR_NSEC_PER_MSEC)
#define LOOK_IDLE_NS FR_NSEC_PER_SEC

/* What the thread takes out of the guarded part. */
struct work {
	struct fr_buf records;
	uint64_t since_ns, memory_bytes, cpu_budget_ppm;
};

static bool has_records(const struct fr_unwinder *u)
{
	return u->incoming.len >= UNWIND_QUEUE_BYTES / 16;
}

/* Waits for work, at most until the next look. Returns false if the thread shall end. */
static bool wait_for_work(struct fr_unwinder *u, struct work *ret)
{
	bool goes_on;

	fr_lock(&u->lock);
	while (!u->stop && u->since_ns == u->applied_ns && !has_records(u) &&
		u->memory_bytes == fr_unwind_memory_max(u->memory))
		if (!fr_cond_wait_until(&u->changed, &u->lock, u->look_ns))
			break;
	*ret = (struct work){u->incoming, u->since_ns, u->memory_bytes, u->cpu_budget_ppm};
	u->pending_bytes += u->incoming.len;
	u->incoming = (struct fr_buf){0};
	goes_on = !u->stop;
	fr_unlock(&u->lock);
	return goes_on;
}

/* Returns whether there is work that does not wait for tables: a scan waits for the queue. */
static bool is_wanted(struct fr_unwinder *u)
{
	bool has;

	fr_lock(&u->lock);
	has = u->stop || u->since_ns != u->applied_ns || has_records(u);
	fr_unlock(&u->lock);
	return has;
}

static int apply(void *ctx, const struct perf_event_header *record)
{
	return fr_unwind_processes_apply(ctx, record);
}

void unwind_distrust(struct fr_unwinder *u)
{
	u->is_distrusted = true;
	u->distrust_ns = fr_monotonic_ns();
	u->trust_ns = UINT64_MAX;
	__atomic_store_n(&u->kernel.shared->synced_ns, 0, __ATOMIC_RELEASE);
}

/* The slots know all changes before SINCE_NS. */
static void store_synced(struct fr_unwinder *u, uint64_t since_ns)
{
	fr_lock(&u->lock);
	if (u->is_distrusted && since_ns > u->trust_ns)
		u->is_distrusted = false;
	if (!u->is_distrusted)
		__atomic_store_n(&u->kernel.shared->synced_ns, since_ns, __ATOMIC_RELEASE);
	fr_unlock(&u->lock);
}

static void lose(struct fr_unwinder *u)
{
	fr_lock(&u->lock);
	u->wants_scan = true;
	unwind_distrust(u);
	fr_unlock(&u->lock);
}

static size_t pending_bytes(const struct fr_unwinder *u)
{
	return u->order.pending.len - u->order.released_bytes;
}

/* Applies all records that are older than SINCE_NS. A long scan can have more records than can be kept
   until its end. All of them have the time of its begin, and no round goes past this time before its end. So
   they are applied before that round, which publishes them. */
static int release(struct fr_unwinder *u, uint64_t since_ns)
{
	if (since_ns > u->applied_ns)
		return fr_reorder_release(&u->order, since_ns, apply, u->processes);
	if (pending_bytes(u) > UNWIND_QUEUE_BYTES / 4)
		return fr_reorder_release(&u->order, u->applied_ns + 1, apply, u->processes);
	return 0;
}

static void run_round(struct fr_unwinder *u, struct work *w)
{
	int r = fr_reorder_add(&u->order, w->records.data, w->records.len);

	if (r == 0)
		r = release(u, w->since_ns);
	if (r < 0)
		lose(u); /* no memory: some records were not applied */
	fr_buf_deinit(&w->records);
	fr_lock(&u->lock);
	u->pending_bytes = pending_bytes(u);
	fr_unlock(&u->lock);
	if (w->since_ns == u->applied_ns)
		return;
	u->applied_ns = w->since_ns;
	fr_unwind_processes_publish(u->processes, w->since_ns, fr_monotonic_ns());
	store_synced(u, w->since_ns);
}

static void set_memory(struct fr_unwinder *u, uint64_t bytes)
{
	const uint64_t now_ns = fr_monotonic_ns();

	fr_unwind_memory_set_max(u->memory, bytes);
	if (!fr_unwind_memory_has_excess(u->memory))
		return;
	fr_unwind_objects_evict_excess(u->objects);
	fr_unwind_processes_leave_excess(u->processes);
	fr_unwind_processes_publish(u->processes, u->applied_ns, now_ns);
}

static void update_stats(struct fr_unwinder *u)
{
	struct fr_unwind_processes_stats p;

	fr_unwind_processes_stats(u->processes, &p);
	fr_lock(&u->lock);
	u->stats.memory_bytes = fr_unwind_memory_bytes(u->memory);
	u->stats.memory_max_bytes = fr_unwind_memory_max(u->memory);
	u->stats.processes = p.processes;
	u->stats.processes_dropped = p.dropped;
	u->stats.objects = HASH_COUNT(u->objects->known);
	u->stats.tables = u->objects->n_tables;
	u->stats.tables_evicted = u->objects->n_evicted;
	u->stats.tables_made = u->tables.made;
	u->stats.tables_failed = u->tables.failed;
	u->stats.tables_ns = u->tables.made_ns;
	u->stats.tables_held_back = u->held_back;
	u->stats.holds_back = u->holds_back;
	fr_unlock(&u->lock);
}

/* Does the next work for tables. Returns whether there was any. Both kinds of work get their turn. */
static bool work_once(struct fr_unwinder *u, uint64_t now_ns)
{
	const uint64_t before_ns = fr_now_ns(CLOCK_THREAD_CPUTIME_ID);
	const bool learned = fr_unwind_files_learn_one(u->objects, &u->kernel, now_ns),
		   made = fr_unwind_tables_make_one(&u->tables, now_ns);

	fr_unwind_throttle_spend(&u->throttle, fr_now_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns);
	return learned || made;
}

/* Any user can run thousands of programs whose tables take long to make. Returns whether new tables must
   wait. */
static bool is_held_back(struct fr_unwinder *u, uint64_t now_ns)
{
	u->holds_back = fr_unwind_throttle_is_empty(&u->throttle) &&
			fr_unwind_objects_most_wanted(u->objects, now_ns);
	u->held_back += u->holds_back;
	return u->holds_back;
}

/* Frees memory, and makes tables until the next round. */
static void look(struct fr_unwinder *u, uint64_t cpu_budget_ppm)
{
	const uint64_t now_ns = fr_monotonic_ns();
	bool is_busy = fr_unwind_processes_has_garbage(u->processes);

	if (now_ns < u->look_ns)
		return;
	if (is_busy && now_ns >= u->reclaim_ns) {
		fr_unwind_processes_reclaim(u->processes, now_ns);
		fr_unwind_memory_trim(u->memory);
		u->reclaim_ns = fr_monotonic_ns() + LOOK_NS;
	}
	fr_unwind_objects_look(u->objects, now_ns);
	fr_unwind_throttle_fill(&u->throttle, now_ns, cpu_budget_ppm);
	while (!fr_unwind_throttle_is_empty(&u->throttle) && work_once(u, now_ns)) {
		is_busy = true;
		if (!is_wanted(u))
			continue;
		u->look_ns = 0; /* go on after the other work */
		return;
	}
	/* An object that waits for room gets it when another one is not needed for one look. */
	is_busy = is_held_back(u, now_ns) || is_busy || fr_unwind_objects_most_wanted(u->objects, UINT64_MAX);
	u->look_ns = fr_monotonic_ns() + (is_busy ? LOOK_NS : LOOK_IDLE_NS);
}

static void begin_thread(struct fr_unwinder *u)
{
	fr_thread_begin(FR_THREAD_UNWINDER);
	fr_lock(&u->lock);
	u->tid = gettid();
	fr_cond_broadcast(&u->changed);
	fr_unlock(&u->lock);
}

void *unwind_run(void *unwinder)
{
	struct fr_unwinder *u = unwinder;
	struct work w;

	begin_thread(u);
	while (wait_for_work(u, &w)) {
		run_round(u, &w);
		if (w.memory_bytes != fr_unwind_memory_max(u->memory))
			set_memory(u, w.memory_bytes);
		look(u, w.cpu_budget_ppm);
		update_stats(u);
	}
	fr_buf_deinit(&w.records);
	return NULL;
}
