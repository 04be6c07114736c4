// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Tests of appending to the ring. Ring sizes, records, runs (the records of one call) and seals (compressions
 * of the open chunk into a frame) are random, and another thread can read snapshots at the same time. Each
 * record must be in the ring, or be counted as evicted or as dropped.
 */

#include "records.h"
#include "base/cleanup.h"
#include "base/crc32c.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

struct evicted {
	uint64_t frames, samples, sideband;
	bool in_order;
};

static void on_evicted(void *ctx, const struct fr_frame *f)
{
	struct evicted *e = ctx;

	e->in_order &= f->seq == ++e->frames;
	e->samples += f->n_samples;
	e->sideband += f->n_sideband;
}

struct run {
	struct fr_history *h;
	uint64_t next[2]; /* for each kind, the number of the next record */
	struct evicted evicted;
	uint64_t random;
};

/* Seals the open chunk. Then checks that the ring has the newest records in order. Only dropped records may
   be missing between them. */
static void seal_and_check(struct run *t)
{
	struct fr_history_stats stats;
	struct test_contents c;

	fr_history_seal(t->h);
	stats = test_stats(t->h);
	c = stats.chunks_dropped + stats.sideband_dropped ? test_read_with_gaps(t->h) : test_read(t->h);
	assert_true(t->evicted.in_order);
	assert_int_equal(stats.frames_evicted, t->evicted.frames);
	assert_int_equal(stats.samples_evicted, t->evicted.samples);
	assert_int_equal(stats.frames, c.frames);
	assert_int_equal(stats.samples, c.n[TEST_SAMPLES]);
	assert_int_equal(stats.samples + t->evicted.samples + stats.samples_dropped, t->next[TEST_SAMPLES]);
	/* The open chunk still has side-band if the ring had no room for the frame. */
	assert_int_equal(
		stats.sideband + t->evicted.sideband + stats.sideband_dropped, t->next[TEST_SIDEBAND]);
	if (stats.samples) {
		assert_int_equal(stats.first_ns, c.first[TEST_SAMPLES] + 1);
		assert_true(stats.last_ns >= c.next[TEST_SAMPLES]);
	}
}

/* The state of the thread that reads snapshots. It counts what is wrong, because only the main thread of the
   test may use cmocka's asserts. */
struct reader {
	struct fr_history *h;
	atomic_bool stop;
	atomic_uint snapshots, wrong;
	uint64_t random, last[2];
};

static void read_record(void *ctx, const struct perf_event_header *record)
{
	struct reader *r = ctx;
	const enum test_kind kind = record->type == PERF_RECORD_SAMPLE ? TEST_SAMPLES : TEST_SIDEBAND;
	uint64_t n;

	r->wrong += !test_is_valid_record(record, &n) || (r->last[kind] != UINT64_MAX && n <= r->last[kind]);
	r->last[kind] = n;
}

/* Returns whether the crc of a pinned frame is right. The bytes of a pinned frame must not change. */
static bool has_valid_crc(const struct fr_frame *f)
{
	const struct fr_frame_header *header = (const struct fr_frame_header *)f->sideband - 1;

	return header->entry.seq == f->seq &&
	       fr_crc32c(0, f->sideband, (size_t)f->sideband_len + f->samples_len) ==
		       header->entry.payload_crc;
}

static void read_snapshot(struct reader *r, struct fr_snapshot *s)
{
	const bool may_give_up = test_random(&r->random) % 4 == 0;
	struct fr_frame f;
	uint64_t seq = 0;

	r->last[0] = r->last[1] = UINT64_MAX;
	fr_snapshot_keep_pinned(s, test_random(&r->random) % 3 == 0);
	while (fr_snapshot_next(s, &f) && !(may_give_up && test_random(&r->random) % 8 == 0)) {
		r->wrong += !has_valid_crc(&f) || (seq && f.seq != seq + 1) ||
			    !test_walk_section(&f, TEST_SIDEBAND, read_record, r) ||
			    !test_walk_section(&f, TEST_SAMPLES, read_record, r) || !has_valid_crc(&f);
		seq = f.seq;
	}
}

static void *read_all_the_time(void *arg)
{
	struct reader *r = arg;
	struct fr_snapshot *s;

	while (!r->stop) {
		if (fr_history_snapshot(r->h, &s) < 0) {
			r->wrong++;
			break;
		}
		read_snapshot(r, s);
		fr_snapshot_free(s);
		r->snapshots++;
	}
	return NULL;
}

