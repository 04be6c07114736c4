// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * 1,000 corrupted inputs to the merge: cut, bits flipped, runs of zeros, blocks copied over others. Each gets
 * a verdict within ten seconds, an output that was made is whole, and a damaged input is still there. Meant
 * to run under ASan. FR_CORRUPT_RUNS and FR_CORRUPT_SEED change how many and which.
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

static unsigned long long seed;
static struct fr_buf good[4]; /* the inputs, as bytes */
static const char *const names[] = {
	"perf.data.auxiliary", "perf.data.sample.a", "perf.data.sample.b", "perf.data.sample.c"};

static unsigned rnd(size_t below)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned)((seed >> 33) % below);
}

static void hung(int sig)
{
	static const char text[] = "the merge hangs\n";

	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	abort();
}

static void make_good(struct scene *s)
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
	unsigned at = rnd(b->len), n = rnd(FR_MIN(b->len - at, (size_t)64)) + 1;

	switch (rnd(6)) {
	case 0:
		b->len = at;
		break;
	case 1: /* the head, where all offsets and counts are */
		b->data[rnd(FR_MIN(b->len, (size_t)512))] ^= (uint8_t)(1u << rnd(8));
		break;
	case 2:
		memset(b->data + at, rnd(2) ? 0xff : 0, FR_MIN((size_t)n, b->len - at));
		break;
	case 3:
		memmove(b->data + at, b->data + rnd(b->len - n + 1), FR_MIN((size_t)n, b->len - at));
		break;
	default:
		for (unsigned i = 0; i < n; i++)
			b->data[rnd(b->len)] ^= (uint8_t)(1u << rnd(8));
	}
}

static void one_run(struct scene *s)
{
	unsigned victims = 0;
	int r;

	for (size_t i = 0; i < FR_ARRAY_SIZE(names); i++) {
		_cleanup_buf_ struct fr_buf b = {0};

		assert_int_equal(fr_buf_append(&b, good[i].data, good[i].len), 0);
		if (rnd(2) || (i == FR_ARRAY_SIZE(names) - 1 && !victims)) {
			victims++;
			for (unsigned k = rnd(3); k <= 2 && b.len > 1; k++)
				corrupt(&b);
		}
		synth_write(scene_path(s, names[i]), b.data, b.len);
	}
	s->options.compress = rnd(4) == 0;
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

static void test_corrupt(void **state)
{
	const char *runs = getenv("FR_CORRUPT_RUNS"), *first = getenv("FR_CORRUPT_SEED");
	unsigned n = runs ? (unsigned)atoi(runs) : 1000;
	unsigned verdicts[3] = {0};
	struct scene s;

	signal(SIGALRM, hung);
	scene_init(&s);
	make_good(&s);
	for (unsigned i = 0; i < n; i++) {
		seed = (first ? strtoull(first, NULL, 10) : 1) + i;
		one_run(&s);
		verdicts[s.diag.code ? 2 : s.report.n_damaged || s.report.n_unusable]++;
	}
	print_message("%u corrupted: %u merged whole, %u salvaged, %u refused\n", n, verdicts[0], verdicts[1],
		verdicts[2]);
	assert_true(verdicts[1] > n / 2);
	for (size_t i = 0; i < FR_ARRAY_SIZE(names); i++)
		fr_buf_deinit(&good[i]);
	scene_deinit(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_corrupt)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
