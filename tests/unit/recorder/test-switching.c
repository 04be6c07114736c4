// SPDX-License-Identifier: GPL-2.0-or-later
/* Who switches events, until when, and what dumps say about it. The events are opened, but never enabled. */
#include "../unit.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/thread.h"
#include "capture/capture.h"
#include "recorder/switching.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LIMIT_NS (600 * FR_NSEC_PER_SEC)

static struct fr_switches *switches;
static struct fr_switching w;
static struct fr_capture *capture;

static struct fr_capture *open_capture(const char *spec)
{
	const struct fr_event_defaults defaults = {0};
	struct fr_event_list list = {0};
	struct fr_capture_config config = {.events = &list, .switches = switches};
	struct fr_capture *c = NULL;
	struct fr_diag d = {0};
	int r = fr_event_parse(spec, &defaults, &list, &d);

	if (r == 0)
		r = fr_capture_open(&config, &c, &d);
	fr_event_list_deinit(&list);
	if (r == -EACCES || r == -EPERM || r == -ENOSYS)
		unit_skip("%s (%s)", d.what, d.hint);
	if (r < 0)
		fail_msg("%s: %s (%s)", spec, d.what, d.hint);
	return c;
}

static int set_up(void **state)
{
	if (fr_switches_new(&switches) < 0 || fr_switching_init(&w, switches, LIMIT_NS) < 0)
		return -1;
	capture = NULL;
	return 0;
}

static int tear_down(void **state)
{
	fr_capture_free(capture);
	fr_switching_deinit(&w);
	switches = fr_switches_free(switches);
	return 0;
}

FIXTURE(set_up, tear_down)

static int ask(const char *event, enum fr_switch_action action, uint64_t rate, uint64_t for_ns)
{
	const struct fr_switch_request q = {.event = event,
		.action = action,
		.rate = rate,
		.for_ns = for_ns,
		.by = "a test",
		.why = "to try it",
		.pid = 7,
		.cpu = -1};

	return fr_switching_ask(&w, capture, &q, NULL, NULL);
}

static uint32_t slot_of(const char *name)
{
	return fr_switches_find(switches, name);
}

static const struct fr_switched *entry(const char *name)
{
	return fr_switching_find(&w, slot_of(name));
}

static cJSON *steps(uint64_t from_ns, uint64_t to_ns)
{
	cJSON *meta = cJSON_CreateObject();

	fr_switching_add_steps(&w, from_ns, to_ns, meta);
	return meta;
}

static const char *text_of(const cJSON *meta, int i, const char *member)
{
	const cJSON *item = cJSON_GetArrayItem(cJSON_GetObjectItem(meta, "switches"), i);
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(item, member));

	return text ? text : "";
}

static int n_steps(const cJSON *meta)
{
	return cJSON_GetArraySize(cJSON_GetObjectItem(meta, "switches"));
}

TEST(a_switch_has_an_end_and_leaves_a_step)
{
	const struct fr_switch_request other = {.event = "a",
		.action = FR_SWITCH_OFF,
		.for_ns = FR_NSEC_PER_SEC,
		.by = "another test",
		.cpu = -1};
	const uint64_t before = fr_monotonic_ns();
	uint64_t since, again;
	cJSON *meta;

	capture = open_capture("cpu-clock/freq=99,name=a/,task-clock/name=b/");
	assert_int_equal(ask("a", FR_SWITCH_OFF, 0, 0), 1);
	assert_true(fr_switches_is_off(switches, slot_of("a")));
	assert_false(fr_switches_is_off(switches, slot_of("b")));
	assert_true(entry("a")->is_off && entry("a")->is_limit);
	assert_int_equal(entry("a")->until_ns - entry("a")->since_ns, LIMIT_NS);
	assert_null(entry("b"));
	/* The same once more, by somebody else, changes nothing but the end. */
	since = entry("a")->since_ns;
	again = fr_monotonic_ns();
	assert_int_equal(fr_switching_ask(&w, capture, &other, NULL, NULL), 1);
	assert_int_equal(w.count, 1);
	assert_int_equal(entry("a")->since_ns, since);
	assert_string_equal(entry("a")->by, "a test");
	assert_string_equal(entry("a")->why, "to try it");
	assert_false(entry("a")->is_limit);
	assert_in_range(entry("a")->until_ns, again + FR_NSEC_PER_SEC, fr_monotonic_ns() + FR_NSEC_PER_SEC);
	assert_int_equal(ask("a", FR_SWITCH_ON, 0, 0), 1);
	assert_null(entry("a"));
	meta = steps(before, fr_monotonic_ns());
	assert_int_equal(n_steps(meta), 2);
	assert_string_equal(text_of(meta, 0, "trigger"), "switch");
	assert_string_equal(text_of(meta, 0, "reason"), "a off");
	assert_string_equal(text_of(meta, 0, "detail"), "by a test: to try it");
	assert_string_equal(text_of(meta, 1, "reason"), "a on, as configured");
	cJSON_Delete(meta);
	meta = steps(before, before);
	assert_int_equal(n_steps(meta), 0);
	assert_false(cJSON_HasObjectItem(meta, "switches"));
	cJSON_Delete(meta);
}

