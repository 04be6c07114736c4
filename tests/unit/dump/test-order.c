// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Tests of the order of frames, of FINISHED_ROUNDs and of low watermarks (docs/design/20). A simulated reader
 * checks the order of records as perf does: at each FINISHED_ROUND, it delivers all records that are not
 * newer than the newest record that it had at the previous FINISHED_ROUND. A record that comes after newer
 * records were delivered is late. The records come from simulated CPUs. Their kernel rings are drained one
 * after the other, while all CPUs write, into one to three rings of the recorder: each next ring gets far
 * fewer records.
 */

#include "../history/records.h"
#include "base/cleanup.h"
#include "dump/order.h"
#include "history/unpack.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#define N_CPUS 5
#define RING_MAX 8192
#define HISTORIES 4

/* A simulated kernel ring: the times of the records that have not yet been drained, in order, and the ring of
   the recorder to which each record goes. */
struct ring {
	uint64_t times[RING_MAX];
	unsigned to[RING_MAX];
	unsigned n;
};

struct machine {
	struct fr_history *h[HISTORIES];
	unsigned histories;
	unsigned sideband_history; /* the ring with the side-band: 0; or the last one, which has no samples */
	struct ring sideband[N_CPUS], samples[N_CPUS];
	uint64_t now;
	uint64_t random;
	bool naive;	   /* read a FINISHED_ROUND before each piece, which makes records late */
	unsigned restarts; /* the average number of steps between two restarts; 0: no restarts */
};

static unsigned choose_history(struct machine *m)
{
	unsigned i = 0;

	while (i + 1 < m->histories - (m->sideband_history > 0) && test_random(&m->random) % 40 == 0)
		i++;
	return i;
}

static void make_events(struct machine *m, uint64_t n)
{
	while (n--) {
		unsigned cpu = (unsigned)(test_random(&m->random) % N_CPUS);
		bool sample = test_random(&m->random) % 20;
		struct ring *r = sample ? &m->samples[cpu] : &m->sideband[cpu];

		m->now++;
		if (r->n == RING_MAX)
			continue;
		r->times[r->n] = m->now;
		r->to[r->n++] = sample ? choose_history(m) : m->sideband_history;
	}
}

static void drain_ring(struct machine *m, struct ring *r, enum test_kind kind)
{
	_cleanup_buf_ struct fr_buf b = {0};

	for (unsigned from = 0, to; from < r->n; from = to) {
		b.len = 0;
		for (to = from; to < FR_MIN(from + 1000, r->n) && r->to[to] == r->to[from]; to++)
			test_put(&b, kind, r->times[to] - 1, 64, false);
		(kind == TEST_SAMPLES ? fr_history_append : fr_history_append_sideband)(
			m->h[r->to[from]], b.data, b.len, to - from, r->times[from], r->times[to - 1]);
	}
	r->n = 0;
}

static void restart_history(struct machine *m, struct fr_history **h, bool kill)
{
	uint64_t size = test_between(&m->random, 0, 1) ? 2 << 20 : test_between(&m->random, 1 << 20, 3 << 20);
	struct fr_history_config config = {.size_bytes = size, .level = 1};
	struct fr_history_adopted what;
	int fd;

	if (!kill) {
		assert_int_equal(test_resize(h, size, &what, NULL), 0);
		return;
	}
	fd = fcntl(fr_history_fd(*h), F_DUPFD_CLOEXEC, 0);
	fr_history_free(*h);
	assert_int_equal(fr_history_adopt(&config, fd, h, &what, NULL), 0);
}

/* Change the size of a ring, or simulate a kill of the process: the records in the kernel rings are lost, and
   another process adopts the rings. */
static void restart(struct machine *m)
{
	if (test_random(&m->random) % 4 == 0) {
		restart_history(m, &m->h[test_random(&m->random) % m->histories], false);
		return;
	}
	for (unsigned i = 0; i < m->histories; i++)
		restart_history(m, &m->h[i], true);
	for (unsigned i = 0; i < N_CPUS; i++)
		m->sideband[i].n = m->samples[i].n = 0;
	m->now++;
}

static void run_round(struct machine *m)
{
	for (unsigned i = 0; i < m->histories; i++)
		fr_history_begin_round(m->h[i], m->now);
	for (unsigned i = 0; i < 2 * N_CPUS; i++) {
		if (i < N_CPUS)
			drain_ring(m, &m->sideband[i], TEST_SIDEBAND);
		else
			drain_ring(m, &m->samples[i - N_CPUS], TEST_SAMPLES);
		make_events(m, test_random(&m->random) % 60);
		if (test_random(&m->random) % 200 == 0)
			fr_history_seal(m->h[test_random(&m->random) % m->histories]);
		if (m->restarts && test_random(&m->random) % m->restarts == 0)
			restart(m);
	}
	for (unsigned i = 0; i < m->histories; i++)
		fr_history_end_round(m->h[i]);
}

/* Add a record in the same way as the tracker's scan of /proc: side-band with the current time, between two
   rounds. */
