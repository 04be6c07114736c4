// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * After a crash, the model that is made from the crash memory is the model that the tracker had.
 *
 * A real tracker gets the side-band of frames, as if the ring evicted them. The records of neighbouring
 * frames overlap in time. At any frame, the test compares fr_rescue_model() with fr_tracker_write_model().
 */
#include "../unit.h"
#include "../crashmem/memory.h"
#include "../sideband/tracker_fixture.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "crashmem/tail.h"
#include "rescue/model.h"
#include "sideband/emit.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#define FIRST_PID 5000000 /* higher than all pids that the scan of /proc finds (PID_MAX_LIMIT) */
#define PIDS 60
#define STEP_NS 1000 /* between the low watermarks of two frames */
#define OVERLAP                                                                                              \
	4 /* the records of a frame are in this many steps from its low watermark on, and one more           \
	   */

static struct fr_crashmem *m;
static struct fr_tail *tail;
static uint64_t seq, newest_ns;
static pid_t self;
static bool alive[PIDS], has_thread[PIDS];
static struct fr_buf frames[OVERLAP + 1]; /* records of frames that are not evicted yet */

static int set_up(void **state)
{
	struct fixture *f;
	int r = fixture_setup(state);

	f = *state;
	self = getpid();
	m = memory_new(FR_CRASHMEM_BYTES_MIN);
	if (r < 0 || fr_tail_new(m, &tail) < 0)
		return -1;
	f->config.tail = tail;
	f->config.pids = &self;
	f->config.n_pids = 1;
	seq = newest_ns = 0;
	memset(alive, 0, sizeof(alive));
	memset(has_thread, 0, sizeof(has_thread));
	srand(1);
	return 0;
}

static int tear_down(void **state)
{
	int r = fixture_teardown(state);

	for (size_t i = 0; i < FR_ARRAY_SIZE(frames); i++)
		fr_buf_deinit(&frames[i]);
	tail = fr_tail_free(tail);
	m = fr_crashmem_free(m);
	return r;
}

FIXTURE(set_up, tear_down)

static uint64_t low_watermark_of(uint64_t frame)
{
	return 1000000 + frame * STEP_NS;
}

static void start_process(struct fr_buf *b, uint64_t time, int i, int parent)
{
	const pid_t pid = FIRST_PID + i, ppid = alive[parent] ? FIRST_PID + parent : self;

	ev_fork(b, time, pid, pid, ppid, ppid);
	alive[i] = true;
}

/* What the kernel sends for one process: threads exit before their leader. */
static void change_process(struct fr_buf *b, uint64_t time, int i)
{
	const pid_t pid = FIRST_PID + i, tid = FIRST_PID + PIDS + i;
	char name[32];

	snprintf(name, sizeof(name), "/n%d", rand());
	switch (rand() % 8) {
	case 0:
		ev_exit(b, time, pid, has_thread[i] ? tid : pid);
		alive[i] = has_thread[i];
		has_thread[i] = false;
		break;
	case 1:
		has_thread[i] = true;
		ev_fork(b, time, pid, tid, pid, pid);
		break;
	case 2:
		ev_comm(b, time, pid, has_thread[i] ? tid : pid, name, false);
		break;
	case 3:
		has_thread[i] = false;
		ev_comm(b, time, pid, pid, name, true);
		break;
	default:
		ev_mmap(b, time, pid, 0x1000 * (uint64_t)(rand() % 50), 0x1000 * (uint64_t)(1 + rand() % 5),
			0, name);
	}
}

/* Makes the records from the low watermark of FRAME to that of the next frame. CPUs are drained one after the
   other, so a record can get into FRAME, or into one of the OVERLAP frames before it. */
static void make_records(uint64_t frame)
{
	const uint64_t from = low_watermark_of(frame);

	for (uint64_t time = from; frame % 20 > 4 && time < from + STEP_NS; time += STEP_NS / 40) {
		struct fr_buf *b = &frames[(frame - (uint64_t)rand() % (OVERLAP + 1)) % (OVERLAP + 1)];
		const int i = rand() % PIDS;

		if (alive[i])
			change_process(b, time, i);
		else
			start_process(b, time, i, rand() % PIDS);
	}
}