TEST(the_end_brings_the_configuration_back)
{
	uint64_t next;
	cJSON *meta;

	capture = open_capture("cpu-clock/freq=99,name=a,enabled=no/,task-clock/freq=99,name=b/");
	assert_true(fr_switches_is_off(switches, slot_of("a")));
	assert_int_equal(ask("a", FR_SWITCH_RAISE, 200, 20 * FR_NSEC_PER_MSEC), 1);
	assert_int_equal(ask("b", FR_SWITCH_RATE, 50, 0), 1);
	assert_false(fr_switches_is_off(switches, slot_of("a")));
	assert_int_equal(entry("a")->rate, 200);
	next = fr_switching_expire(&w, capture);
	assert_true(next == entry("a")->until_ns);
	while (fr_monotonic_ns() < next)
		usleep(1000);
	assert_true(fr_switching_expire(&w, capture) == entry("b")->until_ns);
	assert_true(fr_switches_is_off(switches, slot_of("a")));
	assert_null(entry("a"));
	assert_int_equal(ask("b", FR_SWITCH_RESET, 0, 0), 1);
	assert_int_equal(fr_switching_expire(&w, capture), 0);
	meta = steps(0, UINT64_MAX);
	assert_int_equal(n_steps(meta), 4);
	assert_string_equal(text_of(meta, 0, "reason"), "a on, 200 Hz instead of 99 Hz");
	assert_string_equal(text_of(meta, 1, "reason"), "b on, 50 Hz instead of 99 Hz");
	assert_string_equal(text_of(meta, 2, "reason"), "a off, as configured");
	assert_string_equal(text_of(meta, 2, "detail"), "by flightrecd: its time is over");
	cJSON_Delete(meta);
}

TEST(a_trigger_does_not_shorten_what_a_person_asked_for)
{
	struct fr_switch_request q = {
		.event = "*", .action = FR_SWITCH_RAISE, .by = "a trigger", .cpu = -1, .only_extends = true};
	uint64_t until;

	capture = open_capture("cpu-clock/freq=99,name=a/,task-clock/period=10000000,name=b/");
	assert_int_equal(ask("a", FR_SWITCH_RATE, 500, 60 * FR_NSEC_PER_SEC), 1);
	assert_int_equal(ask("b", FR_SWITCH_RATE, 5000000, 60 * FR_NSEC_PER_SEC), 1);
	until = entry("a")->until_ns;
	q.for_ns = FR_NSEC_PER_SEC;
	q.rate = 300;
	q.event = "a";
	assert_int_equal(fr_switching_ask(&w, capture, &q, NULL, NULL), 1);
	q.rate = 9000000;
	q.event = "b";
	assert_int_equal(fr_switching_ask(&w, capture, &q, NULL, NULL), 1);
	assert_int_equal(entry("a")->rate, 500);
	assert_int_equal(entry("a")->until_ns, until);
	assert_int_equal(entry("b")->rate, 5000000);
	assert_string_equal(entry("a")->by, "a test");
	assert_int_equal(w.count, 2);
	/* A higher rate stays for the longer time, too. */
	q.event = "a";
	q.rate = 600;
	assert_int_equal(fr_switching_ask(&w, capture, &q, NULL, NULL), 1);
	assert_int_equal(entry("a")->rate, 600);
	assert_int_equal(entry("a")->until_ns, until);
	/* It makes the time longer, and the rate higher. */
	q.event = "a";
	q.rate = 0;
	q.for_ns = 100 * FR_NSEC_PER_SEC;
	assert_int_equal(fr_switching_ask(&w, capture, &q, NULL, NULL), 1);
	assert_true(entry("a")->until_ns > until);
	q.rate = 800;
	assert_int_equal(fr_switching_ask(&w, capture, &q, NULL, NULL), 1);
	assert_int_equal(entry("a")->rate, 800);
	q.event = "b";
	q.rate = 2000000;
	assert_int_equal(fr_switching_ask(&w, capture, &q, NULL, NULL), 1);
	assert_int_equal(entry("b")->rate, 2000000);
	/* A person can make it shorter. */
	assert_int_equal(ask("a", FR_SWITCH_RATE, 800, FR_NSEC_PER_SEC), 1);
	assert_true(entry("a")->until_ns < until);
}

