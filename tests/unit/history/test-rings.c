// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Several rings against a plain model: the model knows the number of the next record of each ring. After any
 * sequence of appends, snapshots, resizes, kills and changes of the set of rings, each ring has exactly the
 * newest records of what came for it: no record is missing, twice, or in another ring.
 */

#include "records.h"
#include "base/cleanup.h"
#include "history/rings.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

#define RINGS 5u
#define STEPS 1500u

struct model {
	struct fr_rings rings;
	uint64_t next[RINGS]; /* the number of the next sample of each ring */
	uint64_t next_sideband;
	uint64_t tail; /* the number of the next side-band record that is evicted */
	uint64_t random;
	unsigned kills, resizes, moves, drops;
};

/* Checks that the rings evict side-band in order, once, and only from the ring that has it. */
static void on_evicted(void *ctx, const struct fr_frame *frame)
{
	struct test_contents c = {.with_gaps = false};
	struct model *m = ctx;

	if (!frame->n_sideband)
		return;
	test_count_frame(&c, frame);
	assert_int_equal(c.first[TEST_SIDEBAND], m->tail);
	m->tail = c.next[TEST_SIDEBAND];
}

static void on_evicted_default(void *ctx, const struct fr_frame *frame)
{
	struct model *m = ctx;

	if (!m->rings.sideband)
		on_evicted(ctx, frame);
}

static struct fr_history_config config_of(struct model *m, unsigned ring)
{
	return (struct fr_history_config){
		.size_bytes = test_between(&m->random, 1 << 20, 3 << 20),
		.level = 1,
		.evicted = ring ? NULL : on_evicted_default,
		.ctx = m,
	};
}

static void add_ring(struct model *m)
{
	const struct fr_history_config config = config_of(m, m->rings.n);

	m->next[m->rings.n] = 1;
	assert_int_equal(fr_history_new(&config, &m->rings.ring[m->rings.n], NULL), 0);
	m->rings.n++;
}

static void add_sideband_ring(struct model *m)
{
	struct fr_history *to = test_history(1 << 20, on_evicted, m);

	assert_int_equal(fr_rings_move_sideband(&m->rings, to), 0);
	m->moves++;
}

/* A round: records for all rings, each at its own rate. */
static void append(struct model *m)
{
	fr_rings_begin_round(&m->rings, 0);
	for (unsigned i = 0; i < m->rings.n; i++) {
		const unsigned n = (unsigned)test_between(&m->random, 0, 400 >> (2 * i));

		if (n)
			assert_int_equal(test_append(m->rings.ring[i], m->next[i], n, 64 + 8 * i, i == 0), 0);
		m->next[i] += n;
	}
	if (test_random(&m->random) % 3 == 0) {
		const unsigned n = (unsigned)test_between(&m->random, 1, 50);

		assert_int_equal(
			test_append_sideband(fr_rings_sideband(&m->rings), m->next_sideband, n, 128, true),
			0);
		m->next_sideband += n;
	}
	fr_rings_end_round(&m->rings);
}

static void resize(struct model *m)
{
	const unsigned i = (unsigned)(test_random(&m->random) % (m->rings.n + (m->rings.sideband != NULL)));
	struct fr_history **ring = i < m->rings.n ? &m->rings.ring[i] : &m->rings.sideband;
	struct fr_history_adopted what;

	assert_int_equal(test_resize(ring, test_between(&m->random, 1 << 20, 4 << 20), &what, NULL), 0);
	m->resizes++;
}

static void adopt(struct fr_history **h, const struct fr_history_config *config)
{
	struct fr_history_adopted what;
	int fd = test_copy_image(*h);

	fr_history_free(*h);
	assert_int_equal(fr_history_adopt(config, fd, h, &what, NULL), 0);
}

/* What a reload does that drops the section of a ring. */
static void drop_ring(struct model *m)
{
	const unsigned i = 1 + (unsigned)(test_random(&m->random) % (m->rings.n - 1));

	fr_rings_count_dropped(&m->rings, m->rings.ring[i]);
	fr_history_free(m->rings.ring[i]);
	m->rings.n--;
	memmove(&m->rings.ring[i], &m->rings.ring[i + 1], (m->rings.n - i) * sizeof(m->rings.ring[i]));
	memmove(&m->next[i], &m->next[i + 1], (m->rings.n - i) * sizeof(m->next[i]));
	m->drops++;
}

/* A kill, and the next process adopts all rings. */
static void kill_all(struct model *m)
{
	for (unsigned i = 0; i < m->rings.n; i++) {
		struct fr_history_config config = config_of(m, i);

		config.keep_size = true;
		adopt(&m->rings.ring[i], &config);
	}
	if (m->rings.sideband)
		adopt(&m->rings.sideband,
			&(struct fr_history_config){
				.keep_size = true, .level = 1, .evicted = on_evicted, .ctx = m});
	m->kills++;
}

