/* SPDX-License-Identifier: GPL-2.0-or-later */

/* Pins, the reserve and what is dropped past it; eviction, its callback, and the log's end. */

#include "records.h"
#include "base/cleanup.h"
#include "history/layout.h"
#include "history/unpack.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <fcntl.h>
#include <cmocka.h>

struct seen {
	uint64_t frames, samples, sideband, last_seq, last_sample_ns;
	bool in_order;
};

static void note_evicted(void *ctx, const struct fr_frame *f)
{
	struct seen *seen = ctx;

	if (f->seq != seen->last_seq + 1 || (f->n_samples && f->first_ns <= seen->last_sample_ns))
		seen->in_order = false;
	seen->frames++;
	seen->samples += f->n_samples;
	seen->sideband += f->n_sideband;
	seen->last_seq = f->seq;
	if (f->n_samples)
		seen->last_sample_ns = f->last_ns;
}

static struct fr_history_stats stats_of(struct fr_history *h)
{
	struct fr_history_stats stats;

	fr_history_stats(h, &stats);
	return stats;
}

/* Read all that is there; the number of samples. Numbers grow; content holds. */
static uint64_t read_all(struct fr_history *h, uint64_t *ret_sideband)
{
	_cleanup_free_ uint8_t *buffer = malloc(fr_history_section_max(h));
	_cleanup_unpack_ struct fr_unpack *u = NULL;
	const struct perf_event_header *record;
	uint64_t n[2] = {0}, last[2] = {0};
	struct fr_snapshot *s;
	struct fr_frame f;

	assert_int_equal(fr_unpack_new(&u), 0);
	assert_int_equal(fr_history_snapshot(h, &s), 0);
	while (fr_snapshot_next(s, &f)) {
		for (int k = 0; k < 2; k++) {
			ssize_t len = fr_section_decompress(u, k ? f.samples : f.sideband,
				k ? f.samples_len : f.sideband_len, buffer, fr_history_section_max(h));
			struct fr_section_iter it = fr_section_iter(buffer, (size_t)len);

			assert_true(len >= 0);
			while ((record = fr_section_next(&it))) {
				uint64_t time = test_check_record(record) + 1;

				assert_true(time > last[k]);
				last[k] = time;
				n[k]++;
			}
			assert_ptr_equal(it.at, it.end);
		}
	}
	fr_snapshot_free(s);
	if (ret_sideband)
		*ret_sideband = n[0];
	return n[1];
}

static void sizes_are_bounded(void **state)
{
	struct fr_history_config config = {.size_bytes = FR_HISTORY_SIZE_MIN - 1, .level = 1};
	struct fr_history *h = NULL;
	struct fr_diag d = {0};

	assert_int_equal(fr_history_new(&config, &h, &d), -EINVAL);
	assert_non_null(strstr(d.what, "1.0M"));
	config.size_bytes = FR_HISTORY_SIZE_MAX + 1;
	assert_int_equal(fr_history_new(&config, &h, NULL), -EINVAL);
	config = (struct fr_history_config){.size_bytes = 1 << 20, .level = 1000};
	d = (struct fr_diag){0};
	assert_int_equal(fr_history_new(&config, &h, &d), -EINVAL);
	assert_non_null(strstr(d.what, "1000"));
	assert_null(h);
	assert_null(fr_history_free(NULL));
	assert_null(fr_snapshot_free(NULL));

	/* The largest costs nothing until it is written to, and its size is sealed. */
	h = test_history(FR_HISTORY_SIZE_MAX, NULL, NULL);
	assert_int_equal(test_append(h, 0, 10, 80, false), 0);
	assert_int_equal(fr_history_seal(h), 0);
	assert_int_equal(read_all(h, NULL), 10);
	assert_int_equal(lseek(fr_history_fd(h), 0, SEEK_END), FR_HISTORY_SIZE_MAX);
	assert_int_equal(ftruncate(fr_history_fd(h), 4096), -1);
	fr_history_free(h);
}

static void too_long_a_run_is_refused(void **state)
{
	struct fr_history *h = test_history(1 << 20, NULL, NULL);
	_cleanup_free_ uint8_t *run = calloc(1, fr_history_append_max(h) + 8);

	assert_true(fr_history_append_max(h) >= FR_HISTORY_RUN_MAX);
	assert_int_equal(fr_history_append(h, run, fr_history_append_max(h) + 8, 1, 1, 1), -EMSGSIZE);
	assert_int_equal(fr_history_append_sideband(h, run, FR_HISTORY_RUN_MAX + 8, 1, 1, 1), -EMSGSIZE);
	assert_int_equal(fr_history_append(h, run, 0, 0, 0, 0), 0);
	assert_int_equal(fr_history_seal(h), 0);
	assert_int_equal(stats_of(h).frames, 0);
	fr_history_free(h);
}

