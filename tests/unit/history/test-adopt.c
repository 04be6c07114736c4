/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * A ring goes on after the process that wrote it was killed: what is read back is exactly the newest of all
 * that was appended, in order, whole records only; and so after the next kill. Numbers of records follow one
 * another, and a record's size follows from its number: that is the model.
 */

#include "records.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "history/crc32c.h"
#include "history/internal.h"
#include "history/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#define SIDEBAND 0
#define SAMPLES 1

/* What the process that is killed tells of itself; of side-band and of samples. */
struct told {
	_Atomic uint64_t done[2];    /* numbers below were appended */
	_Atomic uint64_t started[2]; /* numbers below may have been */
	_Atomic uint64_t evicted[2]; /* numbers below were evicted, or are just being */
	_Atomic uint64_t wrong;
};

static struct told *told_new(void)
{
	void *p = mmap(NULL, sizeof(struct told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

static void on_evicted(void *ctx, const struct fr_frame *frame)
{
	struct told *t = ctx;

	t->evicted[SIDEBAND] += frame->n_sideband;
	t->evicted[SAMPLES] += frame->n_samples;
}

static struct fr_history_config config_of(uint64_t size, struct told *t)
{
	return (struct fr_history_config){.size_bytes = size,
		.level = 1,
		.evicted = t ? on_evicted : NULL,
		.ctx = t,
		.populate = size % 3 == 0};
}

static struct fr_history *ring_new(uint64_t size, struct told *t)
{
	struct fr_history_config config = config_of(size, t);
	struct fr_history *h;

	assert_int_equal(fr_history_new(&config, &h, NULL), 0);
	return h;
}

static uint32_t size_of(uint64_t n)
{
	uint64_t state = n * 4 + 3;

	for (unsigned i = 0; i < 4; i++)
		test_random(&state);
	return (uint32_t)test_between(&state, TEST_RECORD_MIN, state % 32 ? 512 : 16384) / 8 * 8;
}

/* A run of whole records, numbered from where the last one of its kind ended. */
static int append_run(struct fr_history *h, struct told *t, int kind, uint64_t *random)
{
	_cleanup_buf_ struct fr_buf b = {0};
	uint64_t first = t->done[kind], n = first;
	uint64_t want = test_between(random, 1, kind == SAMPLES ? 300 : 20);
	bool noise = test_random(random) % 4 == 0;
	int r;

	for (; n < first + want && b.len + size_of(n) <= FR_HISTORY_RUN_MAX; n++)
		(kind == SAMPLES ? test_put_sample : test_put_sideband)(&b, n, size_of(n), noise);
	t->started[kind] = n;
	r = (kind == SAMPLES ? fr_history_append : fr_history_append_sideband)(
		h, b.data, b.len, (uint32_t)(n - first), first + 1, n);
	t->done[kind] = n;
	return r;
}

static void one_round(struct fr_history *h)
{
	fr_history_end_round(h);
	fr_history_begin_round(h, fr_monotonic_ns());
}

/* All that may happen in a ring but pins, which may drop what is new. */
static int random_step(struct fr_history *h, struct told *t, struct fr_snapshot **retained, uint64_t *random)
{
	uint64_t lost;

	switch (test_random(random) % 64) {
	case 0:
		return fr_history_seal(h);
	case 1 ... 8:
		return append_run(h, t, SIDEBAND, random);
	case 9 ... 12:
		one_round(h);
		return 0;
	case 13:
		if (*retained) {
			*retained = fr_snapshot_free(*retained);
			return 0;
		}
		if (fr_history_snapshot(h, retained) < 0)
			return -ENOMEM;
		if (fr_snapshot_retain(*retained, &lost) != 0)
			*retained = fr_snapshot_free(*retained);
		else
			fr_snapshot_unpin(*retained);
		return 0;
	default:
		return append_run(h, t, SAMPLES, random);
	}
}

static _Noreturn void append_until_killed(struct fr_history *h, struct told *t, uint64_t random)
{
	struct fr_snapshot *retained = NULL;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		if (random_step(h, t, &retained, &random) != 0)
			t->wrong++;
}

/* What a ring holds now, checked to be without a gap: numbers FIRST … NEXT - 1 of each kind. */
struct held {
	uint64_t first[2], next[2], n[2];
	uint64_t frames;
};

static void hold_records(struct held *held, int kind, const void *records, size_t len)
{
	struct fr_section_iter it = fr_section_iter(records, len);
	const struct perf_event_header *record;

	while ((record = fr_section_next(&it))) {
		uint64_t n;

		if (record->type == FR_RECORD_FINISHED_ROUND)
			continue;
		assert_int_equal(record->type == PERF_RECORD_SAMPLE, kind == SAMPLES);
		n = test_check_record(record);
		assert_int_equal(record->size, size_of(n));
		if (held->n[kind])
			assert_int_equal(n, held->next[kind]);
		else
			held->first[kind] = n;
		held->next[kind] = n + 1;
		held->n[kind]++;
	}
	assert_ptr_equal(it.at, it.end);
}

static void hold_section(struct held *held, int kind, struct fr_unpack *u, const void *zstd, size_t zstd_len,
	uint32_t n_records, const struct fr_history *h)
{
	size_t cap = fr_history_section_max(h);
	_cleanup_free_ uint8_t *buffer = malloc(cap);
	uint64_t before = held->n[kind];
	ssize_t len = fr_section_decompress(u, zstd, zstd_len, buffer, cap);

	assert_true(len >= 0);
	hold_records(held, kind, buffer, (size_t)len);
	assert_int_equal(held->n[kind] - before, n_records);
}

/* Frames by a snapshot, and the open chunk as it is: so that it stays open. */
static struct held read_all(struct fr_history *h)
{
	_cleanup_unpack_ struct fr_unpack *u = NULL;
	struct held held = {0};
	struct fr_snapshot *s;
	struct fr_frame f;
	uint64_t seq = 0;

	assert_int_equal(fr_unpack_new(&u), 0);
	assert_int_equal(fr_history_snapshot(h, &s), 0);
	for (; fr_snapshot_next(s, &f); held.frames++) {
		if (seq)
			assert_int_equal(f.seq, seq + 1);
		seq = f.seq;
		hold_section(&held, SIDEBAND, u, f.sideband, f.sideband_len, f.n_sideband, h);
		hold_section(&held, SAMPLES, u, f.samples, f.samples_len, f.n_samples, h);
	}
	fr_snapshot_free(s);
	if (seq)
		assert_int_equal(h->seq, seq + 1);
	hold_records(&held, SIDEBAND, h->sideband.data, h->sideband.fill);
	hold_records(&held, SAMPLES, h->samples.data, h->samples.fill);
	return held;
}

static void expect_told(
	const struct held *held, const struct fr_history_adopted *what, const struct fr_history *h)
{
	assert_int_equal(what->frames, held->frames);
	assert_int_equal(what->samples, held->n[SAMPLES]);
	assert_int_equal(what->sideband, held->n[SIDEBAND]);
	assert_int_equal(what->last_ns, held->n[SAMPLES] ? held->next[SAMPLES] : 0);
	assert_int_equal(what->first_ns, held->n[SAMPLES] ? held->first[SAMPLES] + 1 : 0);
	assert_int_equal(what->drained_ns, h->image->drained_ns);
}

/* The newest of all, up to what was being appended; WHOLE: and nothing is missing of what the ring had. */
static void expect_newest(struct told *t, const struct held *held, bool whole)
{
	for (int k = 0; k < 2; k++) {
		if (held->n[k] == 0) {
			assert_true(!whole || t->evicted[k] == t->done[k]);
			continue;
		}
		assert_true(held->next[k] == t->done[k] || held->next[k] == t->started[k]);
		assert_true(!whole || held->first[k] <= t->evicted[k]);
	}
}

/* Numbers go on where the ring ends. */
static void go_on_from(struct told *t, const struct held *held)
{
	for (int k = 0; k < 2; k++) {
		if (held->n[k])
			t->done[k] = t->started[k] = held->next[k];
		else
			t->started[k] = t->done[k];
		t->evicted[k] = held->n[k] ? held->first[k] : t->done[k];
	}
}

/*
 * Another process goes on with H, and is killed, if WRAPPED not before the ring was full once: however slow
 * the machine is. Returns its memory's descriptor; H is gone.
 */
static int run_and_kill(struct fr_history *h, struct told *t, bool wrapped, uint64_t *random)
{
	uint64_t before = t->done[SAMPLES], seed = test_random(random);
	useconds_t us = (useconds_t)test_between(random, 0, 20000);
	pid_t pid = fork();
	int fd;

	assert_true(pid >= 0);
	if (pid == 0)
		append_until_killed(h, t, seed);
	while (t->done[SAMPLES] == before || (wrapped && t->evicted[SAMPLES] == 0))
		usleep(50);
	usleep(us);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(t->wrong, 0);
	fd = fcntl(fr_history_fd(h), F_DUPFD_CLOEXEC, 0);
	assert_true(fd >= 0);
	fr_history_free(h);
	return fd;
}

static struct fr_history *adopt(int fd, uint64_t size, struct told *t, struct fr_history_adopted *what)
{
	struct fr_history_config config = config_of(size, t);
	struct fr_history *h = NULL;
	struct fr_diag d = {0};

	assert_int_equal(fr_history_adopt(&config, fd, &h, what, &d), 0);
	assert_string_equal(d.what, "");
	return h;
}

static void kill_again_and_again(uint64_t size, unsigned kills, uint64_t *random)
{
	struct told *t = told_new();
	struct fr_history *h = ring_new(size, t);

	for (unsigned i = 0; i < kills; i++) {
		struct fr_history_adopted what;
		struct held held;
		int fd = run_and_kill(h, t, i > 0, random);

		h = adopt(fd, size, t, &what);
		assert_true(what.in_place);
		assert_int_equal(fr_history_fd(h), fd);
		held = read_all(h);
		expect_told(&held, &what, h);
		expect_newest(t, &held, true);
		go_on_from(t, &held);
	}
	fr_history_free(h);
	munmap(t, sizeof(*t));
}

static void a_kill_at_any_moment_loses_nothing_that_was_appended(void **state)
{
	uint64_t random = 20261121;

	for (unsigned i = 0; i < 14; i++) {
		uint64_t most = i % 10 == 9 ? 16 << 20 : 3 << 20;
		uint64_t size = i % 4 == 0 ? FR_HISTORY_SIZE_MIN : test_between(&random, 1 << 20, most);

		kill_again_and_again(size, 10, &random);
	}
}

/* What a test keeps of a ring that is still there: as a kill at this moment would leave it. */
static int copy_image(const struct fr_history *h)
{
	int fd = memfd_create("image", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, h->map, h->size, 0), h->size);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL), 0);
	return fd;
}

