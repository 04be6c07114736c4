// SPDX-License-Identifier: GPL-2.0-or-later
/* Switches of events: the slots, and captures on the running kernel that are switched while they record. */
#include "live.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "capture/switches.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct fr_switches *new_switches(void)
{
	struct fr_switches *s = NULL;

	assert_int_equal(fr_switches_new(&s), 0);
	return s;
}

TEST(each_name_has_one_slot)
{
	struct fr_switches *s = new_switches();
	const uint32_t a = fr_switches_add(s, "a", false), b = fr_switches_add(s, "b", true);
	char name[65];

	assert_int_not_equal(a, FR_SWITCH_NONE);
	assert_int_not_equal(a, b);
	assert_int_equal(fr_switches_add(s, "a", true), a);
	assert_int_equal(fr_switches_find(s, "b"), b);
	assert_int_equal(fr_switches_find(s, "c"), FR_SWITCH_NONE);
	assert_string_equal(fr_switches_name(s, b), "b");
	assert_string_equal(fr_switches_name(s, b + 1), "");
	/* The slot of `a` existed already, so its state is that of the first call. */
	assert_false(fr_switches_is_off(s, a));
	assert_true(fr_switches_is_off(s, b));
	assert_true(fr_switches_set(s, a, true));
	assert_false(fr_switches_set(s, a, true));
	assert_true(fr_switches_is_off(s, a));
	assert_false(fr_switches_set(s, FR_SWITCH_NONE, true));
	assert_false(fr_switches_is_off(s, FR_SWITCH_NONE));
	memset(name, 'x', sizeof(name) - 1);
	name[64] = '\0';
	assert_int_equal(fr_switches_add(s, name, false), FR_SWITCH_NONE);
	name[63] = '\0';
	assert_int_not_equal(fr_switches_add(s, name, false), FR_SWITCH_NONE);
	fr_switches_free(s);
}

TEST(there_is_a_slot_for_each_possible_event)
{
	struct fr_switches *s = new_switches();
	char name[16];

	for (uint32_t i = 1; i < FR_SWITCHES_MAX; i++) {
		snprintf(name, sizeof(name), "e%u", i);
		assert_int_equal(fr_switches_add(s, name, false), i);
	}
	assert_int_equal(fr_switches_add(s, "one more", false), FR_SWITCH_NONE);
	assert_true(fr_switches_set(s, FR_SWITCHES_MAX - 1, true));
	assert_false(fr_switches_set(s, FR_SWITCHES_MAX, true));
	fr_switches_free(s);
}

static uint64_t drain(struct fr_capture *c)
{
	struct live_seen seen = {.tid = (uint32_t)gettid()};

	live_drain(c, &seen);
	return seen.of_tid;
}

/* Calls getppid() while the event is on, off, and on again. Checks that only the calls in between are not
   recorded, also those right after the switch. */
static void check_switching(const char *terms, struct fr_capture_config *config, bool is_off)
{
	struct fr_capture *c = live_open_getppid(terms, config);
	const uint32_t slot = fr_capture_slot(c, 0);

	assert_int_equal(slot, fr_switches_find(config->switches, "raw_syscalls:sys_enter"));
	assert_int_equal(fr_capture_is_configured_off(c, slot), is_off);
	live_getppid(10);
	assert_int_equal(drain(c), is_off ? 0 : 10);
	for (int i = 0; i < 3; i++) {
		(void)fr_switches_set(config->switches, slot, true);
		assert_int_equal(fr_capture_apply_switch(c, slot, NULL), 0);
		live_getppid(10);
		assert_int_equal(drain(c), 0);
		(void)fr_switches_set(config->switches, slot, false);
		assert_int_equal(fr_capture_apply_switch(c, slot, NULL), 0);
		live_getppid(10);
		assert_int_equal(drain(c), 10);
	}
	fr_capture_free(c);
}

TEST(tracepoints_are_switched)
{
	static const struct {
		const char *terms;
		bool is_off;
	} cases[] = {{"/capture=bpf/", false}, {"/capture=perf/", false}, {"/capture=bpf,enabled=no/", true},
		{"/capture=perf,enabled=no/", true}};

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		struct fr_switches *s = new_switches();
		struct fr_capture_config config = {.switches = s};

		check_switching(cases[i].terms, &config, cases[i].is_off);
		fr_switches_free(s);
	}
}

/* A capture that replaces another one finds the state of its events, also with other terms. */
TEST(a_slot_outlives_its_capture)
{
	struct fr_switches *s = new_switches();
	struct fr_capture_config config = {.switches = s};
	struct fr_capture *c = live_open_getppid("/capture=bpf/", &config);
	const uint32_t slot = fr_capture_slot(c, 0);

	assert_true(fr_switches_set(s, slot, true));
	fr_capture_free(c);
	c = live_open_getppid("/capture=perf/", &config);
	assert_int_equal(fr_capture_slot(c, 0), slot);
	live_getppid(10);
	assert_int_equal(drain(c), 0);
	fr_capture_free(c);
	fr_switches_free(s);
}

/* Uses MS of CPU time. Only then has this thread a known number of samples, because other programs may use
   most of the CPU. */
