/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * The ring against a plain model: a list of all that was appended. What a snapshot reads back is always
 * exactly the newest suffix of it, in order, whole records only, for random ring sizes, records, runs and
 * seals, while another thread takes snapshots and reads them.
 */

#include "records.h"
#include "base/cleanup.h"
#include "history/crc32c.h"
#include "history/layout.h"
#include "history/unpack.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

struct item {
	uint64_t n;
	uint32_t size;
};

/* What was appended and not dropped, oldest first. Numbers go on where items were dropped. */
struct model {
	struct item *items;
	size_t len, cap;
	uint64_t next;
};

static void model_push(struct model *m, uint64_t n, uint32_t size)
{
	if (m->len == m->cap) {
		m->cap = m->cap ? m->cap * 2 : 1024;
		m->items = reallocarray(m->items, m->cap, sizeof(*m->items));
		assert_non_null(m->items);
	}
	m->items[m->len++] = (struct item){n, size};
}

/* One section of a frame must be the items of M from *AT on. */
static void expect_items(struct fr_unpack *u, const void *zstd, size_t zstd_len, uint32_t n_records,
	const struct model *m, size_t *at, uint8_t *buffer, size_t cap)
{
	ssize_t len = fr_section_decompress(u, zstd, zstd_len, buffer, cap);
	struct fr_section_iter it;
	const struct perf_event_header *record;

	assert_true(len >= 0);
	it = fr_section_iter(buffer, (size_t)len);
	while ((record = fr_section_next(&it))) {
		if (record->type == FR_RECORD_FINISHED_ROUND)
			continue;
		assert_true(*at < m->len);
		assert_int_equal(test_check_record(record), m->items[*at].n);
		assert_int_equal(record->size, m->items[*at].size);
		(*at)++;
		n_records--;
	}
	assert_ptr_equal(it.at, it.end);
	assert_int_equal(n_records, 0);
}

static void expect_suffix(
	struct fr_history *h, const struct model *samples, const struct model *sideband, struct fr_unpack *u)
{
	_cleanup_free_ uint8_t *buffer = malloc(fr_history_section_max(h));
	struct fr_history_stats stats;
	struct fr_snapshot *s;
	struct fr_frame frame;
	uint64_t seq = 0;
	size_t sample_at, sideband_at;

	fr_history_stats(h, &stats);
	assert_true(stats.samples <= samples->len && stats.sideband <= sideband->len);
	assert_int_equal(stats.samples + stats.samples_evicted, samples->len);
	sample_at = samples->len - stats.samples;
	sideband_at = sideband->len - stats.sideband;

	assert_int_equal(fr_history_snapshot(h, &s), 0);
	while (fr_snapshot_next(s, &frame)) {
		if (seq)
			assert_int_equal(frame.seq, seq + 1);
		seq = frame.seq;
		expect_items(u, frame.sideband, frame.sideband_len, frame.n_sideband, sideband, &sideband_at,
			buffer, fr_history_section_max(h));
		expect_items(u, frame.samples, frame.samples_len, frame.n_samples, samples, &sample_at,
			buffer, fr_history_section_max(h));
	}
	fr_snapshot_free(s);
	assert_int_equal(sample_at, samples->len);
	/* Side-band may still be open where a seal found no room for it. */
	assert_true(sideband_at <= sideband->len);
}

/* The other thread: cmocka's asserts are for the test's own. */
struct reader {
	struct fr_history *h;
	atomic_bool stop;
	atomic_uint snapshots, frames, wrong;
	uint64_t random;
};

static bool section_holds(
	struct fr_unpack *u, const void *zstd, size_t zstd_len, uint64_t *last, uint8_t *buffer, size_t cap)
{
	ssize_t len = fr_section_decompress(u, zstd, zstd_len, buffer, cap);
	struct fr_section_iter it;
	const struct perf_event_header *record;
	uint64_t n;

	if (len < 0)
		return false;
	it = fr_section_iter(buffer, (size_t)len);
	while ((record = fr_section_next(&it))) {
		if (record->type == FR_RECORD_FINISHED_ROUND)
			continue;
		if (!test_record_holds(record, &n) || (*last != UINT64_MAX && n <= *last))
			return false;
		*last = n;
	}
	return it.at == it.end;
}