static void add_scanned_record(struct machine *m)
{
	m->now++;
	test_append_sideband(m->h[m->sideband_history], m->now - 1, 1, 64, false);
}

struct reader {
	const struct fr_piece *piece;
	uint64_t newest, next_flush, flushed, low_watermark[HISTORIES];
	uint64_t records, expected, rounds, pieces, frames, late, too_old, too_new, longest_queue, queue;
};

static void read_round(struct reader *r)
{
	r->flushed = r->next_flush;
	r->next_flush = r->newest;
	r->rounds++;
	r->queue = 0;
}

static void read_record(void *ctx, const struct perf_event_header *record)
{
	const uint64_t t = fr_record_time(record);
	struct reader *r = ctx;

	if (t < r->piece->from_ns || t > r->piece->to_ns)
		return;
	r->records++;
	r->queue++;
	r->too_old += t < r->piece->frame->low_watermark_ns;
	r->too_new += t > r->piece->last_ns;
	r->late += t < r->flushed;
	r->newest = FR_MAX(r->newest, t);
	r->longest_queue = FR_MAX(r->longest_queue, r->queue);
}

/* Read the rings once, as a dump does, and add the counts to R. */
static void read_rings(struct reader *r, struct machine *m)
{
	struct fr_snapshots s = {0};
	struct fr_order order;
	struct fr_piece piece;

	r->newest = r->next_flush = r->flushed = r->queue = 0;
	for (unsigned i = 0; i < m->histories; i++) {
		fr_history_seal(m->h[i]);
		assert_int_equal(fr_history_snapshot(m->h[i], &s.of[s.n++]), 0);
		r->frames += test_stats(m->h[i]).frames;
	}
	fr_order_init(&order, &s, false);
	order.waiting_max = 1 << 20;
	while (fr_order_next(&order, &piece)) {
		r->piece = &piece;
		r->pieces++;
		if (piece.round || m->naive)
			read_round(r);
		if (!piece.from_ns)
			r->expected += piece.frame->n_samples + piece.frame->n_sideband;
		assert_true(test_walk_section(piece.frame, TEST_SIDEBAND, read_record, r));
		assert_true(test_walk_section(piece.frame, TEST_SAMPLES, read_record, r));
	}
	fr_snapshots_free(&s);
}

static struct reader simulate(struct machine *m, uint64_t busy, unsigned n_rounds)
{
	struct reader r = {0};

	for (unsigned i = 0; i < m->histories; i++)
		m->h[i] = test_history(2 << 20, NULL, NULL);
	for (unsigned i = 1; i <= n_rounds; i++) {
		make_events(m, test_random(&m->random) % busy);
		run_round(m);
		if (test_random(&m->random) % 8 == 0)
			add_scanned_record(m);
		if (i % (n_rounds / 4) == 0)
			read_rings(&r, m);
	}
	for (unsigned i = 0; i < m->histories; i++)
		fr_history_free(m->h[i]);
	return r;
}

static void check_load(
	uint64_t random, unsigned histories, unsigned sideband_history, unsigned restarts, uint64_t load)
{
	static struct machine m;
	struct reader r;

	m = (struct machine){.random = random,
		.histories = histories,
		.sideband_history = sideband_history,
		.restarts = restarts};
	r = simulate(&m, load, (unsigned)FR_MAX(800000 / (load + 500), 120u));
	print_message("%u rings%s, load %" PRIu64 ": %" PRIu64 " records, %" PRIu64 " frames in %" PRIu64
		      " pieces, %" PRIu64 " rounds, longest queue %" PRIu64 "\n",
		histories, sideband_history ? ", one of them for side-band" : "", load, r.records, r.frames,
		r.pieces, r.rounds, r.longest_queue);
	assert_true(r.records > 10000);
	assert_int_equal(r.records, r.expected);
	assert_int_equal(r.late, 0);
	assert_int_equal(r.too_old, 0);
	assert_int_equal(r.too_new, 0);
	assert_true(r.rounds > 5);
	if (!restarts)
		assert_true(r.rounds > 10 && r.longest_queue < r.records / 4);
}

static void check_loads(uint64_t random, unsigned restarts)
{
	/* Numbers of records between two rounds: between a few records and several chunks. */
	static const uint64_t loads[] = {4, 100, 1500, 10000};

	for (unsigned histories = 1; histories < HISTORIES; histories++)
		for (size_t i = 0; i < FR_ARRAY_SIZE(loads); i++)
			check_load(random + i, histories, 0, restarts, loads[i]);
	for (unsigned histories = 2; histories <= HISTORIES; histories++)
		for (size_t i = 0; i < FR_ARRAY_SIZE(loads); i++)
			check_load(random + i, histories, histories - 1, restarts, loads[i]);
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
TEST(a_finished_round_before_every_piece_makes_records_late)
{
	static struct machine m = {.random = 5, .histories = 1, .naive = true};

	assert_true(simulate(&m, 100, 1000).late > 0);
}
