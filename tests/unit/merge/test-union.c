// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * A random stream of records, of which files have overlapping windows in the order in which kernel rings are
 * drained. The merge has the union of the windows, each record as often as the stream, in the order of time.
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
	unsigned windows; /* a bit for each file that has it */
};

static void put_item(struct fr_buf *b, const struct item *i)
{
	if (i->sample)
		synth_sample(b, SCENE_ID + i->cpu % 2, i->time, i->tid, 0x1000 + i->tid);
	else
		synth_comm(b, SCENE_AUX_ID, i->time, i->tid, "task");
}

/* Few distinct times and threads give many equal times, and many records with the same bytes. */
static void make_stream(struct item *v)
{
	uint64_t t = 1000;

	for (int i = 0; i < N; i++) {
		t += scene_random(4);
		v[i] = (struct item){.time = t,
			.cpu = scene_random(CPUS),
			.tid = 1 + scene_random(3),
			.sample = scene_random(8)};
	}
}

/* Writes the records of a window: ring after ring in each round, and each ring late by up to one round. */
static void write_window(struct scene *s, struct item *v, unsigned w, uint64_t from, uint64_t to)
{
	_cleanup_buf_ struct fr_buf b = {0};
	bool done[N] = {0};
	char name[64];

	synth_round(&b);
	for (uint64_t until = from + ROUND; until <= to + 3 * ROUND; until += ROUND) {
		for (unsigned cpu = 0; cpu < CPUS; cpu++) {
			uint64_t seen = until - scene_random(ROUND);

			for (int i = 0; i < N; i++) {
				if (done[i] || v[i].cpu != cpu || v[i].time < from || v[i].time > to ||
					v[i].time > seen)
					continue;
				done[i] = true;
				v[i].windows |= 1u << w;
				put_item(&b, &v[i]);
			}
		}
		synth_round(&b);
	}
	snprintf(name, sizeof(name), "perf.data.sample.2026010%uT000000.000000Z", w);
	synth_write_file(scene_path(s, name), &s->session, &b, 8, w % 2 ? 4000 : 0);
}

static int compare_bytes(const void *a, const void *b)
{
	const struct perf_event_header *const *x = a, *const *y = b;
	size_t n = FR_MIN((*x)->size, (*y)->size);
	int c = memcmp(*x, *y, n);

	return c ? c : (*x)->size - (*y)->size;
}

/* Sorts the records of B by their bytes. Returns how many. */
static size_t sort_records(const struct fr_buf *b, const struct perf_event_header **ret)
{
	size_t n = 0;

	for (size_t at = 0; at < b->len; n++) {
		ret[n] = (const void *)(b->data + at);
		at += ret[n]->size;
	}
	qsort(ret, n, sizeof(void *), compare_bytes);
	return n;
}

/* The times of the records of B grow by at least STEP each. */
static void expect_order(const struct fr_buf *b, uint64_t step)
{
	uint64_t last = 0;

	for (size_t at = 0; at < b->len;) {
		const struct perf_event_header *h = (const void *)(b->data + at);

		assert_true(fr_record_time(h) >= last + step);
		last = fr_record_time(h);
		at += h->size;
	}
}

static void expect_union(struct scene *s, const struct item *v)
{
	static const struct perf_event_header *want[N + 1], *got[2 * N];
	_cleanup_buf_ struct fr_buf expected = {0}, out = {0};
	size_t n;

	for (int i = 0; i < N; i++)
		if (v[i].windows)
			put_item(&expected, &v[i]);
	scene_read(s, "perf.data", &out, NULL);
	expect_order(&out, 0);
	n = sort_records(&expected, want);
	assert_int_equal(sort_records(&out, got), n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(compare_bytes(&want[i], &got[i]), 0);
	assert_int_equal(s->report.records, n);
	assert_int_equal(s->report.late, 0);
}

static void test_merge_is_the_union_of_overlapping_windows(void **state)
{
	static struct item v[N];
	struct scene *s = *state;

	for (int run = 0; run < 12; run++) {
		uint64_t end;

		scene_seed = (unsigned long long)run + 1;
		scene_clear(s);
		make_stream(v);
		end = v[N - 1].time;
		for (unsigned w = 0; w < 5; w++) {
			uint64_t from = 1000 + scene_random(end - 1000);

			write_window(s, v, w, from, from + scene_random(end - 1000));
		}
		s->options.compress = run % 2;
		assert_int_equal(scene_merge(s), 0);
		expect_union(s, v);
		assert_true(s->report.duplicates > 0);
		assert_int_equal(s->report.n_removed, 5);
		assert_int_equal(scene_entries(s), 1);
	}
}

/* The input is larger than a batch of the cursor. */
static void test_order_holds_across_batches(void **state)
{
	_cleanup_buf_ struct fr_buf a = {0}, out = {0};
	uint64_t rounds = 0, n = 300000;
	struct scene *s = *state;

	synth_round(&a);
	for (uint64_t i = 0; i < n; i++) {
		/* Two rings: the records of the second come after those of the first in each round. */
		uint64_t in = i % 1000, t = i - in + (in < 500 ? in * 2 : (in - 500) * 2 + 1);

		synth_sample(&a, SCENE_ID, 1 + t, 7, 0x1000);
		if (in == 999)
			synth_round(&a);
	}
	synth_write_file(scene_path(s, "perf.data.sample.a"), &s->session, &a, 0, 0);
	assert_int_equal(scene_merge(s), 0);
	scene_read(s, "perf.data", &out, &rounds);
	assert_int_equal(s->report.records, n);
	assert_int_equal(rounds, n * 48 / (4 << 20));
	expect_order(&out, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			test_merge_is_the_union_of_overlapping_windows, scene_setup, scene_teardown),
		cmocka_unit_test_setup_teardown(test_order_holds_across_batches, scene_setup, scene_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