/* The bytes of a pinned frame do not change: its crc holds as long as it is ours. */
static bool frame_holds(const struct fr_frame *f)
{
	const struct fr_frame_header *header = (const struct fr_frame_header *)f->sideband - 1;

	return header->entry.seq == f->seq &&
	       fr_crc32c(0, f->sideband, (size_t)f->sideband_len + f->samples_len) ==
		       header->entry.payload_crc;
}

static void read_snapshot(
	struct reader *r, struct fr_snapshot *s, struct fr_unpack *u, uint8_t *buffer, size_t cap)
{
	uint64_t last_sample = UINT64_MAX, last_sideband = UINT64_MAX, seq = 0;
	bool give_up = test_random(&r->random) % 4 == 0;
	struct fr_frame f;

	while (fr_snapshot_next(s, &f)) {
		bool holds = frame_holds(&f) && (!seq || f.seq == seq + 1) &&
			     section_holds(u, f.sideband, f.sideband_len, &last_sideband, buffer, cap) &&
			     section_holds(u, f.samples, f.samples_len, &last_sample, buffer, cap) &&
			     frame_holds(&f);

		seq = f.seq;
		r->wrong += !holds;
		r->frames++;
		if (give_up && test_random(&r->random) % 8 == 0)
			return;
	}
}

static void *read_all_the_time(void *arg)
{
	struct reader *r = arg;
	size_t cap = fr_history_section_max(r->h);
	_cleanup_free_ uint8_t *buffer = malloc(cap);
	_cleanup_unpack_ struct fr_unpack *u = NULL;
	struct fr_snapshot *s;

	if (!buffer || fr_unpack_new(&u) < 0 || fr_history_snapshot(r->h, &s) < 0) {
		r->wrong++;
		return NULL;
	}
	do {
		fr_snapshot_keep_pinned(s, test_random(&r->random) % 3 == 0);
		read_snapshot(r, s, u, buffer, cap);
		fr_snapshot_free(s);
		r->snapshots++;
	} while (!r->stop && fr_history_snapshot(r->h, &s) == 0);
	if (r->stop)
		return NULL;
	r->wrong++;
	return NULL;
}

struct run {
	struct fr_history *h;
	struct model samples, sideband;
	uint64_t dropped;
	uint64_t random;
};

/* Take the samples that were dropped since the last call, the newest, from the model. */
static void follow_drops(struct run *t)
{
	struct fr_history_stats stats;

	fr_history_stats(t->h, &stats);
	assert_true(stats.samples_dropped - t->dropped <= t->samples.len);
	t->samples.len -= stats.samples_dropped - t->dropped;
	t->dropped = stats.samples_dropped;
}

static uint32_t random_size(uint64_t *random)
{
	uint64_t max = test_random(random) % 16 ? 512 : FR_RECORD_MAX - 7;

	return (uint32_t)test_between(random, TEST_RECORD_MIN, max) / 8 * 8;
}

/* A run of random records that is appended to one section. */
static void append_run(struct run *t, bool is_sideband)
{
	struct model *m = is_sideband ? &t->sideband : &t->samples;
	_cleanup_buf_ struct fr_buf b = {0};
	uint64_t want = test_between(&t->random, 1, is_sideband ? 40 : 400), first = m->next;
	bool noise = test_random(&t->random) % 2;
	uint32_t sizes[400];
	unsigned n = 0;
	int r;

	while (n < want) {
		sizes[n] = random_size(&t->random);
		if (b.len + sizes[n] > FR_HISTORY_RUN_MAX)
			break;
		if (is_sideband)
			test_put_sideband(&b, m->next++, sizes[n++], noise);
		else
			test_put_sample(&b, m->next++, sizes[n++], noise);
	}
	r = is_sideband ? fr_history_append_sideband(t->h, b.data, b.len, n, first + 1, m->next)
			: fr_history_append(t->h, b.data, b.len, n, first + 1, m->next);
	assert_true(r == 0 || r == 1);
	follow_drops(t);
	if (is_sideband && r == 1)
		return;
	for (unsigned i = 0; i < n; i++)
		model_push(m, first + i, sizes[i]);
}

