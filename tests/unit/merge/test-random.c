// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Merges of random inputs.
 *
 * Test of the union: each input has the records of a window of a random stream of records, in the order in
 * which kernel rings are drained. The windows overlap. The merged file must have all records of the windows,
 * each as often as the stream has it, in the order of time.
 *
 * Test of damage: in 1,000 sets of inputs, files are truncated, bits are flipped, bytes are overwritten by
 * zeros, and blocks are copied to other places. Each merge must end within ten seconds. Its output must be
 * undamaged, or there is no output and all inputs still exist. The test finds more mistakes in a build with
 * ASan. The environment variables FR_CORRUPT_RUNS and FR_CORRUPT_SEED set the number of sets and the first
 * seed.
 */

#include "base/cleanup.h"
#include "base/file.h"
#include "scene.h"

#include <fcntl.h>
#include <string.h>

#define N 4000
#define CPUS 4
#define ROUND 50 /* units of time between two drains of a kernel ring */

struct item {
	uint64_t time;
	unsigned cpu, tid;
	bool sample;
	unsigned windows; /* a bit is set for each file that has this record */
};

static void put_item(struct fr_buf *b, const struct item *i)
{
	if (i->sample)
		synth_sample(b, SCENE_ID + i->cpu % 2, i->time, i->tid, 0x1000 + i->tid);
	else
		synth_comm(b, SCENE_AUX_ID, i->time, i->tid, "task");
}

/* Makes a random stream. It has only a few times and threads, so many records have equal times or are
   equal. */
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

/* Writes the file of the window W. Each round has the records of one kernel ring after the other. Records of
   a ring can be late by up to one round. */
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

/* Sorts pointers to the records of B by the bytes of the records. Returns the number of records. */
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

/* Checks that each record of B is newer than the previous record by at least STEP. */
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

FIXTURE(scene_setup, scene_teardown)

TEST(merge_is_the_union_of_overlapping_windows)
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

/* The input is larger than the part of a file that the merge reads at a time. The records of the second
   kernel ring are late by one round. */
TEST(order_holds_across_batches)
{
	const uint64_t n_rounds = 300, n_records = 500;
	_cleanup_buf_ struct fr_buf a = {0}, out = {0};
	uint64_t rounds = 0;
	struct scene *s = *state;

	synth_round(&a);
	for (uint64_t r = 0; r <= n_rounds; r++) {
		for (uint64_t i = 0; i < n_records && r < n_rounds; i++)
			synth_sample(&a, SCENE_ID, 1 + 2 * (r * n_records + i), 7, 0x1000);
		for (uint64_t i = 0; i < n_records && r > 0; i++)
			synth_sample(&a, SCENE_ID, 2 + 2 * ((r - 1) * n_records + i), 7, 0x1000);
		synth_round(&a);
	}
	synth_write_file(scene_path(s, "perf.data.sample.a"), &s->session, &a, 0, 0);
	assert_int_equal(scene_merge(s), 0);
	scene_read(s, "perf.data", &out, &rounds);
	assert_int_equal(s->report.records, 2 * n_rounds * n_records);
	assert_int_equal(rounds, out.len / (4 << 20));
	expect_order(&out, 1);
}

static struct fr_buf good[4]; /* the content of the undamaged inputs */
static const char *const names[] = {
	"perf.data.auxiliary", "perf.data.sample.a", "perf.data.sample.b", "perf.data.sample.c"};

/* Appends the records at the start of a file with AUX data, and pieces of the AUX area of a CPU from offset
   FROM on. */
static void put_aux(struct fr_buf *b, uint64_t from)
{
	static uint8_t area[2000];
	const struct fr_id_index_entry entries[] = {{SCENE_ID, 0, 0, -1}, {SCENE_ID + 1, 1, 1, -1}};
	const struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE};
	const struct fr_auxtrace_setup setup = {0};

	for (size_t i = 0; i < sizeof(area); i++)
		area[i] = (uint8_t)(i * 2654435761u >> 11);
	assert_int_equal(fr_id_index(b, entries, FR_ARRAY_SIZE(entries)), 0);
	assert_int_equal(fr_auxtrace_info(b, &attr, "intel_bts", &setup), 0);
	for (uint64_t at = from; at < sizeof(area); at += 500)
		synth_aux(b, &(struct fr_auxtrace){.tid = -1,
				     .offset = at,
				     .data = area + at,
				     .len = FR_MIN(500u, sizeof(area) - at)});
}

