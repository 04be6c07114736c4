// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Tests of rounds (passes of the recorder over all kernel rings) and low watermarks (docs/design/20). A
 * simulated reader checks the order of records as perf does: at each FINISHED_ROUND record, it delivers all
 * records that are not newer than the newest record that it had at the previous FINISHED_ROUND. A record that
 * comes after newer records were delivered is late. The records come from simulated CPUs. Their kernel rings
 * are drained one after the other, while all CPUs write.
 */

#include "records.h"
#include "base/cleanup.h"

#include <fcntl.h>
#include <string.h>

#define N_CPUS 5
#define RING_MAX 8192

/* A simulated kernel ring: the times of the records that have not yet been drained, in order. */
struct ring {
	uint64_t times[RING_MAX];
	unsigned n;
};

struct machine {
	struct fr_history *h;
	struct ring sideband[N_CPUS], samples[N_CPUS];
	uint64_t now;
	uint64_t random;
	bool naive;	   /* put a FINISHED_ROUND after each round, which makes records late */
	unsigned restarts; /* the average number of steps between two restarts; 0: no restarts */
};

static void make_events(struct machine *m, uint64_t n)
{
	while (n--) {
		unsigned cpu = (unsigned)(test_random(&m->random) % N_CPUS);
		struct ring *r = test_random(&m->random) % 20 ? &m->samples[cpu] : &m->sideband[cpu];

		m->now++;
		if (r->n < RING_MAX)
			r->times[r->n++] = m->now;
	}
}

static void drain_ring(struct machine *m, struct ring *r, enum test_kind kind)
{
	_cleanup_buf_ struct fr_buf b = {0};

	for (unsigned from = 0, to; from < r->n; from = to) {
		to = FR_MIN(from + 1000, r->n);
		b.len = 0;
		for (unsigned i = from; i < to; i++)
			test_put(&b, kind, r->times[i] - 1, 64, false);
		(kind == TEST_SAMPLES ? fr_history_append : fr_history_append_sideband)(
			m->h, b.data, b.len, to - from, r->times[from], r->times[to - 1]);
	}
	r->n = 0;
}

/* Change the size of the ring, or simulate a kill of the process: the records in the kernel rings are lost,
   and another process adopts the ring. */
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

static void run_round(struct machine *m)
{
	static const struct perf_event_header round = {.type = FR_RECORD_FINISHED_ROUND, .size = 8};

	fr_history_begin_round(m->h, m->now);
	for (unsigned i = 0; i < 2 * N_CPUS; i++) {
		if (i < N_CPUS)
			drain_ring(m, &m->sideband[i], TEST_SIDEBAND);
		else
			drain_ring(m, &m->samples[i - N_CPUS], TEST_SAMPLES);
		make_events(m, test_random(&m->random) % 60);
		if (test_random(&m->random) % 200 == 0)
			fr_history_seal(m->h);
		if (m->restarts && test_random(&m->random) % m->restarts == 0)
			restart(m);
	}
	if (m->naive)
		fr_history_append(m->h, &round, sizeof(round), 0, m->now, m->now);
	else
		fr_history_end_round(m->h);
}

/* Add a record in the same way as the tracker's scan of /proc: side-band with the current time, between two
   rounds. */
static void add_scanned_record(struct machine *m)
{
	m->now++;
	test_append_sideband(m->h, m->now - 1, 1, 64, false);
}

struct reader {
	uint64_t newest, next_flush, flushed, low_watermark;
	uint64_t records, rounds, late, too_old, longest_queue, queue, frames_with_two;
};

static void read_record(void *ctx, const struct perf_event_header *record)
{
	const uint64_t t = fr_record_time(record);
	struct reader *r = ctx;

	if (record->type == FR_RECORD_FINISHED_ROUND) {
		r->flushed = r->next_flush;
		r->next_flush = r->newest;
		r->rounds++;
		r->queue = 0;
		return;
	}
	r->records++;
	r->queue++;
	r->too_old += t < r->low_watermark;
	r->late += t < r->flushed;
	r->newest = FR_MAX(r->newest, t);
	r->longest_queue = FR_MAX(r->longest_queue, r->queue);
}