/* Put random records, of at most MOST bytes together, into B. Returns the number of records. */
static unsigned put_random(struct run *t, struct fr_buf *b, enum test_kind kind, size_t most)
{
	const bool noise = test_random(&t->random) % 2;
	uint64_t *next = &t->next[kind], want = test_between(&t->random, 1, 400);
	unsigned n = 0;

	for (; n < want || most > FR_HISTORY_RUN_MAX; n++) {
		uint64_t max = test_random(&t->random) % 16 ? 512 : FR_RECORD_MAX - 7;
		uint32_t size = (uint32_t)test_between(&t->random, TEST_RECORD_MIN, max) / 8 * 8;

		if (b->len + size > most)
			break;
		test_put(b, kind, (*next)++, size, noise);
	}
	return n;
}

static void append_random_run(struct run *t, enum test_kind kind)
{
	const uint64_t first = t->next[kind];
	_cleanup_buf_ struct fr_buf b = {0};
	const unsigned n = put_random(t, &b, kind, FR_HISTORY_RUN_MAX);
	const uint64_t dropped = test_stats(t->h).sideband_dropped;
	int r = (kind == TEST_SAMPLES ? fr_history_append : fr_history_append_sideband)(
		t->h, b.data, b.len, n, first + 1, first + n);

	assert_in_range(r, 0, 1);
	/* If side-band was appended, the result 1 means that its run was dropped. If samples were appended,
	   the result 1 means that a chunk was dropped. */
	if (kind == TEST_SIDEBAND)
		assert_int_equal(test_stats(t->h).sideband_dropped - dropped, r ? n : 0);
}

/* Appends a run of more than FR_HISTORY_RUN_MAX bytes. The ring compresses such a run directly into the log
   (the area of its frames), without the open chunk. */
static void append_long_run(struct run *t)
{
	const size_t max = fr_history_append_max(t->h);
	const uint64_t first = t->next[TEST_SAMPLES];
	_cleanup_buf_ struct fr_buf b = {0};
	const unsigned n = put_random(t, &b, TEST_SAMPLES,
		FR_MAX(test_between(&t->random, max / 8, max), FR_HISTORY_RUN_MAX + 1ul));

	assert_in_range(fr_history_append(t->h, b.data, b.len, n, first + 1, first + n), 0, 1);
}

static void random_step(struct run *t)
{
	switch (test_random(&t->random) % 16) {
	case 0:
		fr_history_seal(t->h);
		break;
	case 1:
	case 2:
		append_random_run(t, TEST_SIDEBAND);
		break;
	case 3:
		fr_history_end_round(t->h);
		fr_history_begin_round(t->h, 0);
		break;
	case 4:
		append_long_run(t);
		break;
	default:
		append_random_run(t, TEST_SAMPLES);
	}
}

static void run_ring(uint64_t size, uint64_t seed, unsigned steps, bool concurrent)
{
	struct run t = {.evicted.in_order = true, .random = seed};
	struct reader reader = {.random = seed + 1};
	struct fr_history_stats stats;
	pthread_t thread;

	t.h = reader.h = test_history(size, on_evicted, &t.evicted);
	if (concurrent)
		assert_int_equal(pthread_create(&thread, NULL, read_all_the_time, &reader), 0);
	/* A slow reader can keep all frames pinned for a long time, so that none is evicted. So the test
	 * makes more steps until the reader has read a snapshot and a frame has been evicted. */
	for (unsigned i = 0;
		i < steps || (concurrent && !reader.wrong && (!reader.snapshots || !t.evicted.frames)); i++) {
		random_step(&t);
		if (i % 128 == 127)
			seal_and_check(&t);
	}
	if (concurrent) {
		reader.stop = true;
		pthread_join(thread, NULL);
		assert_int_equal(reader.wrong, 0);
	}
	seal_and_check(&t);
	assert_true(t.evicted.frames > 0); /* the log has been filled more than once */
	stats = test_stats(t.h);
	assert_int_equal(stats.pinned_bytes, 0);
	if (!concurrent) {
		assert_int_equal(stats.chunks_dropped + stats.sideband_dropped, 0);
		/* At most 3/5 of the ring are free: the reserve (the part of the log that is used only while
		   pinned frames stop eviction, here two frames of the largest size) and room for one
		   frame. */
		assert_in_range(stats.used_bytes, size * 2 / 5, size);
	}
	fr_history_free(t.h);
}

