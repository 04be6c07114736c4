// SPDX-License-Identifier: GPL-2.0-or-later

/* Tests of the state, the data that one instance leaves for the next. The next instance can read it after a
   kill at any time. Damaged data is refused or read without harm. */

#include "../unit.h"
#include "handover/state.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static void make(struct fr_state *s, unsigned n_events, unsigned n_ids, uint64_t salt)
{
	*s = (struct fr_state){.ring = "flightrec-ring-1",
		.boot_id = "0123456789abcdef0123456789abcdef",
		.restarts = salt,
		.counters.next_job_id = 7,
		.memory = "/dev/flightrec_mem",
		.clock = {salt, salt + 1},
		.period_ns = 50,
		.gap_ns = 123456789,
		.lost = {1, 2, 3}};
	for (unsigned e = 0; e < n_events; e++) {
		struct perf_event_attr attr = {.type = 1, .config = e, .size = sizeof(attr)};
		struct fr_event_desc *desc;
		char name[64];

		snprintf(name, sizeof(name), "event-%u-%.*s", e, (int)(e % 9), "abcdefgh");
		assert_int_equal(fr_session_add_event(&s->session, &attr, name, NULL, 0, &desc), 0);
		desc->until_ns = e * salt;
		for (unsigned i = 0; i < n_ids; i++)
			assert_int_equal(fr_event_desc_add_id(desc, 1000 * e + i + 1), 0);
	}
	assert_int_equal(fr_buf_append(&s->session.features[FR_FEATURE_TRACING_DATA], "tracing", 7), 0);
	assert_int_equal(fr_buf_append(&s->session.features[FR_FEATURE_OSRELEASE], "6.1.0", 6), 0);
	assert_int_equal(fr_buf_append(&s->config, "[Recorder]", 10), 0);
}

static void assert_same(const struct fr_state *a, const struct fr_state *b)
{
	struct fr_state x = *a, y = *b;

	assert_int_equal(a->session.n_events, b->session.n_events);
	for (size_t e = 0; e < a->session.n_events; e++) {
		const struct fr_event_desc *p = &a->session.events[e], *q = &b->session.events[e];

		assert_memory_equal(&p->attr, &q->attr, sizeof(p->attr));
		assert_string_equal(p->name, q->name);
		assert_int_equal(p->until_ns, q->until_ns);
		assert_int_equal(p->n_ids, q->n_ids);
		assert_memory_equal(p->ids, q->ids, p->n_ids * sizeof(*p->ids));
	}
	for (int f = 0; f < _FR_FEATURE_MAX; f++) {
		assert_int_equal(a->session.features[f].len, b->session.features[f].len);
		if (a->session.features[f].len)
			assert_memory_equal(a->session.features[f].data, b->session.features[f].data,
				a->session.features[f].len);
	}
	assert_int_equal(a->config.len, b->config.len);
	assert_memory_equal(a->config.data, b->config.data, a->config.len);
	x.session = y.session = (struct fr_session){0};
	x.config = y.config = (struct fr_buf){0};
	assert_memory_equal(&x, &y, sizeof(x));
}

/* In the last case, a service was restarted each minute of five days, and the ring still has records of all
   that time. */
TEST(round_trip)
{
	static const unsigned cases[][2] = {{1, 0}, {14, 39}, {27, 78}, {5 * 1440, 64}}; /* {events, ids} */

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		_cleanup_state_ struct fr_state s = {0}, again = {0};
		_cleanup_buf_ struct fr_buf b = {0};

		make(&s, cases[i][0], cases[i][1], i + 1);
		assert_int_equal(fr_state_encode(&s, &b), 0);
		assert_int_equal(fr_state_decode(b.data, b.len, &again), 0);
		assert_same(&s, &again);
	}
}

/* A state that is truncated anywhere is refused. A state with any bit changed is refused, or read without
 * harm. */
TEST(hostile)
{
	_cleanup_state_ struct fr_state s = {0};
	_cleanup_buf_ struct fr_buf b = {0};

	make(&s, 3, 2, 1);
	assert_int_equal(fr_state_encode(&s, &b), 0);
	for (size_t len = 0; len < b.len; len++) {
		_cleanup_free_ uint8_t *cut = malloc(len + 1);
		struct fr_state out = {.counters.next_job_id = 42};

		memcpy(cut, b.data, len);
		assert_int_equal(fr_state_decode(cut, len, &out), -EBADMSG);
		assert_int_equal(out.counters.next_job_id, 42);
	}
	for (size_t at = 0; at < b.len; at++)
		for (unsigned v = 1; v < 256; v <<= 1) {
			_cleanup_state_ struct fr_state out = {0};
			int r;

			b.data[at] ^= (uint8_t)v;
			r = fr_state_decode(b.data, b.len, &out);
			assert_true(r == 0 || r == -EBADMSG);
			b.data[at] ^= (uint8_t)v;
		}
}

TEST(file_keeps_the_newest)
{
	struct fr_state_file f, g;
	struct fr_diag d = {0};

	assert_int_equal(fr_state_file_new(&f, &d), 0);
	assert_int_equal(fr_state_file_adopt(f.fd, &g, &(struct fr_state){0}, &d), -EBADMSG);
	for (unsigned n = 1; n < 6; n++) {
		_cleanup_state_ struct fr_state s = {0}, out = {0};

		make(&s, n, n, n);
		assert_int_equal(fr_state_file_write(&f, &s), 0);
		assert_int_equal(fr_state_file_adopt(f.fd, &g, &out, &d), 0);
		assert_int_equal(g.generation, n);
		assert_same(&s, &out);
	}
	close(f.fd);
}

/* A kill interrupts a write at each byte in turn. Then the state from before this write is read. */
TEST(torn_write)
{
	_cleanup_state_ struct fr_state s = {0};
	uint8_t *map, *before;
	const size_t slot = 16 << 20, look = 4096;
	struct fr_state_file f, g;
	struct fr_diag d = {0};

	assert_int_equal(fr_state_file_new(&f, &d), 0);
	map = mmap(NULL, 2 * slot, PROT_READ | PROT_WRITE, MAP_SHARED, f.fd, 0);
	assert_ptr_not_equal(map, MAP_FAILED);
	make(&s, 2, 3, 1);
	for (s.restarts = 1; s.restarts <= 3; s.restarts++)
		assert_int_equal(fr_state_file_write(&f, &s), 0);
	before = malloc(look);
	memcpy(before, map, look); /* this slot has generation 2, and the other slot has generation 3 */
	s.restarts = 4;
	assert_int_equal(fr_state_file_write(&f, &s), 0);
	for (size_t at = 0; at < 700; at++) {
		_cleanup_state_ struct fr_state out = {0};

		/* The header is written last. So here it is old, and the bytes before AT are new. */
		memcpy(map, before, 32);
		memcpy(map + 32 + at, before + 32 + at, look - 32 - at);
		assert_int_equal(fr_state_file_adopt(f.fd, &g, &out, &d), 0);
		assert_int_equal(out.restarts, 3);
		f.generation = 3;
		assert_int_equal(fr_state_file_write(&f, &s), 0);
	}
	free(before);
	munmap(map, 2 * slot);
	close(f.fd);
}