/* Several laps, unless STEPS are few. */
static struct fr_history *ring_with_records(uint64_t size, unsigned steps, struct told *t, uint64_t *random)
{
	struct fr_history *h = ring_new(size, t);
	struct fr_snapshot *retained = NULL;

	for (unsigned i = 0; i < steps; i++)
		assert_int_equal(random_step(h, t, &retained, random), 0);
	fr_snapshot_free(retained);
	return h;
}

/* Of the frames that are left out the newest would not have fitted. */
static void expect_full(const struct fr_history *h, uint32_t next_need)
{
	uint64_t used = fr_arena_used(&h->arena);

	assert_true(used + h->arena.reserve <= h->arena.bytes);
	assert_true(used + next_need + h->arena.reserve > h->arena.bytes);
}

static uint32_t need_of_seq(struct fr_history *h, uint64_t seq)
{
	uint64_t position = h->arena.tail;
	struct fr_frame f;

	while (fr_arena_next(&h->arena, &position, h->arena.head, &f))
		if (f.seq == seq)
			return fr_arena_need((uint64_t)f.samples_len + f.sideband_len);
	return 0;
}

static uint64_t oldest_seq(const struct fr_history *h)
{
	uint64_t position = h->arena.tail;
	struct fr_frame f;

	return fr_arena_next(&h->arena, &position, h->arena.head, &f) ? f.seq : h->seq;
}