TEST(what_is_switched_when_a_window_begins_is_in_the_dump)
{
	uint64_t begin;
	cJSON *meta;

	capture = open_capture("cpu-clock/name=a/,task-clock/name=b/");
	ask("a", FR_SWITCH_OFF, 0, 0);
	ask("b", FR_SWITCH_OFF, 0, 0);
	ask("b", FR_SWITCH_ON, 0, 0);
	begin = fr_monotonic_ns();
	ask("b", FR_SWITCH_OFF, 0, 0);
	meta = steps(begin, fr_monotonic_ns());
	assert_int_equal(n_steps(meta), 2);
	assert_string_equal(text_of(meta, 0, "reason"), "a off");
	assert_true(cJSON_HasObjectItem(
		cJSON_GetArrayItem(cJSON_GetObjectItem(meta, "switches"), 0), "before_window"));
	assert_string_equal(text_of(meta, 1, "reason"), "b off");
	cJSON_Delete(meta);
}

TEST(patterns_and_names)
{
	struct fr_diag d = {0};
	const struct fr_switch_request q = {.event = "nonsense", .by = "a test"};
	cJSON *changed = cJSON_CreateArray();
	const struct fr_switch_request all = {
		.event = "a*", .action = FR_SWITCH_OFF, .by = "a test", .cpu = -1};

	capture = open_capture("cpu-clock/name=a1/,task-clock/name=a2/,page-faults/name=b/");
	assert_int_equal(fr_switching_ask(&w, capture, &all, changed, NULL), 2);
	assert_int_equal(cJSON_GetArraySize(changed), 2);
	assert_int_equal(fr_switching_ask(&w, capture, &all, changed, NULL), 2);
	assert_int_equal(cJSON_GetArraySize(changed), 2);
	cJSON_Delete(changed);
	assert_false(fr_switches_is_off(switches, slot_of("b")));
	assert_int_equal(fr_switching_ask(&w, capture, &q, NULL, &d), -ENOENT);
	assert_non_null(strstr(d.what, "no event nonsense is recorded"));
}

TEST(an_event_with_a_long_name_cannot_be_switched)
{
	static const char name[] = "a123456789b123456789c123456789d123456789e123456789f123456789g123";
	struct fr_switch_request q = {.event = name, .action = FR_SWITCH_OFF, .by = "a test", .cpu = -1};
	struct fr_diag d = {0};
	char spec[160];

	_Static_assert(sizeof(name) == 65, "one more than a slot can have");
	snprintf(spec, sizeof(spec), "cpu-clock/name=%s/,task-clock/name=a/", name);
	capture = open_capture(spec);
	assert_int_equal(fr_switching_ask(&w, capture, &q, NULL, &d), -EOPNOTSUPP);
	assert_non_null(strstr(d.hint, "shorter name"));
	q.event = "*";
	assert_int_equal(fr_switching_ask(&w, capture, &q, NULL, NULL), 1);
}

TEST(texts_of_callers_become_valid)
{
	char why[FR_SWITCH_WHY_SIZE + 8];
	const struct fr_switch_request q = {
		.event = "a", .action = FR_SWITCH_OFF, .by = "a\nb", .why = why, .cpu = -1};
	cJSON *meta;

	memset(why, 'x', sizeof(why));
	/* The text is cut in the middle of a character of two bytes. */
	strcpy(&why[FR_SWITCH_WHY_SIZE - 2], "\xc3\xa4");
	capture = open_capture("cpu-clock/name=a/");
	assert_int_equal(fr_switching_ask(&w, capture, &q, NULL, NULL), 1);
	meta = steps(0, UINT64_MAX);
	assert_null(strchr(text_of(meta, 0, "by"), '\n'));
	assert_null(strchr(text_of(meta, 0, "why"), '\xc3'));
	cJSON_Delete(meta);
}