/* Read the ring once, and add the counts to R. */
static void read_ring(struct reader *r, struct fr_history *h)
{
	struct fr_snapshot *s;
	struct fr_frame f;

	r->newest = r->next_flush = r->flushed = r->low_watermark = r->queue = 0;
	assert_int_equal(fr_history_snapshot(h, &s), 0);
	while (fr_snapshot_next(s, &f)) {
		const uint64_t rounds = r->rounds;

		r->too_old += f.low_watermark_ns < r->low_watermark;
		r->low_watermark = f.low_watermark_ns;
		assert_true(test_walk_section(&f, TEST_SIDEBAND, read_record, r));
		assert_true(test_walk_section(&f, TEST_SAMPLES, read_record, r));
		r->frames_with_two += r->rounds - rounds > 1;
	}
	fr_snapshot_free(s);
}

static struct reader simulate(struct machine *m, uint64_t busy, unsigned n_rounds)
{
	struct reader r = {0};

	m->h = test_history(2 << 20, NULL, NULL);
	for (unsigned i = 1; i <= n_rounds; i++) {
		make_events(m, test_random(&m->random) % busy);
		run_round(m);
		if (test_random(&m->random) % 8 == 0)
			add_scanned_record(m);
		if (i % (n_rounds / 4) == 0)
			read_ring(&r, m->h);
	}
	fr_history_free(m->h);
	return r;
}

static void check_loads(uint64_t random, unsigned restarts)
{
	/* Numbers of records between two rounds: between a few records and several chunks. */
	static const uint64_t loads[] = {4, 100, 1500, 10000};

	for (size_t i = 0; i < FR_ARRAY_SIZE(loads); i++) {
		static struct machine m;
		struct reader r;

		m = (struct machine){.random = random + i, .restarts = restarts};
		r = simulate(&m, loads[i], (unsigned)FR_MAX(800000 / (loads[i] + 500), 120u));
		assert_true(r.records > 10000);
		assert_true(r.rounds > 5);
		assert_int_equal(r.late, 0);
		assert_int_equal(r.frames_with_two, 0);
		assert_int_equal(r.too_old, 0);
		if (!restarts)
			assert_true(r.rounds > 10 && r.longest_queue < r.records / 4);
	}
}

TEST(no_record_is_late_or_older_than_the_low_watermark)
{
	check_loads(11, 0);
}

TEST(no_record_is_late_after_kills_and_resizes)
{
	check_loads(51, 200);
}

/* This test shows that the simulated reader notices late records. */
TEST(a_finished_round_after_every_round_makes_records_late)
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

/* Make a round with one sample. */
static void run_one_sample_round(struct fr_history *h, uint64_t n)
{
	fr_history_begin_round(h, 0);
	test_append(h, n, 1, 64, false);
	fr_history_end_round(h);
}

TEST(a_frame_has_at_most_one_finished_round)
{
	struct fr_history *h = test_history(1 << 20, NULL, NULL);

	fr_history_begin_round(h, 0);
	fr_history_end_round(h); /* the empty chunk gets no FINISHED_ROUND and becomes no frame */
	fr_history_seal(h);
	for (unsigned i = 0; i < 3; i++)
		run_one_sample_round(h, i);
	assert_int_equal(rounds_in_newest_frame(h), 1);

	/* The chunk with the last FINISHED_ROUND is sealed into a frame during a round. This round writes no
	   FINISHED_ROUND, but the next round writes one. */
	run_one_sample_round(h, 10);
	fr_history_begin_round(h, 0);
	test_append(h, 11, 1, 64, false);
	assert_int_equal(rounds_in_newest_frame(h), 1);
	test_append(h, 12, 1, 64, false);
	fr_history_end_round(h);
	assert_int_equal(rounds_in_newest_frame(h), 0);
	run_one_sample_round(h, 13);
	assert_int_equal(rounds_in_newest_frame(h), 1);
	fr_history_free(h);
}
