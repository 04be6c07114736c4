// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * A random stream of records, cut into overlapping windows and put into drain order as rings give it: the
 * merge of the windows is the union of them, each record as often as in the stream, in the order of time.
 */

#include "base/cleanup.h"
#include "scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#define N 4000
#define CPUS 4
#define ROUND 50 /* units of time between drains */

struct item {
	uint64_t time;
	unsigned cpu, tid;
	bool sample;
	unsigned windows; /* bit set: stands in that file */
};

static unsigned long long seed;

static unsigned rnd(unsigned below)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned)(seed >> 33) % below;
}

static void put(struct fr_buf *b, const struct item *i)
{
	if (i->sample)
		synth_sample(b, SCENE_ID + i->cpu % 2, i->time, i->tid, 0x1000 + i->tid);
	else
		synth_comm(b, SCENE_AUX_ID, i->time, i->tid, "task");
}

/* Few distinct times and threads: many equal times, and many records that are the same to the byte. */
static void make_stream(struct item *v)
{
	uint64_t t = 1000;

	for (int i = 0; i < N; i++) {
		t += rnd(4);
		v[i] = (struct item){.time = t, .cpu = rnd(CPUS), .tid = 1 + rnd(3), .sample = rnd(8)};
	}
}

/* The records of a window in drain order: ring after ring in each round, a ring lagging by up to one round.
 */
static void write_window(struct scene *s, struct item *v, unsigned w, uint64_t from, uint64_t to)
{
	_cleanup_buf_ struct fr_buf b = {0};
	bool done[N] = {0};
	char name[64];

	synth_round(&b);
	for (uint64_t until = from + ROUND; until <= to + 3 * ROUND; until += ROUND) {
		for (unsigned cpu = 0; cpu < CPUS; cpu++) {
			uint64_t seen = until - rnd(ROUND);

			for (int i = 0; i < N; i++) {
				if (done[i] || v[i].cpu != cpu || v[i].time < from || v[i].time > to ||
					v[i].time > seen)
					continue;
				done[i] = true;
				v[i].windows |= 1u << w;
				put(&b, &v[i]);
			}
		}
		synth_round(&b);
	}
	snprintf(name, sizeof(name), "perf.data.sample.2026010%uT000000.000000Z", w);
	synth_write_file(scene_path(s, name), &s->session, &b, 8, w % 2 ? 4000 : 0);
}

static int by_bytes(const void *a, const void *b)
{
	const struct perf_event_header *const *x = a, *const *y = b;
	size_t n = FR_MIN((*x)->size, (*y)->size);
	int c = memcmp(*x, *y, n);

	return c ? c : (*x)->size - (*y)->size;
}

/* Records of B in an order of their own, to compare multisets. */
static size_t sorted(const struct fr_buf *b, const struct perf_event_header **ret)
{
	size_t n = 0;

	for (size_t at = 0; at < b->len; n++) {
		ret[n] = (const void *)(b->data + at);
		at += ret[n]->size;
	}
	qsort(ret, n, sizeof(*ret), by_bytes);
	return n;
}

static void check_union(struct scene *s, const struct item *v)
{
	static const struct perf_event_header *want[N + 1], *got[2 * N];
	_cleanup_buf_ struct fr_buf expected = {0}, out = {0};
	uint64_t last = 0;
	size_t n;

	for (int i = 0; i < N; i++)
		if (v[i].windows)
			put(&expected, &v[i]);
	scene_read(s, "perf.data", &out, NULL);
	for (size_t at = 0; at < out.len;) {
		const struct perf_event_header *h = (const void *)(out.data + at);

		assert_true(fr_record_time(h) >= last);
		last = fr_record_time(h);
		at += h->size;
	}
	n = sorted(&expected, want);
	assert_int_equal(sorted(&out, got), n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(by_bytes(&want[i], &got[i]), 0);
	assert_int_equal(s->report.records, n);
	assert_int_equal(s->report.late, 0);
}

static void test_union(void **state)
{
	for (int run = 0; run < 12; run++) {
		static struct item v[N];
		struct scene s;
		uint64_t end;

		seed = (unsigned long long)run + 1;
		scene_init(&s);
		make_stream(v);
		end = v[N - 1].time;
		for (unsigned w = 0; w < 5; w++) {
			uint64_t from = 1000 + rnd((unsigned)(end - 1000));

			write_window(&s, v, w, from, from + rnd((unsigned)(end - 1000)));
		}
		s.options.compress = run % 2;
		assert_int_equal(scene_merge(&s), 0);
		check_union(&s, v);
		assert_true(s.report.duplicates > 0);
		assert_int_equal(s.report.n_removed, 5);
		assert_int_equal(scene_entries(&s), 1);
		scene_deinit(&s);
	}
}

/* More than a batch of records: rounds in the output, and the order holds across batches. */
static void test_large(void **state)
{
	_cleanup_buf_ struct fr_buf a = {0}, out = {0};
	uint64_t rounds = 0, last = 0, n = 300000;
	struct scene s;

	scene_init(&s);
	synth_round(&a);
	for (uint64_t i = 0; i < n; i++) {
		/* Two rings: the second one's records come after the first one's of the same round. */
		uint64_t in = i % 1000, t = i - in + (in < 500 ? in * 2 : (in - 500) * 2 + 1);

		synth_sample(&a, SCENE_ID, 1 + t, 7, 0x1000);
		if (in == 999)
			synth_round(&a);
	}
	synth_write_file(scene_path(&s, "perf.data.sample.a"), &s.session, &a, 0, 0);
	assert_int_equal(scene_merge(&s), 0);
	scene_read(&s, "perf.data", &out, &rounds);
	assert_int_equal(s.report.records, n);
	assert_int_equal(rounds, n * 48 / (4 << 20));
	for (size_t at = 0; at < out.len; last++) {
		const struct perf_event_header *h = (const void *)(out.data + at);

		assert_int_equal(fr_record_time(h), last + 1);
		at += h->size;
	}
	assert_int_equal(last, n);
	scene_deinit(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_union),
		cmocka_unit_test(test_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