/* FROM is whole, TO has been made of its image: with all, or else with the newest that fit. */
static void expect_newest_that_fit(struct fr_history *from, struct fr_history *to, struct told *t)
{
	struct held held = read_all(to);
	uint64_t oldest = oldest_seq(to), open = from->samples.fill + from->sideband.fill;

	assert_int_equal(held.next[SAMPLES], t->done[SAMPLES]);
	assert_int_equal(held.next[SIDEBAND], t->done[SIDEBAND]);
	assert_true(to->low_watermark_ns == from->low_watermark_ns);
	/* It may begin with what FROM had evicted, where that had not been overwritten yet. */
	if (oldest > oldest_seq(from) && !open)
		expect_full(to, need_of_seq(from, oldest - 1));
}

static void into_another_size_go_the_newest_frames_that_fit(void **state)
{
	uint64_t random = 4711;

	for (unsigned i = 0; i < 12; i++) {
		uint64_t most = i % 6 == 5 ? 16 << 20 : 4 << 20;
		uint64_t old_size = test_between(&random, 1 << 20, most);
		uint64_t new_size = test_between(&random, 1 << 20, most);
		struct told *t = told_new(), *t2 = told_new();
		struct fr_history *old = ring_with_records(old_size, 800, t, &random), *h;
		struct fr_history_adopted what;
		struct held held;

		if (i % 2)
			fr_history_seal(old);
		h = adopt(copy_image(old), new_size, t2, &what);
		assert_false(what.in_place);
		assert_int_equal(h->size, new_size / 4096 * 4096);
		assert_int_equal(t2->evicted[SAMPLES], 0);
		expect_newest_that_fit(old, h, t);
		held = read_all(h);
		expect_told(&held, &what, h);
		assert_true(new_size >= old_size || what.frames_left_out > 0);
		fr_history_free(old);

		/* It goes on, and is killed. */
		go_on_from(t2, &held);
		h = adopt(run_and_kill(h, t2, false, &random), new_size, t2, &what);
		assert_true(what.in_place);
		held = read_all(h);
		expect_newest(t2, &held, true);
		fr_history_free(h);
		munmap(t, sizeof(*t));
		munmap(t2, sizeof(*t2));
	}
}

