// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The tracker's thread, and what others may ask of it.
 *
 * The recorder makes no system call for side-band in the steady state: after work the tracker naps for a
 * moment and looks again by itself, and the recorder only wakes it from a sleep that began with empty queues,
 * or from a nap when a queue is half full.
 *
 *     AWAKE ── queues empty, something was done ──► NAP ── time over, nothing came ──► ASLEEP
 *       ▲                                            │                                   │
 *       └──────────── half full, or asked ───────────┴────────────── a message ──────────┘
 */
#include "sideband/tracker_internal.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "perfdata/writer.h"

#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum sleep_state {
	AWAKE,
	NAP,
	ASLEEP,
};

#define QUEUE_BYTES_DEFAULT (2u << 20)
#define NAP_NS (50 * FR_NSEC_PER_MSEC)
#define NICE 5
/* Samples wait so long for the first scan. It goes on, but one file of a process, on a disk that does not
   answer, must not keep all else from being recorded. */
#define START_NS (10 * FR_NSEC_PER_SEC)
#define TIDY_NS (300 * FR_NSEC_PER_SEC)

static void wake(struct fr_tracker *k)
{
	if (atomic_exchange(&k->sleep, AWAKE) != AWAKE)
		syscall(SYS_futex, &k->sleep, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* The producer's side of the diagram. */
static void nudge(struct fr_tracker *k, const struct fr_queue *q)
{
	uint32_t state = atomic_load(&k->sleep);

	if (state == ASLEEP || (state == NAP && fr_queue_is_half_full(q)))
		wake(k);
}

static int push(struct fr_tracker *k, struct fr_queue *q, const void *head, size_t head_len, const void *data,
	size_t len)
{
	if (fr_queue_push_parts(q, head, head_len, data, len) != 0) {
		atomic_fetch_add(&k->queue_drops, 1);
		atomic_store(&k->scan_wanted, true);
		nudge(k, q);
		return 1;
	}
	nudge(k, q);
	return 0;
}

int fr_tracker_fresh(struct fr_tracker *k, const void *records, size_t len)
{
	return len ? push(k, k->fresh, NULL, 0, records, len) : 0;
}

int fr_tracker_evicted(struct fr_tracker *k, const void *zstd, size_t len, uint64_t low_watermark_ns)
{
	return len ? push(k, k->evicted, &low_watermark_ns, sizeof(low_watermark_ns), zstd, len) : 0;
}

bool fr_tracker_is_behind(const struct fr_tracker *k)
{
	return fr_queue_is_half_full(k->evicted);
}

void fr_tracker_round(struct fr_tracker *k, uint64_t since_ns)
{
	atomic_store(&k->fresh_since_ns, since_ns);
}

void fr_tracker_request_scan(struct fr_tracker *k)
{
	atomic_store(&k->scan_wanted, true);
	wake(k);
}

/* Until when there is nothing to do by the clock; 0: now; UINT64_MAX: for ever. */
static uint64_t due_ns(const struct fr_tracker *k)
{
	uint64_t due = UINT64_MAX;

	if (atomic_load(&k->scan_wanted) && !k->scan_ns_now)
		due = k->next_scan_ns;
	if (k->retry_ns)
		due = FR_MIN(due, k->retry_ns);
	return due;
}

static bool may_sleep(const struct fr_tracker *k, enum sleep_state state)
{
	bool empty = fr_queue_is_empty(k->fresh) && fr_queue_is_empty(k->evicted);

	if (atomic_load(&k->stop) || atomic_load(&k->modules_wanted) || due_ns(k) <= fr_monotonic_ns())
		return false;
	if (state == ASLEEP || atomic_load(&k->waiters))
		return empty;
	return !fr_queue_is_half_full(k->fresh) && !fr_queue_is_half_full(k->evicted);
}

static void doze(struct fr_tracker *k, enum sleep_state state)
{
	uint64_t now = fr_monotonic_ns(), due = due_ns(k), ns = due > now ? due - now : 0;
	struct timespec ts;

	if (state == NAP)
		ns = FR_MIN(ns, NAP_NS);
	atomic_store(&k->sleep, state);
	/* Others store what they want before they look at the state; so what they want is looked at after it.
	 */
	if (may_sleep(k, state)) {
		ts = (struct timespec){
			(time_t)FR_MIN(ns / FR_NSEC_PER_SEC, 3600ull), (long)(ns % FR_NSEC_PER_SEC)};
		syscall(SYS_futex, &k->sleep, FUTEX_WAIT_PRIVATE, state, &ts, NULL, 0);
	}
	atomic_store(&k->sleep, AWAKE);
}

static bool pump_evicted(struct fr_tracker *k)
{
	k->packed.len = 0;
	if (!fr_queue_read(k->evicted, &k->packed))
		return false;
	tracker_apply_evicted(k);
	fr_queue_done(k->evicted);
	return true;
}

void tracker_see(struct fr_tracker *k, const void *records, size_t len)
{
	fr_early_ids_see(k->early_ids, records, len);
	if (k->config.see)
		k->config.see(k->config.ctx, records, len, k->tail.low_watermark_ns);
}

static bool pump_fresh(struct fr_tracker *k)
{
	uint64_t since_ns = atomic_load(&k->fresh_since_ns);

	/* All that was there at that moment is read now: the batch has room for a full queue. */
	k->batch.len = 0;
	while (fr_queue_read(k->fresh, &k->batch))
		;
	tracker_take_session(k);
	if (k->batch.len) {
		tracker_file_append(k, k->batch.data, k->batch.len);
		tracker_head_add(k, k->batch.data, k->batch.len);
		fr_queue_done(k->fresh);
		tracker_see(k, k->batch.data, k->batch.len);
	}
	k->since_ns = since_ns;
	tracker_head_advance(k, since_ns);
	return k->batch.len > 0;
}

static bool pump(struct fr_tracker *k)
{
	/* What comes meanwhile is for the next time: there is other work than the queues'. */
	const uint64_t until = fr_queue_tail(k->evicted);
	bool any = false;

	/* The model first: dumps wait for it, and for the file the disk may be slow. */
	while (fr_queue_head(k->evicted) < until && pump_evicted(k))
		any = true;
	any |= pump_fresh(k);
	if (atomic_load(&k->modules_wanted))
		tracker_modules_check(k, fr_monotonic_ns());
	if (atomic_load(&k->waiters)) {
		pthread_mutex_lock(&k->lock);
		pthread_cond_broadcast(&k->progress);
		pthread_mutex_unlock(&k->lock);
	}
	return any;
}

void tracker_pump(struct fr_tracker *k)
{
	(void)pump(k);
}

static void scan_if_wanted(struct fr_tracker *k, uint64_t now)
{
	if (now < k->next_scan_ns || k->scan_ns_now || !atomic_exchange(&k->scan_wanted, false))
		return;
	if (tracker_scan_again(k) < 0)
		atomic_store(&k->scan_wanted, true);
}

static void tidy_if_due(struct fr_tracker *k, uint64_t now)
{
	if (now - k->tidy_ns < TIDY_NS)
		return;
	k->tidy_ns = now;
	fr_auxfile_tidy(k->config.dirfd);
}

static void tell_started(struct fr_tracker *k, int r, const struct fr_diag *d)
{
	pthread_mutex_lock(&k->lock);
	k->is_started = true;
	k->start_result = r;
	k->start_diag = *d;
	pthread_cond_broadcast(&k->progress);
	pthread_mutex_unlock(&k->lock);
}

static int first_scan(struct fr_tracker *k)
{
	struct fr_diag d = {0};
	int r = tracker_scan_first(k, &d);

	tell_started(k, r, &d);
	tracker_compact_init(k, fr_monotonic_ns());
	/* Nobody hears of it any more: a later scan mends it. */
	if (r < 0 && k->is_unwatched) {
		atomic_store(&k->scan_wanted, true);
		r = 0;
	}
	return r;
}

/* The scan is of the time before the first sample, and so are the names that it tells; reading them may take
   its time. */
static void adopt(struct fr_tracker *k)
{
	tracker_scan_hold(k);
	tell_started(k, 0, &(struct fr_diag){0});
	/* The machine of now is the best guess at what it was, then. */
	if (!tracker_adopt(k))
		(void)tracker_scan_first(k, NULL);
	atomic_store(&k->adopting, false);
	tracker_pump(k);
	if (tracker_scan_held(k) < 0)
		atomic_store(&k->scan_wanted, true);
}

static void *run(void *arg)
{
	struct fr_tracker *k = arg;
	bool busy = true;

	pthread_setname_np(pthread_self(), "fr-tracker");
	atomic_store(&k->tid, gettid());
	(void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
	if (k->config.adopt)
		adopt(k);
	else if (first_scan(k) < 0)
		return NULL;
	while (!atomic_load(&k->stop)) {
		uint64_t now = fr_monotonic_ns();
		int more;

		busy = pump(k);
		tracker_file_round(k);
		tracker_file_retry(k, now);
		scan_if_wanted(k, now);
		tracker_scan_settle(k);
		tracker_modules_check(k, now);
		tidy_if_due(k, now);
		more = tracker_compact(k, now);
		if (more != 1)
			doze(k, busy || more || k->scan_ns_now ? NAP : ASLEEP);
	}
	(void)pump(k);
	tracker_scan_abandon(k);
	return NULL;
}

static int init(struct fr_tracker *k, const struct fr_tracker_config *config)
{
	size_t bytes = (config->queue_bytes ? config->queue_bytes : QUEUE_BYTES_DEFAULT) / 2;
	pthread_condattr_t attr;
	int r;

	k->config = *config;
	k->config.session = NULL;
	pthread_mutex_init(&k->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&k->progress, &attr);
	pthread_condattr_destroy(&attr);
	r = fr_queue_new(bytes, &k->fresh);
	if (r == 0)
		r = fr_session_copy(config->session, &k->session);
	if (r == 0)
		r = fr_session_join_equal_events(&k->session);
	if (r == 0)
		r = fr_queue_new(bytes, &k->evicted);
	if (r == 0)
		r = fr_model_new(&k->pool, &k->tail.model);
	if (r == 0)
		r = fr_model_new(&k->pool, &k->head.model);
	if (r == 0)
		r = fr_buf_reserve(&k->batch, fr_queue_size(k->fresh));
	if (r == 0)
		r = fr_buf_reserve(&k->packed, fr_queue_size(k->evicted));
	if (r < 0)
		return r;
	k->early_ids = fr_early_ids_new();
	k->zstd = ZSTD_createDCtx();
	k->section = malloc(FR_MAX(config->section_max, (size_t)1));
	return k->zstd && k->section && k->early_ids ? 0 : -ENOMEM;
}

int fr_tracker_new(const struct fr_tracker_config *config, struct fr_tracker **ret, struct fr_diag *d)
{
	struct fr_tracker *k = calloc(1, sizeof(*k));
	_cleanup_buf_ struct fr_buf head = {0};
	int r = -ENOMEM;

	if (k)
		r = init(k, config);
	if (r == 0 && config->adopt) {
		r = fr_auxfile_adopt(config->dirfd, &k->file, d);
		/* -EACCES: of an instance that could give it to root, as this one cannot take it back. */
		if (r == -ENOENT || r == -EACCES) {
			k->config.adopt = false, r = 0;
			if (d)
				*d = (struct fr_diag){0};
		}
	}
	if (r == 0)
		r = fr_pipe_append_head(&k->session, &head);
	if (r == 0 && !k->file)
		r = fr_auxfile_open(config->dirfd, head.data, head.len, &k->file, d);
	if (r < 0) {
		fr_tracker_free(k);
		return fr_fail_errno(d, r, NULL, "cannot prepare the side-band file");
	}
	atomic_store(&k->adopting, k->config.adopt);
	k->tidy_ns = fr_monotonic_ns();
	atomic_store(&k->file_bytes, fr_auxfile_bytes(k->file));
	k->round_bytes = fr_auxfile_bytes(k->file);
	*ret = k;
	return 0;
}

int fr_tracker_start(struct fr_tracker *k, struct fr_diag *d)
{
	struct timespec until;
	uint64_t until_ns;
	int r = pthread_create(&k->thread, NULL, run, k);

	if (r != 0)
		return fr_fail_errno(d, -r, NULL, "cannot start the side-band thread");
	k->has_thread = true;
	until_ns = fr_monotonic_ns() + START_NS;
	until = (struct timespec){(time_t)(until_ns / FR_NSEC_PER_SEC), (long)(until_ns % FR_NSEC_PER_SEC)};
	pthread_mutex_lock(&k->lock);
	while (!k->is_started && r == 0)
		r = pthread_cond_timedwait(&k->progress, &k->lock, &until);
	k->is_unwatched = !k->is_started;
	r = k->is_started ? k->start_result : 1;
	if (r < 0 && d && !d->code)
		*d = k->start_diag;
	pthread_mutex_unlock(&k->lock);
	if (r < 0)
		fr_tracker_stop(k);
	return r;
}

struct fr_early_ids *fr_tracker_early_ids(const struct fr_tracker *k)
{
	return k->early_ids;
}

pid_t fr_tracker_tid(const struct fr_tracker *k)
{
	return atomic_load(&k->tid);
}

void fr_tracker_stop(struct fr_tracker *k)
{
	if (k->has_thread) {
		atomic_store(&k->stop, true);
		wake(k);
		pthread_join(k->thread, NULL);
		k->has_thread = false;
	}
	k->file = fr_auxfile_close(k->file);
}

struct fr_tracker *fr_tracker_free(struct fr_tracker *k)
{
	if (!k)
		return NULL;
	fr_tracker_stop(k);
	fr_early_ids_free(k->early_ids);
	fr_queue_free(k->fresh);
	fr_queue_free(k->evicted);
	fr_model_free(k->tail.model);
	fr_model_free(k->head.model);
	fr_reorder_deinit(&k->tail.reorder);
	fr_reorder_deinit(&k->head.reorder);
	fr_buf_deinit(&k->compaction.slice);
	fr_buf_deinit(&k->batch);
	fr_buf_deinit(&k->packed);
	free(k->section);
	fr_session_deinit(&k->session);
	fr_session_deinit(&k->session_next);
	ZSTD_freeDCtx(k->zstd);
	pthread_cond_destroy(&k->progress);
	pthread_mutex_destroy(&k->lock);
	free(k);
	return NULL;
}

static bool is_ready(const struct fr_tracker *k, uint64_t target)
{
	return fr_queue_head(k->evicted) >= target && !atomic_load(&k->modules_wanted) &&
	       !atomic_load(&k->adopting);
}

/* With the lock held: until the tail has taken in all evicted sections up to TARGET. */
static int wait_for_tail(struct fr_tracker *k, uint64_t target, uint64_t timeout_ns)
{
	uint64_t until = fr_monotonic_ns() + timeout_ns;
	struct timespec ts = {(time_t)(until / FR_NSEC_PER_SEC), (long)(until % FR_NSEC_PER_SEC)};

	while (!is_ready(k, target))
		if (pthread_cond_timedwait(&k->progress, &k->lock, &ts) == ETIMEDOUT)
			return is_ready(k, target) ? 0 : -ETIMEDOUT;
	return 0;
}

int fr_tracker_model(struct fr_tracker *k, uint64_t low_watermark_ns, uint64_t time_ns, uint64_t id,
	uint64_t timeout_ns, struct fr_buf *ret_state, struct fr_buf *ret_since)
{
	uint64_t target = fr_queue_tail(k->evicted);
	size_t before = ret_state->len, before_since = ret_since->len;
	int r;

	atomic_fetch_add(&k->waiters, 1);
	atomic_store(&k->modules_wanted, true);
	wake(k);
	pthread_mutex_lock(&k->lock);
	r = wait_for_tail(k, target, timeout_ns);
	if (r == 0)
		r = tracker_advance(&k->tail, low_watermark_ns);
	if (r == 0)
		r = fr_model_write(k->tail.model, time_ns, id, ret_state);
	if (r == 0)
		r = fr_reorder_write(&k->tail.reorder, ret_since);
	pthread_mutex_unlock(&k->lock);
	atomic_fetch_sub(&k->waiters, 1);
	if (r < 0) {
		ret_state->len = before;
		ret_since->len = before_since;
	}
	return r;
}

void fr_tracker_stats(struct fr_tracker *k, struct fr_tracker_stats *ret)
{
	struct fr_model_stats m;
	uint64_t low_watermark_ns;

	pthread_mutex_lock(&k->lock);
	fr_model_stats(k->tail.model, &m);
	low_watermark_ns = k->head.low_watermark_ns;
	pthread_mutex_unlock(&k->lock);
	*ret = (struct fr_tracker_stats){
		.records = atomic_load(&k->records),
		.bytes = atomic_load(&k->bytes),
		.file_bytes = atomic_load(&k->file_bytes),
		.scans = atomic_load(&k->scans),
		.queue_drops = atomic_load(&k->queue_drops),
		.write_errors = atomic_load(&k->write_errors),
		.last_errno = atomic_load(&k->last_errno),
		.damaged = atomic_load(&k->damaged),
		.low_watermark_ns = low_watermark_ns,
		.processes = m.processes,
		.threads = m.threads,
		.maps = m.maps,
		.model_bytes = m.bytes,
		.compactions = atomic_load(&k->compactions),
		.compaction_errno = atomic_load(&k->compaction_errno),
		.compactions_failed = atomic_load(&k->compactions_failed),
		.checkpoint_bytes = atomic_load(&k->checkpoint_bytes),
		.scan_ns = atomic_load(&k->scan_ns),
		.is_late = k->is_unwatched && atomic_load(&k->scans) == 0,
		.kernel_is_hidden = atomic_load(&k->kernel_is_hidden),
		.processes_are_hidden = atomic_load(&k->processes_are_hidden),
		.maps_hidden = atomic_load(&k->maps_hidden),
	};
}
