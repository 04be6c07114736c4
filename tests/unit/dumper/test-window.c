// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of the window of a dump: what a request asks for, and until when the dump waits. */
#include "../unit.h"
#include "base/cleanup.h"
#include "dumper/window.h"

#include <errno.h>
#include <string.h>

#define S 1000000000ULL
#define NOW (1000 * S)	 /* of the call */
#define OLDEST (400 * S) /* the oldest sample of the ring */

static const struct fr_dump_asked unset = {.last_ns = 30 * S, .post_ns = 5 * S};

TEST(an_exact_window_is_taken_as_it_is)
{
	static const struct {
		uint64_t from_ns, to_ns; /* asked for */
		uint64_t until_ns, ready_ns;
	} cases[] = {
		{500 * S, 600 * S, 600 * S, 0},
		{500 * S + 1, 500 * S + 1, 500 * S + 1, 0},
		{0, 600 * S, 600 * S, 0},
		{0, OLDEST, OLDEST, 0},
		{1, 0, NOW, 0},
		{0, 0, NOW, 0},
		{500 * S, NOW, NOW, 0},
		/* The dump waits for the end of the window. */
		{500 * S, NOW + 1, NOW + 1, NOW + 1},
		{NOW + 2 * S, NOW + 3 * S, NOW + 3 * S, NOW + 3 * S},
		{0, NOW + 3600 * S, NOW + 3600 * S, NOW + 3600 * S},
	};

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		const struct fr_window_bounds b = {
			.has_exact = true, .from_ns = cases[i].from_ns, .to_ns = cases[i].to_ns};
		struct fr_dump_job job = {.trigger_ns = NOW, .asked = unset};

		assert_int_equal(fr_window_from_bounds(&b, NOW, OLDEST, &job.asked, NULL), 0);
		assert_true(job.asked.exact);
		fr_dump_job_set_window(&job);
		assert_int_equal(job.from_ns, cases[i].from_ns);
		assert_int_equal(job.to_ns, cases[i].until_ns);
		assert_int_equal(job.ready_ns, cases[i].ready_ns);
	}
}

TEST(an_impossible_window_is_refused)
{
	static const struct {
		struct fr_window_bounds bounds;
		int code;
		const char *what;
	} cases[] = {
		{{.has_exact = true, .to_ns = NOW + 3600 * S + 1}, -EINVAL, "more than an hour"},
		{{.has_exact = true, .to_ns = UINT64_MAX}, -EINVAL, "more than an hour"},
		{{.has_exact = true, .from_ns = 2, .to_ns = 1}, -EINVAL, "before it begins"},
		{{.has_exact = true, .from_ns = NOW + 1}, -EINVAL, "before it begins"},
		{{.has_exact = true, .to_ns = OLDEST - 1}, -ENODATA, "no longer holds"},
		{{.has_exact = true, .has_last = true}, -EINVAL, "excludes"},
		{{.has_exact = true, .has_post = true}, -EINVAL, "excludes"},
		{{.has_exact = true, .has_from = true}, -EINVAL, "excludes"},
		{{.has_exact = true, .has_to = true}, -EINVAL, "excludes"},
		{{.has_last = true, .has_from = true}, -EINVAL, "exclude each other"},
		{{.has_post = true, .has_to = true}, -EINVAL, "exclude each other"},
	};

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		struct fr_dump_asked asked = unset;
		struct fr_diag d = {0};

		assert_int_equal(
			fr_window_from_bounds(&cases[i].bounds, NOW, OLDEST, &asked, &d), cases[i].code);
		if (!strstr(d.what, cases[i].what) || !d.hint[0])
			fail_msg("case %zu: %s (%s)", i, d.what, d.hint);
		assert_memory_equal(&asked, &unset, sizeof(asked));
	}
}

TEST(a_window_around_the_trigger)
{
	struct fr_dump_job job = {.trigger_ns = NOW, .asked = unset};

	fr_dump_job_set_window(&job);
	assert_int_equal(job.from_ns, NOW - 30 * S);
	assert_int_equal(job.to_ns, NOW + 5 * S);
	assert_int_equal(job.ready_ns, NOW + 5 * S);
	job = (struct fr_dump_job){.trigger_ns = NOW, .automatic = true};
	fr_dump_job_set_window(&job);
	assert_int_equal(job.from_ns, 0);
	assert_int_equal(job.to_ns, NOW);
	assert_int_equal(job.ready_ns, NOW + FR_DUMPER_TOGETHER_NS);
}