static void a_living_ring_changes_its_size(void **state)
{
	uint64_t random = 99, left_out = 0;
	struct told *t = told_new();
	struct fr_history *h = ring_with_records(4 << 20, 600, t, &random);
	struct fr_snapshot *s;
	struct fr_diag d = {0};
	struct fr_history_adopted what;
	struct fr_history_stats before, after;

	assert_int_equal(fr_history_snapshot(h, &s), 0);
	assert_int_equal(test_resize(&h, 8 << 20, &what, &d), -EBUSY);
	assert_non_null(strstr(d.what, "dump"));
	fr_snapshot_free(s);
	assert_int_equal(test_resize(&h, 1, &what, NULL), -EINVAL);

	for (unsigned i = 0; i < 14; i++) {
		uint64_t size = test_between(&random, 1 << 20, i % 5 ? 3 << 20 : 16 << 20);
		struct fr_snapshot *retained = NULL;
		struct held held;

		for (unsigned k = 0; k < 150; k++)
			assert_int_equal(random_step(h, t, &retained, &random), 0);
		fr_snapshot_free(retained);
		fr_history_stats(h, &before);
		assert_int_equal(test_resize(&h, size, &what, &d), 0);
		fr_history_stats(h, &after);
		held = read_all(h);
		expect_told(&held, &what, h);
		/* What is not there any more went to the evicted() of it, and nothing else did. */
		for (int k = 0; k < 2; k++)
			assert_true(held.n[k] == 0 ||
				    (held.first[k] == t->evicted[k] && held.next[k] == t->done[k]));
		assert_int_equal(after.samples_evicted, t->evicted[SAMPLES]);
		assert_int_equal(after.samples + after.samples_evicted, t->done[SAMPLES]);
		assert_int_equal(what.frames_left_out, after.frames_evicted - before.frames_evicted);
		left_out += what.frames_left_out;
	}
	assert_true(left_out > 0);
	fr_history_free(h);
	munmap(t, sizeof(*t));
}

/* Appends between the steps, as another thread would. */
static _Noreturn void resize_until_killed(
	struct fr_resize *z, struct fr_history *h, struct told *t, uint64_t random)
{
	struct fr_history_adopted what;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	do
		for (unsigned i = 0; i < 3; i++)
			if (append_run(h, t, (int)(test_random(&random) % 2), &random) != 0)
				t->wrong++;
	while (fr_resize_step(z) > 0);
	h = fr_resize_finish(z, &what);
	append_until_killed(h, t, random);
}

static struct fr_history *adopt_both(int from_fd, int to_fd, uint64_t sizes[2], struct told *t)
{
	struct fr_history_adopted what;
	struct fr_history *from = adopt(from_fd, sizes[0], NULL, &what),
			  *to = adopt(to_fd, sizes[1], NULL, &what);
	struct fr_resize *z;
	int r = fr_resize_resume(from, to, &z);

	assert_int_equal(r, 0);
	while (fr_resize_step(z) > 0)
		;
	assert_ptr_equal(fr_resize_finish(z, &what), to);
	while ((r = fr_resize_populate(z)) > 0)
		;
	assert_int_equal(r, 0);
	fr_resize_free(z);
	return to;
}