static void use_cpu_ms(unsigned ms)
{
	const uint64_t until = fr_now_ns(CLOCK_THREAD_CPUTIME_ID) + ms * FR_NSEC_PER_MSEC;

	while (fr_now_ns(CLOCK_THREAD_CPUTIME_ID) < until)
		;
}

/* Returns the samples of this thread in 400 ms of CPU time, with the frequency or period RATE. */
static uint64_t count_at(struct fr_capture *c, uint32_t slot, uint64_t rate)
{
	assert_int_equal(fr_capture_set_rate(c, slot, rate, NULL), 0);
	use_cpu_ms(20);
	(void)drain(c);
	use_cpu_ms(400);
	return drain(c);
}

TEST(a_rate_is_divided_by_the_divisor)
{
	struct fr_switches *s = new_switches();
	struct fr_capture_config config = {.switches = s};
	struct fr_capture *c = live_open("cpu-clock/freq=100/", NULL, &config);
	const uint32_t slot = fr_capture_slot(c, 0);
	bool is_frequency = false;
	uint64_t configured, raised, divided;

	live_pin();
	live_enable(c);
	assert_int_equal(fr_capture_rate(c, slot, &is_frequency), 100);
	assert_true(is_frequency);
	configured = count_at(c, slot, 0);
	raised = count_at(c, slot, 800);
	assert_int_equal(fr_capture_set_divisor(c, 4, NULL), 0);
	divided = count_at(c, slot, 800);
	/* The wide ranges are for a host that stops the machine for some time. */
	assert_true(raised > 3 * configured);
	assert_true(divided < raised / 2);
	assert_true(divided > configured / 4);
	assert_int_equal(fr_capture_set_divisor(c, 1, NULL), 0);
	assert_true(count_at(c, slot, 0) < raised / 3);
	fr_capture_free(c);
	fr_switches_free(s);
}

TEST(not_each_event_has_a_rate)
{
	struct fr_switches *s = new_switches();
	struct fr_capture_config config = {.switches = s};
	struct fr_diag d = {0};
	struct fr_capture *c;

	live_need_tracepoints();
	c = live_open("raw_syscalls:sys_enter/capture=bpf/,cpu-clock/period=1000000/", NULL, &config);
	assert_int_equal(fr_capture_set_rate(c, fr_capture_slot(c, 0), 99, &d), -EOPNOTSUPP);
	assert_non_null(strstr(d.what, "every occurrence"));
	d = (struct fr_diag){0};
	assert_int_equal(fr_capture_set_rate(c, fr_capture_slot(c, 1), 99, &d), -EINVAL);
	assert_non_null(strstr(d.what, "too short"));
	assert_int_equal(fr_capture_set_rate(c, fr_capture_slot(c, 1), 200000, NULL), 0);
	assert_int_equal(fr_capture_set_rate(c, FR_SWITCH_NONE, 1, NULL), 0);
	fr_capture_free(c);
	fr_switches_free(s);
}

TEST(a_program_can_switch_only_what_a_program_records)
{
	static const struct {
		const char *name, *what, *hint;
	} refused[] = {
		{"raw_syscalls:sys_exit", "the kernel makes the samples", "capture=bpf"},
		{"clock", "the kernel makes the samples", "call-graph=unwind"},
		{"raw_syscalls:sys_enterr", "no event raw_syscalls:sys_enterr is recorded",
			"did you mean raw_syscalls:sys_enter?"},
	};
	struct fr_switches *s = new_switches();
	struct fr_capture_config config = {.switches = s};
	uint32_t slot = FR_SWITCH_NONE;
	struct fr_diag d = {0};
	struct fr_capture *c;

	live_need_tracepoints();
	c = live_open("raw_syscalls:sys_enter/capture=bpf/,raw_syscalls:sys_exit/capture=perf/,"
		      "cpu-clock/name=clock/",
		NULL, &config);
	assert_int_equal(fr_capture_find_kernel_switch(c, "raw_syscalls:sys_enter", &slot, &d), 0);
	assert_int_equal(slot, fr_capture_slot(c, 0));
	for (size_t i = 0; i < FR_ARRAY_SIZE(refused); i++) {
		d = (struct fr_diag){0};
		assert_true(fr_capture_find_kernel_switch(c, refused[i].name, &slot, &d) < 0);
		assert_non_null(strstr(d.what, refused[i].what));
		assert_non_null(strstr(d.hint, refused[i].hint));
	}
	fr_capture_free(c);
	fr_switches_free(s);
}

/* Both events of offcpu have one switch. Without a map of switches, an event that is off stays off. */
TEST(events_without_an_own_switch)
{
	struct fr_switches *s = new_switches();
	struct fr_capture_config config = {.switches = s};
	struct fr_capture *c = live_open("offcpu", NULL, &config);

	assert_int_equal(fr_capture_slot(c, 0), fr_switches_find(s, "flightrec:offcpu"));
	assert_int_equal(fr_capture_slot(c, 1), fr_capture_slot(c, 0));
	fr_capture_free(c);
	config.switches = NULL;
	c = live_open_getppid("/capture=perf,enabled=no/", &config);
	assert_int_equal(fr_capture_slot(c, 0), FR_SWITCH_NONE);
	live_getppid(3);
	assert_int_equal(drain(c), 0);
	fr_capture_free(c);
	fr_switches_free(s);
}
