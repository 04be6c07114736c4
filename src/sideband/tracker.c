// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The tracker's thread. After its work the tracker sleeps for 50 ms (NAP) and then checks the queues without
 * being woken. So while side-band (records that are not samples) comes all the time, the recorder needs no
 * system call to wake the tracker. docs/design/31 describes the states.
 *
 *     AWAKE ── queues empty, something was done ──► NAP ── time over, nothing came ──► ASLEEP
 *       ▲                                            │                                   │
 *       └────── a queue half full, or a request ─────┴──────── a message or a request ───┘
 */
#include "sideband/tracker_internal.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/thread.h"
#include "perfdata/writer.h"

#include <errno.h>
#include <linux/futex.h>
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
/* fr_tracker_start() waits at most this long for the first scan, and samples are enabled only afterwards. The
   scan can take very long, because a file of a process can be on a disk that hangs. */
#define START_NS (10 * FR_NSEC_PER_SEC)
#define REMOVE_OLD_NS (300 * FR_NSEC_PER_SEC)

static void wake(struct fr_tracker *t)
{
	if (atomic_exchange(&t->sleep, AWAKE) != AWAKE)
		syscall(SYS_futex, &t->sleep, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void wake_if_needed(struct fr_tracker *t, const struct fr_queue *q)
{
	uint32_t state = atomic_load(&t->sleep);

	if (state == ASLEEP || (state == NAP && fr_queue_is_half_full(q)))
		wake(t);
}

static void lose(struct fr_tracker *t)
{
	atomic_store(&t->scan_wanted, true);
	if (t->config.lost)
		t->config.lost(t->config.ctx);
}

static int push(struct fr_tracker *t, struct fr_queue *q, const void *head, size_t head_len, const void *data,
	size_t len)
{
	int r = fr_queue_push(q, head, head_len, data, len);

	if (r != 0) {
		atomic_fetch_add(&t->queue_drops, 1);
		lose(t);
	}
	wake_if_needed(t, q);
	return r;
}

int fr_tracker_push_fresh(struct fr_tracker *t, const void *records, size_t len)
{
	return len ? push(t, t->fresh, NULL, 0, records, len) : 0;
}

int fr_tracker_push_evicted(
	struct fr_tracker *t, uint64_t seq, uint64_t low_watermark_ns, const void *zstd, size_t len)
{
	const struct tracker_evicted head = {seq, low_watermark_ns};

	/* The section is in the crash memory before a checkpoint can have it. */
	if (t->config.tail)
		fr_tail_append(t->config.tail, seq, low_watermark_ns, zstd, len);
	else if (len == 0)
		return 0;
	return push(t, t->evicted, &head, sizeof(head), zstd, len);
}

bool fr_tracker_is_behind(const struct fr_tracker *t)
{
	return fr_queue_is_half_full(t->evicted);
}

void fr_tracker_end_round(struct fr_tracker *t, uint64_t since_ns)
{
	fr_thread_assert(FR_THREAD_RECORDER);
	atomic_store(&t->fresh_since_ns, since_ns);
}

void fr_tracker_request_scan(struct fr_tracker *t)
{
	lose(t);
	wake(t);
}

/* Returns the time of the tracker's next work that does not come from the queues; 0 or a time in the past if
   there is such work now; UINT64_MAX if there is none. */
static uint64_t next_due_ns(const struct fr_tracker *t)
{
	uint64_t due = UINT64_MAX;

	if (atomic_load(&t->scan_wanted) && !t->scan_ns_now)
		due = t->next_scan_ns;
	if (t->retry_ns)
		due = FR_MIN(due, t->retry_ns);
	return FR_MIN(due, tracker_checkpoint_due_ns(t));
}

static bool may_sleep(const struct fr_tracker *t, enum sleep_state state)
{
	if (atomic_load(&t->stop) || atomic_load(&t->modules_wanted) || next_due_ns(t) <= fr_monotonic_ns())
		return false;
	if (state == ASLEEP || atomic_load(&t->waiters))
		return fr_queue_is_empty(t->fresh) && fr_queue_is_empty(t->evicted);
	return !fr_queue_is_half_full(t->fresh) && !fr_queue_is_half_full(t->evicted);
}

static void sleep_in(struct fr_tracker *t, enum sleep_state state)
{
	uint64_t now = fr_monotonic_ns(), due = next_due_ns(t), ns = due > now ? due - now : 0;
	struct timespec ts;

	if (state == NAP)
		ns = FR_MIN(ns, NAP_NS);
	atomic_store(&t->sleep, state);
	/* Other threads first store a request and then load t->sleep. This thread first stores t->sleep and
	   then checks for requests in may_sleep(). With this order, either this thread sees the request, or
	   the other thread sees the state and wakes this thread. */
	if (may_sleep(t, state)) {
		ts = (struct timespec){
			(time_t)FR_MIN(ns / FR_NSEC_PER_SEC, 3600ull), (long)(ns % FR_NSEC_PER_SEC)};
		syscall(SYS_futex, &t->sleep, FUTEX_WAIT_PRIVATE, state, &ts, NULL, 0);
	}
	atomic_store(&t->sleep, AWAKE);
}

static bool pump_evicted(struct fr_tracker *t)
{
	t->packed.len = 0;
	if (!fr_queue_read(t->evicted, &t->packed))
		return false;
	tracker_apply_evicted(t);
	fr_queue_done(t->evicted);
	return true;
}

static bool pump_fresh(struct fr_tracker *t)
{
	uint64_t since_ns = atomic_load(&t->fresh_since_ns);

	/* SINCE_NS is loaded before the queue is read, and the batch has room for a full queue. So the batch
	   gets all records that were pushed before fr_tracker_end_round() set SINCE_NS, and no record that
	   remains in the queue is older than SINCE_NS. */
	t->batch.len = 0;
	while (fr_queue_read(t->fresh, &t->batch))
		;
	tracker_update_session(t);
	if (t->batch.len) {
		tracker_file_append(t, t->batch.data, t->batch.len);
		tracker_head_add(t, t->batch.data, t->batch.len);
		fr_queue_done(t->fresh);
		tracker_observe(t, t->batch.data, t->batch.len);
	}
	t->since_ns = since_ns;
	if (t->config.observed)
		t->is_observer_behind = t->config.observed(
			t->config.ctx, t->scan_ns_now ? FR_MIN(since_ns, t->scan_ns_now) : since_ns);
	tracker_head_advance(t, since_ns);
	return t->batch.len > 0;
}

bool tracker_pump(struct fr_tracker *t)
{
	/* Sections that come from now on wait for the next call, because the tracker has other work, too. */
	const uint64_t until = fr_queue_tail(t->evicted);
	bool any = false;

	/* The tail model comes first: dumps wait for it, and the disk of the file may be slow. */
	while (fr_queue_head(t->evicted) < until && pump_evicted(t))
		any = true;
	any |= pump_fresh(t);
	if (atomic_load(&t->modules_wanted))
		tracker_modules_check(t, fr_monotonic_ns());
	if (atomic_load(&t->waiters)) {
		fr_lock(&t->lock);
		fr_cond_broadcast(&t->progress);
		fr_unlock(&t->lock);
	}
	return any;
}

static void scan_if_wanted(struct fr_tracker *t, uint64_t now)
{
	if (now < t->next_scan_ns || t->scan_ns_now || !atomic_exchange(&t->scan_wanted, false))
		return;
	tracker_scan_freeze(t);
	if (tracker_scan_read(t) < 0)
		atomic_store(&t->scan_wanted, true);
}

static void remove_old_if_due(struct fr_tracker *t, uint64_t now)
{
	if (now - t->remove_old_ns < REMOVE_OLD_NS)
		return;
	t->remove_old_ns = now;
	fr_auxfile_remove_old(t->config.dirfd);
}

/* Returns whether fr_tracker_start() no longer waits for the result. */
static bool report_start(struct fr_tracker *t, int r, const struct fr_diag *d)
{
	bool is_unwatched;

	fr_lock(&t->lock);
	is_unwatched = t->is_unwatched;
	t->is_started = true;
	t->start_result = r;
	t->start_diag = *d;
	fr_cond_broadcast(&t->progress);
	fr_unlock(&t->lock);
	return is_unwatched;
}

static int start_with_scan(struct fr_tracker *t)
{
	struct fr_diag d = {0};
	int r = tracker_scan_first(t, &d);
	bool is_unwatched;

	/* The machine can crash as soon as the recording begins. */
	if (r == 0)
		tracker_checkpoint(t, fr_monotonic_ns());
	is_unwatched = report_start(t, r, &d);
	tracker_compact_init(t, fr_monotonic_ns());
	/* fr_tracker_start() has returned 1 already, so it cannot report this error. The thread goes on, and
	   a later scan replaces the failed scan. */
	if (r < 0 && is_unwatched) {
		atomic_store(&t->scan_wanted, true);
		r = 0;
	}
	return r;
}

static void start_with_adoption(struct fr_tracker *t)
{
	/* fr_tracker_start() waits for this freeze, so the ring is frozen before the first sample of this
	   instance. /proc is read later, because reading it can take long. (During a freeze, no new chunk of
	   the ring gets a low watermark later than the freeze.) */
	tracker_scan_freeze(t);
	(void)report_start(t, 0, &(struct fr_diag){0});
	/* If the old file cannot be used, the processes that run now are the best guess at the processes that
	   ran at the time of the oldest frame. */
	if (!tracker_adopt(t))
		(void)tracker_scan_first(t, NULL);
	atomic_store(&t->adopting, false);
	(void)tracker_pump(t);
	if (tracker_scan_read(t) < 0)
		atomic_store(&t->scan_wanted, true);
}

static void *run(void *arg)
{
	struct fr_tracker *t = arg;

	fr_thread_begin(FR_THREAD_TRACKER);
	atomic_store(&t->tid, gettid());
	(void)setpriority(PRIO_PROCESS, (id_t)gettid(), NICE);
	if (t->config.adopt)
		start_with_adoption(t);
	else if (start_with_scan(t) < 0)
		return NULL;
	while (!atomic_load(&t->stop)) {
		uint64_t now = fr_monotonic_ns();
		bool busy = tracker_pump(t);

		tracker_file_end_round(t);
		tracker_file_retry(t, now);
		scan_if_wanted(t, now);
		tracker_scan_settle(t);
		tracker_modules_check(t, now);
		remove_old_if_due(t, now);
		tracker_compact(t, now);
		tracker_checkpoint(t, now);
		busy |= t->compaction.state == COMPACT_SYNCING || t->scan_ns_now;
		if (t->compaction.state != COMPACT_WRITING)
			sleep_in(t, busy ? NAP : ASLEEP);
	}
	(void)tracker_pump(t);
	tracker_scan_end(t);
	return NULL;
}

static int init(struct fr_tracker *t, const struct fr_tracker_config *config)
{
	size_t bytes = (config->queue_bytes ? config->queue_bytes : QUEUE_BYTES_DEFAULT) / 2;

	t->config = *config;
	t->config.session = NULL;
	t->evicted_seq = config->evicted_seq;
	fr_lock_init(&t->lock);
	fr_cond_init(&t->progress);
	t->early_ids = fr_early_ids_new();
	t->zstd = ZSTD_createDCtx();
	t->section = malloc(FR_MAX(config->section_max, (size_t)1));
	if (!t->early_ids || !t->zstd || !t->section || fr_queue_new(bytes, &t->fresh) < 0 ||
		fr_queue_new(bytes, &t->evicted) < 0 || fr_session_copy(config->session, &t->session) < 0 ||
		fr_session_join_equal_events(&t->session) < 0 || fr_model_new(&t->pool, &t->tail.model) < 0 ||
		fr_model_new(&t->pool, &t->head.model) < 0 ||
		fr_buf_reserve(&t->batch, fr_queue_size(t->fresh)) < 0 ||
		fr_buf_reserve(&t->packed, fr_queue_size(t->evicted)) < 0)
		return -ENOMEM;
	return 0;
}

static int open_file(struct fr_tracker *t, struct fr_diag *d)
{
	_cleanup_buf_ struct fr_buf head = {0};
	int r = fr_pipe_append_head(&t->session, &head);

	if (r == 0 && t->config.adopt) {
		r = fr_auxfile_adopt(t->config.dirfd, &t->file, d);
		/* -EACCES: the previous instance gave the file to root, and this instance is not allowed to
		   write it. */
		if (r != -ENOENT && r != -EACCES)
			return r;
		t->config.adopt = false, r = 0;
		if (d)
			*d = (struct fr_diag){0};
	}
	return r < 0 ? r : fr_auxfile_open(t->config.dirfd, head.data, head.len, &t->file, d);
}

int fr_tracker_new(const struct fr_tracker_config *config, struct fr_tracker **ret, struct fr_diag *d)
{
	struct fr_tracker *t = calloc(1, sizeof(*t));
	int r = t ? init(t, config) : -ENOMEM;

	if (r == 0)
		r = open_file(t, d);
	if (r < 0) {
		fr_tracker_free(t);
		return fr_fail_errno(d, r, NULL, "cannot prepare the side-band file");
	}
	atomic_store(&t->adopting, t->config.adopt);
	t->remove_old_ns = fr_monotonic_ns();
	t->round_bytes = fr_auxfile_bytes(t->file);
	atomic_store(&t->file_bytes, t->round_bytes);
	*ret = t;
	return 0;
}

int fr_tracker_start(struct fr_tracker *t, struct fr_diag *d)
{
	const uint64_t until_ns = fr_monotonic_ns() + START_NS;
	int r = pthread_create(&t->thread, NULL, run, t);

	if (r != 0)
		return fr_fail_errno(d, -r, NULL, "cannot start the side-band thread");
	t->has_thread = true;
	fr_lock(&t->lock);
	while (!t->is_started && fr_cond_wait_until(&t->progress, &t->lock, until_ns))
		;
	t->is_unwatched = !t->is_started;
	r = t->is_started ? t->start_result : 1;
	if (r < 0 && d && !d->code)
		*d = t->start_diag;
	fr_unlock(&t->lock);
	if (r < 0)
		fr_tracker_stop(t);
	return r;
}

struct fr_early_ids *fr_tracker_early_ids(const struct fr_tracker *t)
{
	return t->early_ids;
}

pid_t fr_tracker_tid(const struct fr_tracker *t)
{
	return atomic_load(&t->tid);
}

void fr_tracker_stop(struct fr_tracker *t)
{
	if (t->has_thread) {
		atomic_store(&t->stop, true);
		wake(t);
		pthread_join(t->thread, NULL);
		t->has_thread = false;
	}
	t->file = fr_auxfile_close(t->file);
}

struct fr_tracker *fr_tracker_free(struct fr_tracker *t)
{
	if (!t)
		return NULL;
	fr_tracker_stop(t);
	fr_early_ids_free(t->early_ids);
	fr_queue_free(t->fresh);
	fr_queue_free(t->evicted);
	fr_model_free(t->tail.model);
	fr_model_free(t->head.model);
	fr_reorder_deinit(&t->tail.reorder);
	fr_reorder_deinit(&t->head.reorder);
	fr_buf_deinit(&t->compaction.slice);
	fr_buf_deinit(&t->batch);
	fr_buf_deinit(&t->packed);
	free(t->section);
	fr_session_deinit(&t->session);
	fr_session_deinit(&t->session_next);
	ZSTD_freeDCtx(t->zstd);
	fr_cond_deinit(&t->progress);
	fr_lock_deinit(&t->lock);
	free(t);
	return NULL;
}

static bool is_tail_ready(const struct fr_tracker *t, uint64_t target)
{
	return fr_queue_head(t->evicted) >= target && !atomic_load(&t->modules_wanted) &&
	       !atomic_load(&t->adopting);
}

/* Waits until the tail model has all evicted sections up to the position TARGET of the queue, and until the
   tracker has searched for new kernel modules. Returns 0 or -ETIMEDOUT. */
static int wait_for_tail(struct fr_tracker *t, uint64_t target, uint64_t timeout_ns) FR_REQUIRES(t->lock)
{
	const uint64_t until_ns = fr_monotonic_ns() + timeout_ns;

	while (!is_tail_ready(t, target))
		if (!fr_cond_wait_until(&t->progress, &t->lock, until_ns))
			return is_tail_ready(t, target) ? 0 : -ETIMEDOUT;
	return 0;
}

int fr_tracker_write_model(struct fr_tracker *t, uint64_t low_watermark_ns, uint64_t time_ns, uint64_t id,
	uint64_t timeout_ns, struct fr_buf *ret_state, struct fr_buf *ret_since)
{
	uint64_t target = fr_queue_tail(t->evicted);
	size_t before = ret_state->len, before_since = ret_since->len;
	int r;

	fr_thread_assert_not(FR_THREAD_RECORDER);
	fr_thread_assert_not(FR_THREAD_TRACKER);
	atomic_fetch_add(&t->waiters, 1);
	atomic_store(&t->modules_wanted, true);
	wake(t);
	fr_lock(&t->lock);
	r = wait_for_tail(t, target, timeout_ns);
	if (r == 0)
		r = tracker_advance(t, &t->tail, low_watermark_ns);
	if (r == 0)
		r = fr_model_write(t->tail.model, time_ns, id, ret_state);
	if (r == 0)
		r = fr_reorder_write(&t->tail.reorder, ret_since);
	fr_unlock(&t->lock);
	atomic_fetch_sub(&t->waiters, 1);
	if (r < 0) {
		ret_state->len = before;
		ret_since->len = before_since;
	}
	return r;
}

void fr_tracker_stats(struct fr_tracker *t, struct fr_tracker_stats *ret)
{
	struct fr_model_stats m;
	uint64_t low_watermark_ns;
	bool is_unwatched;

	fr_lock(&t->lock);
	fr_model_stats(t->tail.model, &m);
	low_watermark_ns = t->head.low_watermark_ns;
	is_unwatched = t->is_unwatched;
	fr_unlock(&t->lock);
#define LOAD(counter) .counter = atomic_load(&t->counter)
	*ret = (struct fr_tracker_stats){LOAD(records), LOAD(bytes), LOAD(file_bytes), LOAD(scans),
		LOAD(queue_drops), LOAD(write_errors), LOAD(last_errno), LOAD(damaged), LOAD(compactions),
		LOAD(compaction_errno), LOAD(compactions_failed), LOAD(checkpoint_bytes), LOAD(scan_ns),
		LOAD(kernel_is_hidden), LOAD(processes_are_hidden), LOAD(maps_hidden)};
#undef LOAD
	ret->low_watermark_ns = low_watermark_ns;
	ret->processes = m.processes;
	ret->threads = m.threads;
	ret->maps = m.maps;
	ret->model_bytes = m.bytes;
	ret->is_late = is_unwatched && ret->scans == 0;
}