/* Wherever the kill comes, both rings together have all that one would. */
static void a_kill_while_the_size_changes_loses_nothing(void **state)
{
	uint64_t random = 1410, moved = 0;

	for (unsigned i = 0; i < 20; i++) {
		struct told *t = told_new();
		uint64_t sizes[2] = {test_between(&random, 6, 10) << 20, test_between(&random, 4, 16) << 20};
		struct fr_history *h = ring_with_records(sizes[0], 500, t, &random);
		struct fr_resize *z;
		struct held held;
		int fds[2];
		pid_t pid;

		assert_int_equal(fr_resize_begin(h, sizes[1], &z, NULL), 0);
		fds[0] = fcntl(fr_history_fd(h), F_DUPFD_CLOEXEC, 0);
		fds[1] = fcntl(fr_resize_fd(z), F_DUPFD_CLOEXEC, 0);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			resize_until_killed(z, h, t, test_random(&random));
		usleep((useconds_t)test_between(&random, 0, 20000));
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		assert_int_equal(t->wrong, 0);
		fr_resize_free(z);
		h = adopt_both(fds[0], fds[1], sizes, t);
		held = read_all(h);
		/* A smaller one may have evicted more since. */
		expect_newest(t, &held, sizes[1] >= sizes[0]);
		moved += held.frames;
		go_on_from(t, &held);
		for (unsigned k = 0; k < 50; k++)
			assert_int_equal(append_run(h, t, SAMPLES, &random), 0);
		(void)read_all(h);
		fr_history_free(h);
		munmap(t, sizeof(*t));
	}
	assert_true(moved > 0);
}

static uint64_t held_bytes(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

static void expect_bounded(const int fds[2], uint64_t most)
{
	assert_in_range(held_bytes(fds[0]) + held_bytes(fds[1]), 1, most + (20 << 20));
}

/* Larger or smaller, of a ring that is there as a whole: never both as a whole. */
static void memory_never_holds_both_sizes(void **state)
{
	static const uint64_t sizes[][2] = {{48 << 20, 51 << 20}, {48 << 20, 45 << 20}};
	uint64_t random = 5;

	for (size_t i = 0; i < FR_ARRAY_SIZE(sizes); i++) {
		struct told *t = told_new();
		struct fr_history *h = ring_with_records(sizes[i][0], 600, t, &random);
		const uint64_t most = FR_MAX(sizes[i][0], sizes[i][1]);
		struct fr_history_adopted what;
		struct fr_resize *z;
		int fds[2], r;

		assert_in_range(held_bytes(fr_history_fd(h)), sizes[i][0], UINT64_MAX);
		assert_int_equal(fr_resize_begin(h, sizes[i][1], &z, NULL), 0);
		fds[0] = fcntl(fr_history_fd(h), F_DUPFD_CLOEXEC, 0);
		fds[1] = fcntl(fr_resize_fd(z), F_DUPFD_CLOEXEC, 0);
		do {
			expect_bounded(fds, most);
			assert_int_equal(append_run(h, t, SAMPLES, &random), 0);
		} while (fr_resize_step(z) > 0);
		h = fr_resize_finish(z, &what);
		expect_bounded(fds, most);
		close(fds[0]);
		while ((r = fr_resize_populate(z)) > 0)
			assert_in_range(held_bytes(fds[1]), 1, sizes[i][1]);
		assert_int_equal(r, 0);
		assert_int_equal(held_bytes(fds[1]), sizes[i][1]);
		close(fds[1]);
		fr_resize_free(z);
		fr_history_free(h);
		munmap(t, sizeof(*t));
	}
}

/* a retained snapshot's frames, behind which the ring has gone on, are no part of what is taken, nor found
 * later. */
static void what_a_retained_snapshot_left_behind_is_forgotten(void **state)
{
	struct told *t = told_new();
	uint64_t random = 8, lost;
	struct fr_history *h = ring_with_records(2 << 20, 600, t, &random), *next;
	struct fr_history_adopted what, again;
	struct fr_snapshot *s;
	struct held held, later;

	fr_history_seal(h);
	assert_int_equal(fr_history_snapshot(h, &s), 0);
	assert_int_equal(fr_snapshot_retain(s, &lost), 0);
	fr_snapshot_unpin(s);
	for (unsigned i = 0; i < 600; i++)
		assert_int_equal(append_run(h, t, SAMPLES, &random), 0);
	next = adopt(copy_image(h), 2 << 20, t, &what);
	assert_true(what.frames_left_out > 0);
	held = read_all(next);
	expect_newest(t, &held, true);
	fr_snapshot_free(s);
	fr_history_free(h);

	h = adopt(copy_image(next), 2 << 20, t, &again);
	assert_int_equal(again.frames_left_out, 0);
	later = read_all(h);
	assert_memory_equal(&held, &later, sizeof(held));
	fr_history_free(h);
	fr_history_free(next);
	munmap(t, sizeof(*t));
}

/* A kill while an image is being taken: the next one takes the same. */
static void a_kill_in_the_midst_of_it_does_no_harm(void **state)
{
	struct told *t = told_new();
	uint64_t random = 21, lost, took_ns;
	struct fr_history *h = ring_with_records(2 << 20, 600, t, &random), *next;
	struct fr_history_adopted what;
	struct fr_snapshot *s;
	struct held held, after;

	assert_int_equal(fr_history_snapshot(h, &s), 0);
	assert_int_equal(fr_snapshot_retain(s, &lost), 0);
	fr_snapshot_unpin(s);
	for (unsigned i = 0; i < 600; i++)
		assert_int_equal(append_run(h, t, SAMPLES, &random), 0);
	took_ns = fr_monotonic_ns();
	next = adopt(copy_image(h), 2 << 20, t, &what);
	took_ns = fr_monotonic_ns() - took_ns;
	assert_true(what.frames_left_out > 0); /* there was something to do */
	held = read_all(next);
	fr_history_free(next);
	for (unsigned i = 0; i < 30; i++) {
		int fd = copy_image(h);
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0) {
			(void)adopt(fd, 2 << 20, NULL, &what);
			pause();
		}
		usleep((useconds_t)test_between(&random, 0, took_ns / 500));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		next = adopt(fd, 2 << 20, t, &what);
		after = read_all(next);
		assert_memory_equal(&held, &after, sizeof(held));
		fr_history_free(next);
	}
	fr_snapshot_free(s);
	fr_history_free(h);
	munmap(t, sizeof(*t));
}

