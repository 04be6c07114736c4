// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Merges of 1,000 corrupted sets of inputs: truncated, bits flipped, runs of zeros, blocks copied over
 * others. Each merge ends within ten seconds. Its output is whole, or there is none and all inputs are there.
 * Most useful with ASan. FR_CORRUPT_RUNS and FR_CORRUPT_SEED set the number of runs and the first seed.
 */

#include "base/cleanup.h"
#include "base/file.h"
#include "scene.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

static struct fr_buf good[4]; /* the inputs, as bytes */
static const char *const names[] = {
	"perf.data.auxiliary", "perf.data.sample.a", "perf.data.sample.b", "perf.data.sample.c"};

static void report_hang(int sig)
{
	static const char text[] = "the merge hangs\n";

	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	abort();
}

static void make_inputs(struct scene *s)
{
	_cleanup_buf_ struct fr_buf aux = {0}, b = {0};

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
	synth_write_file(scene_path(s, names[1]), &s->session, &b, 0, 0);
	synth_write_file(scene_path(s, names[2]), &s->session, &b, 72, 3000);
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
	case 1: /* in the head, which has the offsets and counts */
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
	alarm(10);
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
	assert_int_equal(s->warned[0] != '\0', r);
	assert_int_equal(unlink(scene_path(s, "perf.data")), 0);
}

static void test_corrupted_inputs_are_salvaged_or_refused(void **state)
{
	const char *runs = getenv("FR_CORRUPT_RUNS"), *first = getenv("FR_CORRUPT_SEED");
	unsigned n = runs ? (unsigned)atoi(runs) : 1000;
	unsigned verdicts[3] = {0};
	struct scene *s = *state;

	signal(SIGALRM, report_hang);
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

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(
		test_corrupted_inputs_are_salvaged_or_refused, scene_setup, scene_teardown)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