/* Evicts the next frame. Some frames have no side-band. */
static void evict(struct fixture *f)
{
	struct fr_buf *b = &frames[++seq % (OVERLAP + 1)];
	uint8_t zstd[64 << 10];
	size_t n;

	make_records(seq + OVERLAP);
	n = ZSTD_compress(zstd, sizeof(zstd), b->data, b->len, 1);
	assert_false(ZSTD_isError(n));
	assert_int_equal(fr_tracker_push_fresh(f->tracker, b->data, b->len), 0);
	assert_int_equal(
		fr_tracker_push_evicted(f->tracker, seq, low_watermark_of(seq), zstd, b->len ? n : 0), 0);
	b->len = 0;
}

struct records {
	const struct perf_event_header *v[4096];
	size_t n;
};

static int by_content(const void *a, const void *b)
{
	const struct perf_event_header *x = *(void *const *)a, *y = *(void *const *)b;
	const int r = memcmp(x, y, FR_MIN(x->size, y->size));

	return r ? r : x->size - y->size;
}

static void sort_records(const struct fr_buf *b, struct records *ret)
{
	const struct perf_event_header *h;

	ret->n = 0;
	for (size_t at = 0; (h = ev_next(b, &at));) {
		assert_true(ret->n < FR_ARRAY_SIZE(ret->v));
		ret->v[ret->n++] = h;
	}
	qsort(ret->v, ret->n, sizeof(ret->v[0]), by_content);
}

/* The order of processes in a model has no meaning. */
static void assert_same_state(const struct fr_buf *a, const struct fr_buf *b)
{
	static struct records x, y;

	sort_records(a, &x);
	sort_records(b, &y);
	assert_int_equal(x.n, y.n);
	for (size_t i = 0; i < x.n; i++)
		assert_int_equal(by_content(&x.v[i], &y.v[i]), 0);
}

/* Compares the models for a ring whose oldest frame is the next one. */
static void compare(struct fixture *f)
{
	const uint64_t any = low_watermark_of(seq + 1) - (uint64_t)rand() % (STEP_NS / 2);
	const uint64_t low_watermark = FR_MAX(newest_ns, any);
	_cleanup_buf_ struct fr_buf state = {0}, since = {0}, rescued = {0}, rescued_since = {0};
	bool whole = false;

	newest_ns = low_watermark; /* the tracker's model does not go back */
	assert_int_equal(fr_tracker_write_model(f->tracker, low_watermark, low_watermark - 1, EVENT_ID,
				 fixture_limit_ns(f), &state, &since),
		0);
	assert_int_equal(fr_rescue_model(m, seq + 1, low_watermark, low_watermark - 1, EVENT_ID, &rescued,
				 &rescued_since, &whole),
		0);
	assert_true(whole);
	assert_same_state(&state, &rescued);
	assert_int_equal(since.len, rescued_since.len);
	assert_memory_equal(since.data, rescued_since.data, since.len);
}

static uint64_t checkpoints(void)
{
	struct fr_tail_stats stats;

	fr_tail_stats(tail, &stats);
	assert_int_equal(stats.sections_lost + stats.checkpoints_failed, 0);
	return stats.checkpoints;
}

static bool is_half_full(void)
{
	struct fr_tail_stats stats;

	fr_tail_stats(tail, &stats);
	return stats.log_used_bytes >= stats.log_bytes / 2;
}

/* Evicts frames and compares, until the tracker has written N checkpoints. The test does not read the memory
   while a checkpoint is written: in real life, a crash ends both. */
static void run_until(struct fixture *f, uint64_t n)
{
	for (uint64_t before; (before = checkpoints()) < n;) {
		evict(f);
		if (is_half_full())
			fixture_wait_until(f, checkpoints() > before);
		if (rand() % 10 == 0 || checkpoints() > before)
			compare(f);
	}
}

TEST(the_rescued_model_is_that_of_the_tracker)
{
	struct fixture *f = *state;

	fixture_start(f);
	assert_int_equal(checkpoints(), 1); /* at the start */
	compare(f);
	run_until(f, 5);
	assert_true(seq > 100);
}

TEST(an_adopted_tail_continues)
{
	struct fixture *f = *state;

	fixture_start(f);
	assert_int_equal(checkpoints(), 1); /* at the start */
	run_until(f, 2);
	for (int i = 0; i < 20; i++)
		evict(f);
	compare(f);
	f->tracker = fr_tracker_free(f->tracker);
	fr_tail_free(tail);
	assert_int_equal(fr_tail_adopt(m, seq, &tail), 0);
	f->config.tail = tail;
	f->config.evicted_seq = seq;
	f->config.adopt = true;
	f->config.adopt_low_watermark_ns = low_watermark_of(seq + 1) - STEP_NS / 2;
	fixture_start(f);
	compare(f);
	run_until(f, 2);
}