static void make_inputs(struct scene *s)
{
	_cleanup_buf_ struct fr_buf aux = {0}, b = {0}, with_aux = {0};
	size_t plain;

	synth_comm(&aux, SCENE_AUX_ID, 0, 1, "init");
	synth_comm(&aux, SCENE_AUX_ID, 1, 1, "init");
	synth_comm(&b, SCENE_AUX_ID, 5, 1, "init");
	synth_round(&b);
	for (uint64_t i = 10; i < 400; i++) {
		synth_sample(&b, SCENE_ID + i % 2, i, 40 + (uint32_t)(i % 3), 0x400000 + i * 7919);
		if (i % 20)
			continue;
		synth_comm(&b, SCENE_AUX_ID, i, 40, "worker");
		synth_comm(&aux, SCENE_AUX_ID, i, 40, "worker");
		synth_round(&b);
	}
	synth_write_pipe(scene_path(s, names[0]), &s->session, &aux);
	put_aux(&with_aux, 0);
	assert_int_equal(fr_buf_append(&with_aux, b.data, b.len), 0);
	synth_write_file(scene_path(s, names[1]), &s->session, &with_aux, 0, 0);
	with_aux.len = 0;
	put_aux(&with_aux, 304);
	plain = with_aux.len + 72;
	assert_int_equal(fr_buf_append(&with_aux, b.data, b.len), 0);
	synth_write_file(scene_path(s, names[2]), &s->session, &with_aux, plain, 3000);
	synth_write_file(scene_path(s, names[3]), &s->session, &b, 72, 100000);
	for (size_t i = 0; i < FR_ARRAY_SIZE(names); i++)
		assert_int_equal(fr_read_file(AT_FDCWD, scene_path(s, names[i]), 1 << 20, &good[i]), 0);
}

static void corrupt(struct fr_buf *b)
{
	unsigned at = scene_random(b->len), n = scene_random(FR_MIN(b->len - at, (size_t)64)) + 1;

	switch (scene_random(6)) {
	case 0:
		b->len = at;
		break;
	case 1: /* flip a bit of the head, which has offsets and counts */
		b->data[scene_random(FR_MIN(b->len, (size_t)512))] ^= (uint8_t)(1u << scene_random(8));
		break;
	case 2:
		memset(b->data + at, scene_random(2) ? 0xff : 0, FR_MIN((size_t)n, b->len - at));
		break;
	case 3:
		memmove(b->data + at, b->data + scene_random(b->len - n + 1), FR_MIN((size_t)n, b->len - at));
		break;
	default:
		for (unsigned i = 0; i < n; i++)
			b->data[scene_random(b->len)] ^= (uint8_t)(1u << scene_random(8));
	}
}

static void run_once(struct scene *s)
{
	unsigned victims = 0;
	int r;

	for (size_t i = 0; i < FR_ARRAY_SIZE(names); i++) {
		_cleanup_buf_ struct fr_buf b = {0};

		assert_int_equal(fr_buf_append(&b, good[i].data, good[i].len), 0);
		if (scene_random(2) || (i == FR_ARRAY_SIZE(names) - 1 && !victims)) {
			victims++;
			for (unsigned k = scene_random(3); k <= 2 && b.len > 1; k++)
				corrupt(&b);
		}
		synth_write(scene_path(s, names[i]), b.data, b.len);
	}
	s->options.compress = scene_random(4) == 0;
	alarm(10); /* ends the test program if the merge hangs */
	r = scene_merge(s);
	alarm(0);
	if (r < 0) {
		assert_int_not_equal(s->diag.what[0], '\0');
		for (size_t i = 0; i < FR_ARRAY_SIZE(names); i++)
			assert_true(scene_has(s, names[i]));
		assert_false(scene_has(s, "perf.data"));
		return;
	}
	_cleanup_buf_ struct fr_buf out = {0};
	scene_read(s, "perf.data", &out, NULL);
	assert_int_equal(r, s->report.n_damaged || s->report.n_unusable);
	/* A different AUXTRACE_INFO and a clock of another boot are not damage. */
	if (r || !(strstr(s->warned, "AUXTRACE_INFO") || strstr(s->warned, "of another boot")))
		assert_int_equal(s->warned[0] != '\0', r);
	assert_int_equal(unlink(scene_path(s, "perf.data")), 0);
}

TEST(corrupted_inputs_are_salvaged_or_refused)
{
	const char *runs = getenv("FR_CORRUPT_RUNS"), *first = getenv("FR_CORRUPT_SEED");
	unsigned n = runs ? (unsigned)atoi(runs) : 1000;
	unsigned verdicts[3] = {0};
	struct scene *s = *state;

	make_inputs(s);
	for (unsigned i = 0; i < n; i++) {
		scene_seed = (first ? strtoull(first, NULL, 10) : 1) + i;
		run_once(s);
		verdicts[s->diag.code ? 2 : s->report.n_damaged || s->report.n_unusable]++;
	}
	print_message("%u corrupted: %u merged whole, %u salvaged, %u refused\n", n, verdicts[0], verdicts[1],
		verdicts[2]);
	assert_true(verdicts[1] > n / 2);
	for (size_t i = 0; i < FR_ARRAY_SIZE(names); i++)
		fr_buf_deinit(&good[i]);
}
