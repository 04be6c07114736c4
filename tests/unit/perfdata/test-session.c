// SPDX-License-Identifier: GPL-2.0-or-later
#include "perfdata/session.h"
#include "base/cleanup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void add(struct fr_session *s, const char *name, uint64_t id, uint64_t until_ns)
{
	const struct perf_event_attr attr = {.config = id};
	struct fr_event_desc *e;

	assert_int_equal(fr_session_add_event(s, &attr, name, &id, 1, &e), 0);
	e->until_ns = until_ns;
}

static void expect_names(const struct fr_session *s, const char *names)
{
	char all[64] = "";

	for (size_t i = 0; i < s->n_events; i++)
		strcat(strcat(all, s->events[i].name), " ");
	assert_string_equal(all, names);
}

static void test_closed_event_is_dropped_after_its_last_record(void **state)
{
	_cleanup_session_ struct fr_session s = {0}, copy = {0};

	assert_int_equal(fr_buf_append(&s.features[FR_FEATURE_ARCH], "text", 5), 0);
	add(&s, "old", 1, 1000);
	add(&s, "closing", 2, UINT64_MAX);
	add(&s, "now", 3, 0);
	assert_int_equal(fr_session_copy(&s, &copy), 0);
	assert_memory_equal(copy.features[FR_FEATURE_ARCH].data, "text", 5);
	fr_session_drop_closed_events(&copy, 999);
	expect_names(&copy, "old closing now ");
	fr_session_drop_closed_events(&copy, 1000);
	expect_names(&copy, "closing now ");
	fr_session_drop_closed_events(&copy, UINT64_MAX - 1);
	expect_names(&copy, "closing now ");
	fr_session_close_events(&copy, 5000);
	fr_session_drop_closed_events(&copy, 4999);
	expect_names(&copy, "closing now ");
	fr_session_drop_closed_events(&copy, 5000);
	expect_names(&copy, "now ");
	assert_int_equal(copy.events[0].ids[0], 3);
	expect_names(&s, "old closing now ");
}

#define EVENTS 3 /* and the side-band event */
#define CPUS 4
#define LAP 20 /* the ring has records of so many openings */

/* The session of a capture: new ids at each opening, and another frequency at every other. */
static void describe_anew(struct fr_session *s, uint64_t opening)
{
	const char *const names[EVENTS + 1] = {"cycles", "sched", "faults", "dummy"};
	uint64_t ids[CPUS];

	for (unsigned e = 0; e <= EVENTS; e++) {
		struct perf_event_attr attr = {.config = e};

		if (e == 0)
			attr.sample_freq = 100 + opening / 2;
		for (unsigned cpu = 0; cpu < CPUS; cpu++)
			ids[cpu] = 1 + (opening * (EVENTS + 1) + e) * CPUS + cpu;
		assert_int_equal(fr_session_add_event(s, &attr, names[e], ids, CPUS, NULL), 0);
	}
}

static size_t count_ids(const struct fr_session *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_events; i++)
		n += s->events[i].n_ids;
	return n;
}

/* The head of a dump after OPENING has all ids of a lap, each once, the newest first. */
static void expect_head(const struct fr_session *s, uint64_t opening, uint64_t low_watermark_ns)
{
	const uint64_t first = opening < LAP ? 0 : opening - LAP;
	_cleanup_session_ struct fr_session head = {0};
	const struct fr_event_desc *sideband;

	assert_int_equal(fr_session_copy(s, &head), 0);
	fr_session_drop_closed_events(&head, low_watermark_ns);
	assert_int_equal(fr_session_join_equal_events(&head), 0);
	sideband = &head.events[head.n_events - 1];
	assert_string_equal(sideband->name, "dummy");
	assert_int_equal(sideband->n_ids, (opening - first + 1) * CPUS);
	assert_int_equal(sideband->ids[0], 1 + (opening * (EVENTS + 1) + EVENTS) * CPUS);
	for (size_t i = 1; i < sideband->n_ids; i++)
		assert_true(i % CPUS || sideband->ids[i] < sideband->ids[i - 1]);
	assert_int_equal(count_ids(&head), (opening - first + 1) * CPUS * (EVENTS + 1));
	assert_int_equal(head.n_events, EVENTS + opening / 2 - first / 2 + 1);
}

static void test_ids_leave_with_the_last_frame_that_can_use_them(void **state)
{
	_cleanup_session_ struct fr_session s = {0};
	const uint64_t second = 1000000000;

	describe_anew(&s, 0);
	for (uint64_t i = 1; i <= 10000; i++) {
		const uint64_t low_watermark_ns = i > LAP ? (i - LAP) * second : 0;
		struct fr_session next = {0};

		describe_anew(&next, i);
		fr_session_drop_closed_events(&s, low_watermark_ns);
		assert_int_equal(fr_session_add_older_events(&next, &s), 0);
		fr_session_close_events(&next, i * second);
		fr_session_deinit(&s);
		s = next;
		assert_true(s.n_events <= (LAP + 1) * (EVENTS + 1));
		if (i % 1000 == 0 || i < 3 * LAP)
			expect_head(&s, i, low_watermark_ns);
	}
}

static void test_sessions_of_one_recording_share_an_id(void **state)
{
	_cleanup_session_ struct fr_session a = {0}, b = {0};

	describe_anew(&a, 1);
	describe_anew(&b, 2);
	assert_false(fr_session_shares_id(&a, &b));
	assert_int_equal(fr_session_add_older_events(&b, &a), 0);
	assert_true(fr_session_shares_id(&a, &b));
	assert_true(fr_session_shares_id(&b, &a));
}

static void test_sideband_has_stacks_if_another_event_has(void **state)
{
	const struct perf_event_attr sideband = {
		.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY, .sample_type = PERF_SAMPLE_TIME};
	struct perf_event_attr sampled = {.type = PERF_TYPE_TRACEPOINT, .sample_type = PERF_SAMPLE_TIME};
	_cleanup_session_ struct fr_session s = {0};

	assert_int_equal(fr_session_add_event(&s, &sampled, "plain", NULL, 0, NULL), 0);
	assert_int_equal(fr_session_add_event(&s, &sideband, "dummy", NULL, 0, NULL), 0);
	fr_session_set_sideband_stacks(&s);
	assert_int_equal(s.events[1].attr.sample_type, PERF_SAMPLE_TIME);
	sampled.sample_type |= PERF_SAMPLE_CALLCHAIN;
	assert_int_equal(fr_session_add_event(&s, &sampled, "stacks", NULL, 0, NULL), 0);
	fr_session_set_sideband_stacks(&s);
	assert_int_equal(s.events[0].attr.sample_type, PERF_SAMPLE_TIME);
	assert_int_equal(s.events[1].attr.sample_type, PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_closed_event_is_dropped_after_its_last_record),
		cmocka_unit_test(test_ids_leave_with_the_last_frame_that_can_use_them),
		cmocka_unit_test(test_sessions_of_one_recording_share_an_id),
		cmocka_unit_test(test_sideband_has_stacks_if_another_event_has),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