/* Many laps, also of frames that end just where the log ends, and of such that leave a pad. */
static void laps_evict_each_frame_once_in_order(void **state)
{
	struct seen seen = {.in_order = true};
	struct fr_history *h = test_history(1 << 20, note_evicted, &seen);
	uint64_t n = 0, m = 0, random = 3, sideband;

	for (unsigned i = 0; i < 6000; i++) {
		unsigned count = (unsigned)test_between(&random, 1, 60);

		assert_int_equal(
			test_append(h, n, count, (uint32_t)test_between(&random, 8, 120) * 8, true), 0);
		n += count;
		if (i % 3 == 0) {
			assert_int_equal(test_append_sideband(h, m, 2, 96, false), 0);
			m += 2;
		}
		if (i % 2)
			assert_int_equal(fr_history_seal(h), 0);
	}
	fr_history_seal(h);
	assert_true(seen.in_order);
	assert_true(seen.frames > 1000);
	assert_int_equal(stats_of(h).frames_evicted, seen.frames);
	assert_int_equal(stats_of(h).samples_evicted, seen.samples);
	assert_int_equal(read_all(h, &sideband) + seen.samples, n);
	assert_int_equal(sideband + seen.sideband, m);
	/* Full but for the reserve (here two worst frames) and the frame that would not have fitted. */
	assert_in_range(stats_of(h).used_bytes, 450 << 10, 1 << 20);
	assert_int_equal(stats_of(h).first_ns, seen.last_sample_ns + 1);
	assert_int_equal(stats_of(h).last_ns, n);
	fr_history_free(h);
}

/* Fill H with incompressible chunks of 100 samples until a drop or LIMIT; returns chunks that went in. */
static unsigned fill_until_drop(struct fr_history *h, uint64_t *n, unsigned limit)
{
	unsigned chunks = 0;

	for (; chunks < limit; chunks++) {
		assert_int_equal(test_append(h, *n, 60, 1000, true), 0);
		*n += 60;
		if (fr_history_seal(h))
			break;
	}
	return chunks;
}

static void pins_stop_eviction_until_the_reserve_is_used(void **state)
{
	struct seen seen = {.in_order = true};
	struct fr_history *h = test_history(2 << 20, note_evicted, &seen);
	uint64_t n = 0, frames, bytes, before, used, evicted;
	struct fr_snapshot *s;
	struct fr_frame f;

	assert_int_equal(fill_until_drop(h, &n, 100), 100);
	before = stats_of(h).samples;
	used = stats_of(h).used_bytes;
	evicted = seen.frames;
	assert_int_equal(fr_history_snapshot(h, &s), 0);
	fr_snapshot_size(s, &frames, &bytes);
	assert_int_equal(frames, stats_of(h).frames);
	assert_int_equal(stats_of(h).pinned_bytes, bytes);

	/* The reserve takes some more, then the newest goes. */
	assert_in_range(fill_until_drop(h, &n, 100), 2, 20);
	assert_int_equal(seen.frames, evicted);
	assert_true(stats_of(h).used_bytes > used);
	assert_int_equal(stats_of(h).chunks_dropped, 1);
	assert_int_equal(stats_of(h).samples_dropped, 60);
	assert_true(stats_of(h).samples > before);

	/* What was pinned is all there; walking through it makes room at once. */
	for (uint64_t i = 0; i < frames; i++) {
		assert_int_equal(fr_snapshot_next(s, &f), 1);
		assert_int_equal(f.seq, evicted + 1 + i);
		if (i == 4)
			assert_true(fill_until_drop(h, &n, 2) >= 1);
	}
	assert_int_equal(fr_snapshot_next(s, &f), 0);
	assert_int_equal(fr_snapshot_next(s, &f), 0);
	assert_int_equal(stats_of(h).pinned_bytes, 0);
	assert_int_equal(fill_until_drop(h, &n, 200), 200);
	fr_snapshot_free(s);
	assert_true(seen.in_order);
	assert_int_equal(read_all(h, NULL) + seen.samples + stats_of(h).samples_dropped, n);
	fr_history_free(h);
}