/* A long run of samples, which goes into the log from where it lies. What is open is sealed first, so that it
   is this run and nothing else that may be dropped. */
static void append_long_run(struct run *t)
{
	const size_t max = fr_history_append_max(t->h), want = test_between(&t->random, max / 8, max);
	_cleanup_buf_ struct fr_buf b = {0};
	uint64_t first = t->samples.next;
	uint32_t sizes[8192];
	unsigned n = 0;
	int r;

	fr_history_seal(t->h);
	follow_drops(t);
	for (uint32_t size; n < FR_ARRAY_SIZE(sizes); sizes[n++] = size) {
		size = random_size(&t->random);
		if (b.len + size > want)
			break;
		test_put_sample(&b, t->samples.next++, size, true);
	}
	r = fr_history_append(t->h, b.data, b.len, n, first + 1, t->samples.next);
	assert_true(r == 0 || r == 1);
	for (unsigned i = 0; i < n; i++)
		model_push(&t->samples, first + i, sizes[i]);
	follow_drops(t);
}

static void random_step(struct run *t)
{
	switch (test_random(&t->random) % 16) {
	case 0:
		fr_history_seal(t->h);
		follow_drops(t);
		break;
	case 1:
	case 2:
		append_run(t, true);
		break;
	case 3:
		fr_history_end_round(t->h);
		fr_history_begin_round(t->h, 0);
		break;
	case 4:
		append_long_run(t);
		break;
	default:
		append_run(t, false);
	}
}

static void check_now(struct run *t, struct fr_unpack *u)
{
	fr_history_seal(t->h);
	follow_drops(t);
	expect_suffix(t->h, &t->samples, &t->sideband, u);
}

static uint64_t evicted(struct fr_history *h)
{
	struct fr_history_stats stats;

	fr_history_stats(h, &stats);
	return stats.frames_evicted;
}

static void one_ring(uint64_t size, uint64_t seed, unsigned steps, bool concurrent)
{
	struct run t = {.h = test_history(size, NULL, NULL), .random = seed};
	struct reader reader = {.h = t.h, .random = seed + 1};
	_cleanup_unpack_ struct fr_unpack *u = NULL;
	struct fr_history_stats stats;
	pthread_t thread;

	assert_int_equal(fr_unpack_new(&u), 0);
	if (concurrent)
		assert_int_equal(pthread_create(&thread, NULL, read_all_the_time, &reader), 0);
	/* A reader that stands still for long has pinned all meanwhile: then on until it lets go. */
	for (unsigned i = 0;
		i < steps || (concurrent && !reader.wrong && (!reader.snapshots || !evicted(t.h))); i++) {
		random_step(&t);
		if (i % 128 == 127)
			check_now(&t, u);
	}
	if (concurrent) {
		reader.stop = true;
		pthread_join(thread, NULL);
		assert_int_equal(reader.wrong, 0);
	}
	check_now(&t, u);
	assert_true(evicted(t.h) > 0); /* else it was no test of a ring */
	fr_history_stats(t.h, &stats);
	assert_int_equal(stats.pinned_bytes, 0);
	if (!concurrent)
		assert_int_equal(stats.chunks_dropped + stats.sideband_dropped, 0);
	free(t.samples.items);
	free(t.sideband.items);
	fr_history_free(t.h);
}

static void newest_suffix(void **state)
{
	uint64_t random = 20261120;

	one_ring(FR_HISTORY_SIZE_MIN, 1, 300, false);
	for (unsigned i = 0; i < 2; i++)
		one_ring(test_between(&random, FR_HISTORY_SIZE_MIN, 6 << 20), 100 + i, 500, false);
}

static void newest_suffix_while_another_reads(void **state)
{
	uint64_t random = 7;

	one_ring(FR_HISTORY_SIZE_MIN, 2, 300, true);
	for (unsigned i = 0; i < 2; i++)
		one_ring(test_between(&random, FR_HISTORY_SIZE_MIN, 6 << 20), 200 + i, 500, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(newest_suffix),
		cmocka_unit_test(newest_suffix_while_another_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
