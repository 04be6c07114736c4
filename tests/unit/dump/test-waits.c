// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of the waits that have not ended: which are in a dump, how long they are, and where their samples
 * are. */
#include "../unit.h"
#include "base/cleanup.h"
#include "bpf/sleep.h"
#include "dump/trigger_sample.h"
#include "dump/waits.h"
#include "perfdata/sample.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define READ_NS 1000000ULL /* the time of the read */
#define CHAIN 2

/* A sample as the iterator of src/bpf/sleep.bpf.c writes it. */
struct sample {
	struct fr_sample head;
	uint32_t cpu, reserved;
	uint64_t period, n_chain, chain[CHAIN];
	struct fr_sleep_raw raw;
};

struct waits {
	struct fr_session session;
	struct fr_buf from;
	struct fr_waits found;
};

static int setup(void **state)
{
	const struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.config = FR_SLEEP_TRACEPOINT,
		.sample_max_stack = 127,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN |
			       PERF_SAMPLE_RAW};
	struct waits *f = calloc(1, sizeof(*f));
	const uint64_t id = 7;

	*state = f;
	return f ? fr_session_add_event(&f->session, &attr, "flightrec:offcpu", &id, 1, NULL) : -1;
}

static int teardown(void **state)
{
	struct waits *f = *state;

	fr_waits_deinit(&f->found);
	fr_session_deinit(&f->session);
	fr_buf_deinit(&f->from);
	free(f);
	return 0;
}

FIXTURE(setup, teardown)

/* Adds a wait that began at BEGIN_NS and was read at AT_NS, in which the task was woken after BLOCKED_NS. */
static void add(struct waits *f, uint32_t tid, uint64_t begin_ns, uint64_t at_ns, uint64_t blocked_ns)
{
	struct sample s = {
		.head = {.header = {PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL, sizeof(s)},
			.id = 7,
			.ip = 0xffffffff81000000,
			.pid = tid,
			.tid = tid,
			.time = at_ns},
		.period = at_ns - begin_ns,
		.n_chain = CHAIN,
		.chain = {(uint64_t)PERF_CONTEXT_KERNEL, 0xffffffff81000000},
		.raw = {.size = sizeof(s.raw) - 4,
			.common_type = FR_SLEEP_TRACEPOINT,
			.duration = at_ns - begin_ns,
			.blocked = blocked_ns,
			.runqueue = at_ns - begin_ns - blocked_ns,
			.state = "S"},
	};

	_Static_assert(sizeof(s) % 8 == 0, "as all records");
	assert_int_equal(fr_buf_append(&f->from, &s, sizeof(s)), 0);
}

static const struct sample *found(const struct waits *f, size_t i)
{
	assert_true(f->found.records.len >= (i + 1) * sizeof(struct sample));
	return (const struct sample *)f->found.records.data + i;
}

TEST(all_waits_end_at_the_end_of_the_window)
{
	struct waits *f = *state;
	struct fr_sample_fields fields;
	struct sample copy;

	add(f, 1, 100, READ_NS, READ_NS - 100);
	add(f, 2, 600000, READ_NS + 5, 400005); /* began after the window */
	add(f, 3, 400000, READ_NS + 9, 50000);	/* was woken in the window, and waits for a CPU */
	assert_int_equal(fr_waits_init(&f->found, &f->session, &f->from, 500000), 0);
	assert_int_equal(f->found.n, 2);
	assert_int_equal(f->found.records.len, 2 * sizeof(struct sample));
	assert_int_equal(found(f, 0)->head.tid, 1);
	assert_int_equal(found(f, 0)->head.time, 500000);
	assert_int_equal(found(f, 0)->raw.common_type, FR_WAITING_TRACEPOINT);
	assert_int_equal(found(f, 0)->raw.duration, 499900);
	assert_int_equal(found(f, 0)->raw.blocked, 499900);
	assert_int_equal(found(f, 0)->raw.runqueue, 0);
	assert_int_equal(found(f, 0)->period, 499900);
	assert_int_equal(found(f, 1)->head.tid, 3);
	assert_int_equal(found(f, 1)->raw.blocked, 50000);
	assert_int_equal(found(f, 1)->raw.runqueue, 50000);
	assert_int_equal(f->session.n_events, 2);
	assert_int_equal(f->session.events[1].attr.config, FR_WAITING_TRACEPOINT);
	memcpy(&copy, found(f, 1), sizeof(copy));
	assert_int_equal(fr_sample_parse(&f->session.events[1].attr, (const void *)&copy, &fields), 0);
	assert_int_equal(fields.n_chain, CHAIN);
	assert_memory_equal(&fields.id, f->session.events[1].ids, sizeof(fields.id));
}

