/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * FINISHED_ROUND before a simulated reader: an ordered queue that delivers at each round what is not newer
 * than the newest time known at the round before. Records come from simulated CPUs whose rings are drained
 * one after another, while all of them go on writing.
 */

#include "records.h"
#include "base/cleanup.h"
#include "history/unpack.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#define N_CPUS 5
#define RING_MAX 8192

/* Times of records that were not drained yet, in order. */
struct ring {
	uint64_t times[RING_MAX];
	unsigned n;
};

struct machine {
	struct fr_history *h;
	struct ring sideband[N_CPUS], samples[N_CPUS];
	uint64_t now;
	uint64_t random;
	bool naive;	   /* a FINISHED_ROUND after every round */
	unsigned restarts; /* one in so many times that something could happen; 0: never */
};

static void events_happen(struct machine *m, uint64_t n)
{
	while (n--) {
		unsigned cpu = (unsigned)(test_random(&m->random) % N_CPUS);
		struct ring *r = test_random(&m->random) % 20 ? &m->samples[cpu] : &m->sideband[cpu];

		m->now++;
		if (r->n < RING_MAX)
			r->times[r->n++] = m->now;
	}
}

static void drain_ring(struct machine *m, struct ring *r, bool is_sideband)
{
	_cleanup_buf_ struct fr_buf b = {0};

	for (unsigned from = 0, to; from < r->n; from = to) {
		to = FR_MIN(from + 1000, r->n);
		b.len = 0;
		for (unsigned i = from; i < to; i++)
			(is_sideband ? test_put_sideband : test_put_sample)(&b, r->times[i] - 1, 64, false);
		(is_sideband ? fr_history_append_sideband : fr_history_append)(
			m->h, b.data, b.len, to - from, r->times[from], r->times[to - 1]);
	}
	r->n = 0;
}

/* The process is killed: what was in the kernel's rings is lost, and another one goes on; or it gives the
   ring another size. */
static void restart(struct machine *m)
{
	uint64_t size = test_between(&m->random, 0, 1) ? 2 << 20 : test_between(&m->random, 1 << 20, 3 << 20);
	struct fr_history_config config = {.size_bytes = size, .level = 1};
	struct fr_history_adopted what;
	int fd;

	if (test_random(&m->random) % 4 == 0) {
		assert_int_equal(test_resize(&m->h, size, &what, NULL), 0);
		return;
	}
	fd = fcntl(fr_history_fd(m->h), F_DUPFD_CLOEXEC, 0);
	fr_history_free(m->h);
	assert_int_equal(fr_history_adopt(&config, fd, &m->h, &what, NULL), 0);
	for (unsigned i = 0; i < N_CPUS; i++)
		m->sideband[i].n = m->samples[i].n = 0;
	m->now++;
}

static void may_restart(struct machine *m)
{
	if (m->restarts && test_random(&m->random) % m->restarts == 0)
		restart(m);
}

static void one_round(struct machine *m)
{
	static const struct perf_event_header round = {.type = FR_RECORD_FINISHED_ROUND, .size = 8};

	fr_history_begin_round(m->h, m->now);
	for (unsigned i = 0; i < 2 * N_CPUS; i++) {
		bool is_sideband = i < N_CPUS;

		drain_ring(m, is_sideband ? &m->sideband[i] : &m->samples[i - N_CPUS], is_sideband);
		events_happen(m, test_random(&m->random) % 60);
		if (test_random(&m->random) % 200 == 0)
			fr_history_seal(m->h);
		may_restart(m);
	}
	if (m->naive)
		fr_history_append(m->h, &round, sizeof(round), 0, m->now, m->now);
	else
		fr_history_end_round(m->h);
}

/* What the tracker's scan adds: side-band that says "now", at any moment between rounds. */
static void inject(struct machine *m)
{
	m->now++;
	test_append_sideband(m->h, m->now - 1, 1, 64, false);
}

struct reader {
	uint64_t newest, next_flush, flushed, low_watermark;
	uint64_t records, rounds, late, too_old, longest_queue, queue;
};

static void reader_takes(struct reader *r, const struct perf_event_header *record)
{
	uint64_t t = fr_record_time(record);

	if (record->type == FR_RECORD_FINISHED_ROUND) {
		r->flushed = r->next_flush;
		r->next_flush = r->newest;
		r->rounds++;
		r->queue = 0;
		return;
	}
	r->records++;
	r->too_old += t < r->low_watermark;
	r->late += t < r->flushed;
	r->newest = FR_MAX(r->newest, t);
	r->longest_queue = FR_MAX(r->longest_queue, ++r->queue);
}

static struct reader read_file(struct fr_history *h)
{
	_cleanup_free_ uint8_t *buffer = malloc(fr_history_section_max(h));
	_cleanup_unpack_ struct fr_unpack *u = NULL;
	struct reader reader = {0};
	struct fr_snapshot *s;
	struct fr_frame f;