/* What is left of a damaged ring: numbers grow, records are whole where a crc says so. The open chunk has
 * none. */
static void expect_order(struct fr_history *h, struct fr_unpack *u, uint64_t frames_before)
{
	_cleanup_free_ uint8_t *buffer = malloc(fr_history_section_max(h));
	uint64_t next[2] = {0}, n, frames = 0;
	struct fr_snapshot *s;
	struct fr_frame f;

	assert_int_equal(fr_history_snapshot(h, &s), 0);
	for (; fr_snapshot_next(s, &f); frames++)
		for (int k = 0; k < 2; k++) {
			ssize_t len = fr_section_decompress(u, k ? f.samples : f.sideband,
				k ? f.samples_len : f.sideband_len, buffer, fr_history_section_max(h));
			struct fr_section_iter it = fr_section_iter(buffer, (size_t)FR_MAX(len, 0));
			const struct perf_event_header *record;

			assert_true(len >= 0);
			while ((record = fr_section_next(&it))) {
				if (record->type == FR_RECORD_FINISHED_ROUND)
					continue;
				assert_true(test_record_holds(record, &n) && n >= next[k]);
				next[k] = n + 1;
			}
		}
	fr_snapshot_free(s);
	assert_true(frames <= frames_before);
}

/* A ring that was damaged goes on as any other: laps, a snapshot, the next adoption. */
static void expect_to_go_on(struct fr_history *h, uint64_t *random)
{
	static struct told t;
	struct fr_history_adopted what;
	struct fr_history *next;
	struct fr_snapshot *retained = NULL;
	struct fr_history_stats stats;

	fr_history_seal(h); /* what is in the open chunk may be anything, and says so in what follows */
	h->arena.evicted = NULL;
	t = (struct told){0};
	do {
		assert_int_equal(random_step(h, &t, &retained, random), 0);
		fr_history_stats(h, &stats);
	} while (stats.frames_evicted < 60 || retained);
	(void)read_all(h);
	next = adopt(copy_image(h), h->size, NULL, &what);
	(void)read_all(next);
	fr_history_free(next);
}

static size_t place_that_matters(uint64_t *random, const struct fr_image_header *i, const uint8_t *image)
{
	size_t at;

	switch (test_random(random) % 4) {
	case 0:
		return test_random(random) % sizeof(*i);
	case 1:
		return (size_t)(i->sideband_offset +
				test_random(random) % (i->log_offset - i->sideband_offset));
	default:
		do
			at = (size_t)(i->log_offset + test_random(random) % i->log_bytes);
		while (!image[at]);
		return test_random(random) % 2 ? at : at / FR_FRAME_ALIGN * FR_FRAME_ALIGN + at % 96;
	}
}