TEST(a_window_up_to_now_ends_with_the_last_wait)
{
	struct waits *f = *state;

	add(f, 1, 100, READ_NS, READ_NS - 100);
	add(f, 2, 200, READ_NS + 5, READ_NS - 195);
	assert_int_equal(fr_waits_init(&f->found, &f->session, &f->from, UINT64_MAX), 0);
	assert_int_equal(f->found.n, 2);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(found(f, i)->head.time, READ_NS + 5);
	assert_int_equal(found(f, 0)->raw.duration, READ_NS - 95);
}

TEST(without_waits_there_is_no_event)
{
	struct waits *f = *state;

	assert_int_equal(fr_waits_init(&f->found, &f->session, &f->from, UINT64_MAX), 0);
	add(f, 1, 300, READ_NS, 0);
	assert_int_equal(fr_waits_init(&f->found, &f->session, &f->from, 200), 0);
	assert_int_equal(f->found.n, 0);
	assert_int_equal(f->session.n_events, 1);
}

TEST(damaged_waits_are_refused)
{
	struct waits *f = *state;

	add(f, 1, 100, READ_NS, 0);
	for (size_t len = 1; len < sizeof(struct sample); len++) {
		f->from.len = len;
		assert_int_equal(fr_waits_init(&f->found, &f->session, &f->from, UINT64_MAX), -EBADMSG);
	}
	f->from.len = sizeof(struct sample);
	((struct sample *)f->from.data)->n_chain = UINT64_MAX;
	assert_int_equal(fr_waits_init(&f->found, &f->session, &f->from, UINT64_MAX), -EBADMSG);
	assert_int_equal(f->session.n_events, 1);
}

TEST(waits_and_trigger_samples_are_ordered_by_time)
{
	const struct fr_trigger_sample causes[] = {{.time_ns = 100, .trigger = "a"},
		{.time_ns = READ_NS, .trigger = "b"}, {.time_ns = READ_NS + 1, .trigger = "c"}};
	const uint64_t times[] = {100, READ_NS, READ_NS, READ_NS, READ_NS + 1};
	struct waits *f = *state;
	struct fr_trigger_samples t;
	size_t at = 0;

	add(f, 1, 100, READ_NS, 0);
	add(f, 2, 200, READ_NS, 0);
	assert_int_equal(fr_trigger_samples_add_event(&f->session), 0);
	assert_int_equal(fr_waits_init(&f->found, &f->session, &f->from, UINT64_MAX), 0);
	assert_int_equal(fr_trigger_samples_init(&t, &f->session, causes, FR_ARRAY_SIZE(causes)), 0);
	assert_int_equal(fr_trigger_samples_add_records(&t, &f->found.records, f->found.time_ns), 0);
	for (size_t i = 0; i < FR_ARRAY_SIZE(times); i++) {
		const struct fr_sample *s = (const void *)(t.records.data + at);

		assert_int_equal(s->time, times[i]);
		at += s->header.size;
	}
	assert_int_equal(at, t.records.len);
	fr_trigger_samples_deinit(&t);
}