/* Reads all rings by snapshots of one moment. */
static void check(struct model *m)
{
	struct fr_snapshots s;

	fr_rings_seal(&m->rings);
	assert_int_equal(fr_rings_snapshot(&m->rings, &s), 0);
	assert_int_equal(s.n_rings, m->rings.n);
	for (unsigned i = 0; i < s.n; i++) {
		struct test_contents c = {.with_gaps = i != s.sideband && i == 0 && m->rings.sideband};

		test_count_snapshot(&c, s.of[i]);
		if (i < m->rings.n && m->next[i] > 1)
			assert_int_equal(c.next[TEST_SAMPLES], m->next[i]);
		if (i < m->rings.n)
			assert_int_equal(c.n[TEST_SAMPLES], c.next[TEST_SAMPLES] - c.first[TEST_SAMPLES]);
		if (i == s.sideband && m->next_sideband > 1) {
			assert_int_equal(c.next[TEST_SIDEBAND], m->next_sideband);
			assert_int_equal(c.first[TEST_SIDEBAND], m->tail);
		}
	}
	fr_snapshots_free(&s);
}

static void run(uint64_t random)
{
	static struct model m;

	m = (struct model){.random = random, .next_sideband = 1, .tail = 1};
	add_ring(&m);
	for (unsigned step = 0; step < STEPS; step++) {
		append(&m);
		if (test_random(&m.random) % 100 == 0)
			resize(&m);
		if (test_random(&m.random) % 100 == 0)
			kill_all(&m);
		if (m.rings.n < RINGS && test_random(&m.random) % 200 == 0) {
			if (!m.rings.sideband)
				add_sideband_ring(&m);
			add_ring(&m);
		}
		if (m.rings.n > 1 && test_random(&m.random) % 400 == 0)
			drop_ring(&m);
		if (step % 50 == 0)
			check(&m);
	}
	check(&m);
	print_message("%u rings, %u dropped, %u kills, %u resizes; side-band from %" PRIu64 " to %" PRIu64
		      "\n",
		m.rings.n, m.drops, m.kills, m.resizes, m.tail, m.next_sideband);
	for (unsigned i = 0; i < m.rings.n; i++)
		fr_history_free(m.rings.ring[i]);
	fr_history_free(m.rings.sideband);
}

TEST(each_ring_has_the_newest_of_what_came_for_it)
{
	for (uint64_t random = 1; random <= 20; random++)
		run(random);
}

/* Rounds at FROM_NS and each 10 ns later. In each, ring 0 gets a frame with one sample. */
static void rounds(struct fr_rings *r, uint64_t from_ns, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		fr_rings_begin_round(r, from_ns + 10 * i);
		assert_int_equal(test_append(r->ring[0], from_ns + 10 * i, 1, 64, false), 0);
		fr_rings_end_round(r);
		fr_rings_seal(r);
	}
}

static uint64_t low_watermark(struct fr_history *h)
{
	struct fr_history_stats s;

	fr_history_stats(h, &s);
	return s.low_watermark_ns;
}

/* The first frames have no side-band, because no process started. Their samples have names nevertheless. */
TEST(a_moved_side_band_is_complete_from_the_first_frame_on)
{
	struct fr_rings r = {.ring = {test_history(1 << 20, NULL, NULL)}, .n = 1};
	uint64_t first_ns;

	fr_rings_begin_round(&r, 990);
	rounds(&r, 1000, 5);
	assert_int_equal(test_append_sideband(r.ring[0], 1040, 1, 128, true), 0);
	rounds(&r, 1050, 5);
	first_ns = low_watermark(r.ring[0]);
	assert_int_equal(fr_rings_move_sideband(&r, test_history(1 << 20, NULL, NULL)), 0);
	assert_int_equal(low_watermark(r.sideband), first_ns);
	fr_history_free(r.sideband);
	fr_history_free(r.ring[0]);
}

/* An event that never happens must not keep the low watermark of all rings at its first value. */
TEST(an_idle_ring_follows_the_rounds)
{
	struct fr_rings r = {
		.ring = {test_history(1 << 20, NULL, NULL), test_history(1 << 20, NULL, NULL)}, .n = 2};

	assert_int_equal(fr_rings_move_sideband(&r, test_history(1 << 20, NULL, NULL)), 0);
	rounds(&r, 1000, 5);
	assert_int_equal(
		low_watermark(r.ring[1]), 1030); /* no record is older than the round before the last */
	for (unsigned i = 0; i < r.n; i++)
		fr_history_free(r.ring[i]);
	fr_history_free(r.sideband);
}

/* The counters of a ring that is dropped stay in the sums. */
TEST(counters_never_go_back)
{
	struct fr_rings r = {
		.ring = {test_history(1 << 20, NULL, NULL), test_history(1 << 20, NULL, NULL)}, .n = 2};
	struct fr_history_stats s;

	assert_int_equal(test_append(r.ring[1], 1, 300, 64, false), 0);
	fr_rings_seal(&r);
	fr_rings_count_dropped(&r, r.ring[1]);
	r.n = 1;
	fr_rings_stats(&r, &s);
	assert_int_equal(s.samples_evicted, 300);
	assert_int_equal(s.samples, 0);
	fr_history_free(r.ring[1]);
	fr_history_free(r.ring[0]);
}