static void a_damaged_image_does_no_harm(void **state)
{
	_cleanup_unpack_ struct fr_unpack *u = NULL;
	struct told *t = told_new();
	uint64_t random = 31, taken = 0, left_out = 0, refused = 0;
	struct fr_history *whole = ring_with_records(1 << 20, 300, t, &random);

	assert_int_equal(fr_unpack_new(&u), 0);
	for (unsigned i = 0; i < 300; i++) {
		uint64_t size = i % 4 ? 1 << 20 : test_between(&random, 1 << 20, 3 << 20);
		struct fr_history_config config = config_of(size, NULL);
		struct fr_history *h = NULL;
		struct fr_history_adopted what;
		struct fr_diag d = {0};
		int fd = copy_image(whole), r;

		for (uint64_t flips = test_between(&random, 1, 8); flips; flips--) {
			off_t at = (off_t)place_that_matters(&random, whole->image, whole->map);
			uint8_t byte;

			assert_int_equal(pread(fd, &byte, 1, at), 1);
			byte ^= (uint8_t)(1u << test_random(&random) % 8);
			assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		}
		r = fr_history_adopt(&config, fd, &h, &what, &d);
		if (r < 0) {
			assert_int_equal(r, -EBADMSG);
			assert_string_not_equal(d.what, "");
			close(fd);
			refused++;
			continue;
		}
		expect_order(h, u, whole->arena.frames + 100);
		taken += what.frames;
		left_out += what.frames_left_out;
		if (i % 32 == 0) {
			fr_history_seal(h);
			expect_to_go_on(h, &random);
		}
		fr_history_free(h);
	}
	assert_true(taken > 0 && left_out > 0 && refused > 0);
	fr_history_free(whole);
	munmap(t, sizeof(*t));
}

static void expect_refused(int fd, const char *why)
{
	struct fr_history_config config = config_of(1 << 20, NULL);
	struct fr_history_adopted what;
	struct fr_diag d = {0};
	struct fr_history *h;

	assert_int_equal(fr_history_adopt(&config, fd, &h, &what, &d), -EBADMSG);
	assert_non_null(strstr(d.what, why));
	assert_int_equal(close(fd), 0); /* it is still the caller's */
}