TEST(the_ring_has_the_newest_records)
{
	uint64_t random = 20261120;

	run_ring(FR_HISTORY_SIZE_MIN, 1, 1000, false);
	for (unsigned i = 0; i < 2; i++)
		run_ring(test_between(&random, FR_HISTORY_SIZE_MIN, 6 << 20), 100 + i, 500, false);
}

TEST(the_ring_has_the_newest_records_while_another_thread_reads)
{
	uint64_t random = 7;

	run_ring(FR_HISTORY_SIZE_MIN, 2, 300, true);
	for (unsigned i = 0; i < 2; i++)
		run_ring(test_between(&random, FR_HISTORY_SIZE_MIN, 6 << 20), 200 + i, 500, true);
}

TEST(bad_configurations_are_refused)
{
	static const struct {
		struct fr_history_config config;
		const char *in_what;
	} cases[] = {
		{{.size_bytes = FR_HISTORY_SIZE_MIN - 1, .level = 1}, "1.0M"},
		{{.size_bytes = FR_HISTORY_SIZE_MAX + 1, .level = 1}, "16.0G"},
		{{.size_bytes = FR_HISTORY_SIZE_MIN, .level = 1000}, "1000"},
	};

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		struct fr_history *h = NULL;
		struct fr_diag d = {0};

		assert_int_equal(fr_history_new(&cases[i].config, &h, &d), -EINVAL);
		assert_non_null(strstr(d.what, cases[i].in_what));
		assert_null(h);
	}
	assert_null(fr_history_free(NULL));
	assert_null(fr_snapshot_free(NULL));
}

/* The file seals of the memfd fix its size. The test needs little memory, because the kernel allocates memory
   only for the pages of the ring that have been written. */
TEST(the_size_of_the_largest_ring_is_fixed_by_file_seals)
{
	struct fr_history *h = test_history(FR_HISTORY_SIZE_MAX, NULL, NULL);

	assert_int_equal(test_append(h, 0, 10, 80, false), 0);
	assert_int_equal(fr_history_seal(h), 0);
	assert_int_equal(test_read(h).n[TEST_SAMPLES], 10);
	assert_int_equal(lseek(fr_history_fd(h), 0, SEEK_END), FR_HISTORY_SIZE_MAX);
	assert_int_equal(ftruncate(fr_history_fd(h), 4096), -1);
	fr_history_free(h);
}

TEST(a_run_that_is_too_long_is_refused)
{
	struct fr_history *h = test_history(1 << 20, NULL, NULL);
	_cleanup_free_ uint8_t *run = calloc(1, fr_history_append_max(h) + 8);

	assert_true(fr_history_append_max(h) >= FR_HISTORY_RUN_MAX);
	assert_int_equal(fr_history_append(h, run, fr_history_append_max(h) + 8, 1, 1, 1), -EMSGSIZE);
	assert_int_equal(fr_history_append_sideband(h, run, FR_HISTORY_RUN_MAX + 8, 1, 1, 1), -EMSGSIZE);
	assert_int_equal(fr_history_append(h, run, 0, 0, 0, 0), 0);
	assert_int_equal(fr_history_seal(h), 0);
	assert_int_equal(test_stats(h).frames, 0);
	fr_history_free(h);
}

struct other {
	struct fr_history *h;
	_Atomic uint64_t n;
	unsigned wrong;
	atomic_bool stop;
};

static void *append_sideband_all_the_time(void *arg)
{
	struct other *o = arg;

	for (; !o->stop; o->n++)
		o->wrong += test_append_sideband(o->h, o->n, 1, 200, false) != 0;
	return NULL;
}

TEST(another_thread_can_append_sideband)
{
	struct evicted evicted = {.in_order = true};
	struct other other = {.h = test_history(1 << 20, on_evicted, &evicted)};
	struct test_contents c;
	uint64_t n = 0;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, append_sideband_all_the_time, &other), 0);
	while (n < 30000 || other.n < 1000) {
		assert_int_equal(test_append(other.h, n, 30, 240, true), 0);
		n += 30;
		if (n % 210 == 0)
			fr_history_seal(other.h);
	}
	other.stop = true;
	pthread_join(thread, NULL);
	fr_history_seal(other.h);
	assert_int_equal(other.wrong, 0);
	assert_true(evicted.in_order);
	c = test_read(other.h);
	assert_int_equal(c.n[TEST_SAMPLES] + evicted.samples, n);
	assert_int_equal(c.n[TEST_SIDEBAND] + evicted.sideband, other.n);
	fr_history_free(other.h);
}