TEST(a_reload_keeps_what_is_still_there)
{
	struct fr_capture *next;

	capture = open_capture("cpu-clock/freq=99,name=a/,task-clock/name=b/,page-faults/name=c/");
	ask("a", FR_SWITCH_RAISE, 500, 0);
	ask("b", FR_SWITCH_OFF, 0, 0);
	ask("c", FR_SWITCH_OFF, 0, 0);
	/* b is gone, c is off in its configuration now, and d is new. */
	next = open_capture("cpu-clock/freq=99,name=a/,page-faults/name=c,enabled=no/,task-clock/name=d/");
	assert_int_equal(fr_switching_prepare(&w, next, NULL), 0);
	fr_capture_free(capture);
	capture = next;
	fr_switching_set_capture(&w, capture);
	assert_int_equal(entry("a")->rate, 500);
	assert_null(entry("b"));
	assert_null(entry("c"));
	assert_true(fr_switches_is_off(switches, slot_of("c")));
	assert_false(fr_switches_is_off(switches, slot_of("d")));
	/* Without a switch, the state follows the configuration. */
	next = open_capture("page-faults/name=c/,task-clock/name=b,enabled=no/");
	fr_capture_free(capture);
	capture = next;
	fr_switching_set_capture(&w, capture);
	assert_null(entry("a"));
	assert_false(fr_switches_is_off(switches, slot_of("c")));
	assert_true(fr_switches_is_off(switches, slot_of("b")));
}

static void saw_by(const char *name, bool is_off, uint64_t time_ns, pid_t tid)
{
	const struct fr_switch_record r = {.time_ns = time_ns,
		.slot = slot_of(name),
		.is_off = is_off,
		.pid = tid ? 5 : 0,
		.tid = tid,
		.cpu = 1,
		.comm = "x"};

	fr_switching_saw(&w, capture, &r, "t");
}

static void saw(const char *name, bool is_off, uint64_t time_ns)
{
	saw_by(name, is_off, time_ns, 6);
}

TEST(a_record_that_comes_late_does_not_change_the_state)
{
	uint64_t t;
	cJSON *meta;

	capture = open_capture("cpu-clock/name=a/");
	t = fr_monotonic_ns();
	ask("a", FR_SWITCH_OFF, 0, 0);
	ask("a", FR_SWITCH_ON, 0, 0);
	saw("a", true, t); /* the program did this before the two others */
	assert_null(entry("a"));
	assert_false(fr_switches_is_off(switches, slot_of("a")));
	meta = steps(t, fr_monotonic_ns());
	assert_int_equal(n_steps(meta), 3);
	assert_string_equal(text_of(meta, 0, "by"), "the program of trigger t");
	assert_string_equal(text_of(meta, 0, "why"), "in x[6]");
	cJSON_Delete(meta);
	saw("nonsense", true, t); /* there is no such slot */
	assert_int_equal(w.count, 3);
	saw_by("a", false, t, 0); /* a process of another pid namespace */
	meta = steps(t, fr_monotonic_ns());
	assert_string_equal(text_of(meta, 1, "why"), "in x");
	cJSON_Delete(meta);
}

TEST(memory_is_bounded)
{
	const uint64_t begin = fr_monotonic_ns();
	cJSON *meta;

	capture = open_capture("cpu-clock/name=a/");
	for (int i = 0; i < 2 * FR_SWITCH_STEPS; i++)
		ask("a", i % 2 ? FR_SWITCH_ON : FR_SWITCH_OFF, 0, 0);
	assert_int_equal(w.count, 2 * FR_SWITCH_STEPS);
	meta = steps(begin, fr_monotonic_ns());
	assert_int_equal(n_steps(meta), FR_SWITCH_STEPS);
	assert_true(cJSON_HasObjectItem(meta, "switches_forgotten"));
	cJSON_Delete(meta);
}