/* A tracker that continues without its tail writes a checkpoint at once, for the frames that were evicted
 * before. */
TEST(a_new_tail_in_an_old_ring_gets_a_checkpoint_at_once)
{
	struct fixture *f = *state;

	seq = f->config.evicted_seq = 1000;
	fixture_start(f);
	assert_int_equal(checkpoints(), 1); /* at the start */
	compare(f);
	evict(f);
	compare(f);
}

static void set_modules(struct fixture *f, const char *text)
{
	assert_int_equal(fr_file_replace(f->dirfd, "modules", 0600, (gid_t)-1, text, strlen(text)), 0);
}

static atomic_int changes;

static void count_change(void *ctx)
{
	changes++;
}

/* The tracker puts the map of a new module directly into its tail model, so no section has it. */
TEST(a_new_module_gets_into_a_checkpoint)
{
	struct fixture *f = *state;
	char path[128];

	snprintf(path, sizeof(path), "%s/modules", f->path);
	f->config.modules_path = path;
	f->config.modules_changed = count_change;
	set_modules(f, "");
	fixture_start(f);
	assert_int_equal(checkpoints(), 1); /* at the start */
	assert_int_equal(changes, 0);
	set_modules(f, "snd_pcm 16384 0 - Live 0xffffffffc0100000\n");
	assert_int_equal(fixture_count_in_model(f, 1, "[snd_pcm]"), 1);
	fixture_wait_until(f, checkpoints() == 2);
	assert_int_equal(changes, 1);
	compare(f);
}

TEST(a_lost_checkpoint_leaves_the_sections)
{
	struct fixture *f = *state;
	_cleanup_buf_ struct fr_buf b = {0}, rescued = {0}, since = {0};
	uint8_t zstd[1024];
	bool whole = true;
	size_t n;

	ev_comm(&b, 1000, FIRST_PID, FIRST_PID, "named", 0);
	ev_comm(&b, 3000, FIRST_PID, FIRST_PID, "later", 0);
	n = ZSTD_compress(zstd, sizeof(zstd), b.data, b.len, 1);
	fr_tail_append(tail, 1, 900, zstd, n);
	assert_int_equal(fr_rescue_model(m, 2, 2000, 1999, EVENT_ID, &rescued, &since, &whole), 0);
	assert_false(whole);
	assert_non_null(memmem(rescued.data, rescued.len, "named", 5));
	assert_null(memmem(rescued.data, rescued.len, "later", 5));
	assert_non_null(memmem(since.data, since.len, "later", 5));
	(void)f;
}

TEST(nothing_comes_from_an_empty_memory)
{
	_cleanup_buf_ struct fr_buf rescued = {0}, since = {0};
	bool whole;

	assert_int_equal(fr_rescue_model(m, 2, 2000, 1999, EVENT_ID, &rescued, &since, &whole), -ENOENT);
	assert_int_equal(rescued.len + since.len, 0);
}

/* Records that no tracker writes into a tail. */
TEST(samples_and_torn_records_are_left_out)
{
	_cleanup_buf_ struct fr_buf b = {0}, rescued = {0}, since = {0};
	struct fr_sample sample = {
		.header = {.type = PERF_RECORD_SAMPLE, .size = sizeof(sample)}, .time = 3000};
	struct perf_event_header round = {.type = FR_RECORD_FINISHED_ROUND, .size = sizeof(round)};
	bool whole = false;

	assert_int_equal(fr_buf_append(&b, &sample, sizeof(sample)), 0);
	assert_int_equal(fr_buf_append(&b, &round, sizeof(round)), 0);
	ev_comm(&b, 1000, FIRST_PID, FIRST_PID, "named", 0);
	round.size = 9;
	assert_int_equal(fr_buf_append(&b, &round, sizeof(round)), 0);
	assert_int_equal(fr_tail_checkpoint(tail, 0, 2000, b.data, b.len), 0);
	assert_int_equal(fr_rescue_model(m, 1, 2000, 1999, EVENT_ID, &rescued, &since, &whole), 0);
	assert_true(whole);
	assert_non_null(memmem(rescued.data, rescued.len, "named", 5));
	assert_int_equal(since.len, 0);
}