static int memfd_of(size_t size, int seals)
{
	int fd = memfd_create("no ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void what_is_no_ring_of_ours_is_refused(void **state)
{
	struct fr_history *h = ring_new(1 << 20, NULL);
	struct fr_history_config config = config_of(1, NULL);
	struct fr_history_adopted what;
	struct fr_history *none;
	int fds[2], fd;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	close(fds[1]);
	expect_refused(fds[0], "sealed");
	expect_refused(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "sealed");
	expect_refused(memfd_of(1 << 20, F_SEAL_SHRINK), "sealed");
	expect_refused(memfd_of(0, F_SEAL_SHRINK | F_SEAL_GROW), "size");
	expect_refused(memfd_of(1 << 20, F_SEAL_SHRINK | F_SEAL_GROW), "whole");
	fd = copy_image(h);
	assert_int_equal(pwrite(fd, &(uint32_t){FR_IMAGE_VERSION + 1}, 4, 8), 4);
	expect_refused(fd, "version 2, not 1");
	fd = copy_image(h);
	assert_int_equal(fr_history_adopt(&config, fd, &none, &what, NULL), -EINVAL);
	close(fd);
	fr_history_free(h);
}

static void an_empty_ring_is_a_ring(void **state)
{
	struct fr_history *h = ring_new(1 << 20, NULL), *next;
	struct fr_history_adopted what;

	next = adopt(copy_image(h), 1 << 20, NULL, &what);
	assert_true(what.in_place);
	assert_int_equal(
		what.frames + what.samples + what.sideband + what.low_watermark_ns + what.drained_ns, 0);
	assert_int_equal(next->seq, 1);
	assert_int_equal(test_append(next, 0, 1, 64, false), 0);
	fr_history_free(next);
	fr_history_free(h);
}

/* Without the header the memory cannot be gone on with; the frames can. */
static void frames_of_a_ring_without_its_header_are_copied(void **state)
{
	struct told *t = told_new();
	uint64_t random = 5;
	struct fr_history *h = ring_with_records(2 << 20, 400, t, &random), *next;
	static const uint8_t zeros[sizeof(struct fr_image_header)];
	struct fr_history_adopted what;
	struct held held;
	int fd;

	fr_history_seal(h);
	fd = copy_image(h);
	assert_int_equal(pwrite(fd, zeros, sizeof(zeros), 0), sizeof(zeros));
	next = adopt(fd, 2 << 20, t, &what);
	assert_false(what.in_place);
	held = read_all(next);
	expect_newest(t, &held, true);
	assert_int_equal(next->seq, h->seq);
	fr_history_free(next);
	fr_history_free(h);
	munmap(t, sizeof(*t));
}

static void marks_come_over(struct fr_history *h, uint64_t size)
{
	struct fr_history *next;
	struct fr_history_adopted what;
	uint64_t future;
	int fd;

	next = adopt(copy_image(h), size, NULL, &what);
	assert_int_equal(what.drained_ns, 3000);
	assert_int_equal(what.low_watermark_ns, h->low_watermark_ns);
	assert_int_equal(next->image->drained_ns, 3000);
	assert_int_equal(next->image->open_low_watermark_ns, h->low_watermark_ns);
	fr_history_free(next);

	/* What cannot be was damaged: a mark of the future is not known, a low watermark of the future the
	 * frame's.
	 */
	fd = copy_image(h);
	future = fr_monotonic_ns() + 3600 * FR_NSEC_PER_SEC;
	assert_int_equal(pwrite(fd, &future, 8, offsetof(struct fr_image_header, drained_ns)), 8);
	assert_int_equal(pwrite(fd, &future, 8, offsetof(struct fr_image_header, open_low_watermark_ns)), 8);
	next = adopt(fd, size, NULL, &what);
	assert_int_equal(what.drained_ns, 0);
	assert_int_equal(next->image->drained_ns, 0);
	assert_true(next->low_watermark_ns <= h->low_watermark_ns);
	fr_history_free(next);
}

/* The oldest frame's low watermark is not known, the open chunk's is. */
static void marks_of_frames_come_over(struct fr_history *h)
{
	for (uint64_t size = 1 << 20; size <= 2 << 20; size <<= 1) {
		struct fr_history_adopted what;
		struct fr_history *next = adopt(copy_image(h), size, NULL, &what);

		assert_int_equal(what.frames, 1);
		assert_int_equal(what.low_watermark_ns, 0);
		assert_int_equal(what.samples, 4);
		assert_int_equal(next->low_watermark_ns, 2000);
		assert_int_equal(next->samples.n, 1);
		assert_int_equal(next->samples.first_ns, 4001);
		/* Two rounds from now on there is a low watermark again that is younger. */
		fr_history_begin_round(next, 5000);
		fr_history_end_round(next);
		fr_history_begin_round(next, 6000);
		fr_history_seal(next);
		assert_int_equal(next->low_watermark_ns, 5000);
		fr_history_free(next);
	}
}

static void the_last_drain_and_the_low_watermark_are_known(void **state)
{
	struct fr_history *h = ring_new(1 << 20, NULL);

	for (uint64_t since = 1000; since <= 3000; since += 1000) {
		fr_history_begin_round(h, since);
		test_append(h, since, 1, 64, false);
		fr_history_end_round(h);
	}
	marks_come_over(h, 1 << 20); /* no frame yet */
	marks_come_over(h, 2 << 20);
	fr_history_seal(h);
	assert_int_equal(h->low_watermark_ns, 2000);
	test_append(h, 4000, 1, 64, false);
	marks_of_frames_come_over(h);
	fr_history_free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_kill_at_any_moment_loses_nothing_that_was_appended),
		cmocka_unit_test(into_another_size_go_the_newest_frames_that_fit),
		cmocka_unit_test(a_living_ring_changes_its_size),
		cmocka_unit_test(memory_never_holds_both_sizes),
		cmocka_unit_test(a_kill_while_the_size_changes_loses_nothing),
		cmocka_unit_test(what_a_retained_snapshot_left_behind_is_forgotten),
		cmocka_unit_test(a_kill_in_the_midst_of_it_does_no_harm),
		cmocka_unit_test(a_damaged_image_does_no_harm),
		cmocka_unit_test(what_is_no_ring_of_ours_is_refused),
		cmocka_unit_test(an_empty_ring_is_a_ring),
		cmocka_unit_test(frames_of_a_ring_without_its_header_are_copied),
		cmocka_unit_test(the_last_drain_and_the_low_watermark_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