	assert_int_equal(fr_unpack_new(&u), 0);
	assert_int_equal(fr_history_snapshot(h, &s), 0);
	while (fr_snapshot_next(s, &f)) {
		uint64_t rounds = reader.rounds;

		reader.too_old += f.low_watermark_ns < reader.low_watermark;
		reader.low_watermark = f.low_watermark_ns;
		for (int k = 0; k < 2; k++) {
			ssize_t len = fr_section_decompress(u, k ? f.samples : f.sideband,
				k ? f.samples_len : f.sideband_len, buffer, fr_history_section_max(h));
			struct fr_section_iter it = fr_section_iter(buffer, (size_t)len);
			const struct perf_event_header *record;

			assert_true(len >= 0);
			while ((record = fr_section_next(&it)))
				reader_takes(&reader, record);
		}
		if (reader.rounds - rounds > 1)
			reader.late = UINT64_MAX / 2; /* see no_record_is_ever_late() */
	}
	fr_snapshot_free(s);
	return reader;
}

static struct reader simulate(struct machine *m, uint64_t busy, unsigned n_rounds)
{
	struct reader sum = {0}, r;

	m->h = test_history(2 << 20, NULL, NULL);
	for (unsigned i = 1; i <= n_rounds; i++) {
		events_happen(m, test_random(&m->random) % busy);
		one_round(m);
		if (test_random(&m->random) % 8 == 0)
			inject(m);
		if (i % (n_rounds / 4) == 0) {
			r = read_file(m->h);
			sum.late += r.late;
			sum.too_old += r.too_old;
			sum.rounds += r.rounds;
			sum.records += r.records;
			sum.longest_queue = FR_MAX(sum.longest_queue, r.longest_queue);
		}
	}
	fr_history_free(m->h);
	return sum;
}

/* How much happens between two rounds: from a few records to several chunks of them. */
static const uint64_t loads[] = {4, 100, 1500, 10000};

static void no_record_is_ever_late(void **state)
{
	for (size_t i = 0; i < FR_ARRAY_SIZE(loads); i++) {
		static struct machine m;
		struct reader r;

		m = (struct machine){.random = 11 + i};
		r = simulate(&m, loads[i], (unsigned)FR_MAX(400000 / (loads[i] + 500), 60u));
		assert_true(r.records > 10000);
		assert_true(r.rounds > 10);
		assert_int_equal(r.late, 0); /* nor does a frame have two rounds */
		assert_int_equal(r.too_old, 0);
		assert_true(r.longest_queue < r.records / 4);
	}
}

/* Nor after a kill, wherever in a round it was; and low watermarks hold. */
static void nor_with_restarts(void **state)
{
	for (size_t i = 0; i < FR_ARRAY_SIZE(loads); i++) {
		static struct machine m;
		struct reader r;

		m = (struct machine){.random = 51 + i, .restarts = 200};
		r = simulate(&m, loads[i], (unsigned)FR_MAX(800000 / (loads[i] + 500), 120u));
		assert_true(r.records > 10000);
		assert_true(r.rounds > 5);
		assert_int_equal(r.late, 0);
		assert_int_equal(r.too_old, 0);
	}
}

/* The reader is no blind one: it sees what the rule avoids. */
static void a_round_after_every_drain_makes_records_late(void **state)
{
	static struct machine m = {.random = 5, .naive = true};

	assert_true(simulate(&m, 100, 1000).late > 0);
}

static unsigned rounds_in_newest_frame(struct fr_history *h)
{
	struct fr_snapshot *s;
	struct fr_frame f = {0};
	uint32_t raw = 0, n = 0;

	assert_int_equal(fr_history_seal(h), 0);
	assert_int_equal(fr_history_snapshot(h, &s), 0);
	while (fr_snapshot_next(s, &f)) {
		raw = f.samples_raw;
		n = f.n_samples;
	}
	fr_snapshot_free(s);
	return (raw - n * 64) / 8;
}

static void at_most_one_in_a_frame(void **state)
{
	struct fr_history *h = test_history(1 << 20, NULL, NULL);

	fr_history_begin_round(h, 0);
	fr_history_end_round(h); /* nothing there: no round, and no frame for it */
	fr_history_seal(h);
	for (unsigned i = 0; i < 3; i++) {
		fr_history_begin_round(h, 0);
		test_append(h, i, 1, 64, false);
		fr_history_end_round(h);
	}
	assert_int_equal(rounds_in_newest_frame(h), 1);

	/* A round that the frame with the last one was closed in: none; the next: one. */
	fr_history_begin_round(h, 0);
	test_append(h, 10, 1, 64, false);
	fr_history_end_round(h);
	fr_history_begin_round(h, 0);
	test_append(h, 11, 1, 64, false);
	assert_int_equal(rounds_in_newest_frame(h), 1);
	test_append(h, 12, 1, 64, false);
	fr_history_end_round(h);
	assert_int_equal(rounds_in_newest_frame(h), 0);
	fr_history_begin_round(h, 0);
	test_append(h, 13, 1, 64, false);
	fr_history_end_round(h);
	assert_int_equal(rounds_in_newest_frame(h), 1);
	fr_history_free(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_record_is_ever_late),
		cmocka_unit_test(nor_with_restarts),
		cmocka_unit_test(a_round_after_every_drain_makes_records_late),
		cmocka_unit_test(at_most_one_in_a_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