static void a_snapshot_that_keeps_can_be_read_twice(void **state)
{
	struct fr_history *h = test_history(1 << 20, NULL, NULL);
	struct fr_snapshot *s;
	struct fr_frame f, first;
	uint64_t n = 0;
	unsigned frames = 0;

	fill_until_drop(h, &n, 20);
	assert_int_equal(fr_history_snapshot(h, &s), 0);
	fr_snapshot_keep_pinned(s, true);
	assert_int_equal(fr_snapshot_next(s, &first), 1);
	while (fr_snapshot_next(s, &f))
		frames++;
	fill_until_drop(h, &n, 20);
	fr_snapshot_rewind(s);
	fr_snapshot_keep_pinned(s, false);
	assert_int_equal(fr_snapshot_next(s, &f), 1);
	assert_memory_equal(&f, &first, sizeof(f));
	while (fr_snapshot_next(s, &f))
		frames--;
	assert_int_equal(frames, 0);
	assert_int_equal(fill_until_drop(h, &n, 20), 20);
	fr_snapshot_free(s);
	fr_history_free(h);
}

/* Of an empty ring: it holds nothing back. */
static void an_empty_snapshot_pins_nothing(void **state)
{
	struct fr_history *h = test_history(1 << 20, NULL, NULL);
	struct fr_snapshot *s;
	struct fr_frame f;
	uint64_t n = 0;

	assert_int_equal(fr_history_snapshot(h, &s), 0);
	assert_int_equal(fill_until_drop(h, &n, 50), 50);
	assert_int_equal(fr_snapshot_next(s, &f), 0);
	fr_snapshot_free(s);
	fr_history_free(h);
}

/* While samples are dropped, side-band finds a place: in frames of its own, then in the open chunk. */
static void sideband_survives_when_samples_are_dropped(void **state)
{
	struct fr_history *h = test_history(1 << 20, NULL, NULL);
	uint64_t n = 0, m = 0, sideband;
	struct fr_snapshot *s;

	fill_until_drop(h, &n, 20);
	assert_int_equal(fr_history_snapshot(h, &s), 0);
	/* In steps so small that what samples leave over at the end is next to nothing. */
	for (unsigned i = 0; i < 200; i++) {
		assert_int_equal(test_append(h, n, 5, 1000, true) & ~1, 0);
		n += 5;
		assert_int_equal(test_append_sideband(h, m++, 1, 512, true), 0);
		fr_history_seal(h);
	}
	assert_true(stats_of(h).samples_dropped > 100 * 5);
	assert_int_equal(stats_of(h).sideband_dropped, 0);
	assert_int_equal(stats_of(h).sideband, m);

	/* Only when all of that is full, it is dropped, and that is said. */
	while (test_append_sideband(h, m, 64, 1000, true) == 0)
		m += 64;
	assert_int_equal(stats_of(h).sideband_dropped, 64);
	assert_int_equal(stats_of(h).sideband, m);

	fr_snapshot_free(s);
	assert_int_equal(fr_history_seal(h), 0);
	assert_true(stats_of(h).frames_evicted > 0);
	read_all(h, &sideband);
	assert_int_equal(sideband, stats_of(h).sideband);
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
	_cleanup_buf_ struct fr_buf b = {0};

	for (; !o->stop; o->n++) {
		b.len = 0;
		test_put_sideband(&b, o->n, 200, false);
		o->wrong += fr_history_append_sideband(o->h, b.data, b.len, 1, o->n + 1, o->n + 1) != 0;
	}
	return NULL;
}

static void sideband_comes_from_another_thread(void **state)
{
	struct seen seen = {.in_order = true};
	struct other other = {.h = test_history(1 << 20, note_evicted, &seen)};
	uint64_t n = 0, sideband;
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
	assert_true(seen.in_order);
	assert_int_equal(read_all(other.h, &sideband) + seen.samples, n);
	assert_int_equal(sideband + seen.sideband, other.n);
	fr_history_free(other.h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_bounded),
		cmocka_unit_test(too_long_a_run_is_refused),
		cmocka_unit_test(laps_evict_each_frame_once_in_order),
		cmocka_unit_test(pins_stop_eviction_until_the_reserve_is_used),
		cmocka_unit_test(a_snapshot_that_keeps_can_be_read_twice),
		cmocka_unit_test(an_empty_snapshot_pins_nothing),
		cmocka_unit_test(sideband_survives_when_samples_are_dropped),
		cmocka_unit_test(sideband_comes_from_another_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
