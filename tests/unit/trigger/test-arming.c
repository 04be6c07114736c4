// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of arming triggers whose source takes long to open. The main thread does not wait for such a
   source. */
#include "scene.h"

#define LIMIT_MS 60000

static unsigned listening;

static int slow_listen(struct fr_source *s, struct fr_diag *d)
{
	listening++;
	return 0;
}

static const struct fr_source_class slow = {.name = "slow",
	.size = sizeof(struct fr_source),
	.open = hand_open,
	.listen = slow_listen,
	.close = hand_close,
	.get_stats = hand_get_stats,
	.is_stale = hand_is_stale};

static int setup(void **state)
{
	listening = 0;
	return scene_new(&slow, true, state);
}

FIXTURE(setup, scene_free)

/* Waits until N sources have reached the gate. */
static void await_gate(unsigned n)
{
	pthread_mutex_lock(&lock);
	while (at_gate < n)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void until_state(struct scene *s, const char *name, enum fr_trigger_state state)
{
	while (info(s, name).state != state)
		assert_true(sd_event_run(s->event, LIMIT_MS * 1000) > 0);
}

TEST(armed_when_the_source_is_open)
{
	const struct fr_trigger_config c = section("a", "hung", FR_TRIGGER_FUNCTION);
	struct fr_diag d = {0};
	struct scene *s = *state;
	uint64_t id;

	configure(s, &c, 1);
	await_gate(1);
	assert_int_equal(info(s, "a").state, FR_TRIGGER_ARMING);
	assert_string_equal(info(s, "a").behind, "");
	assert_int_equal(fr_triggers_enable(s->t, "a", true, &d), 1);
	assert_int_equal(fr_triggers_test(s->t, "a", "me", &id, &d), -EBUSY);
	configure(s, &c, 1); /* the configuration is the same, so the source is not opened again */
	fr_triggers_rearm_stale(s->t);
	set_gate(true);
	until_state(s, "a", FR_TRIGGER_ARMED);
	assert_int_equal(at_gate, 1);
	assert_int_equal(opened - closed, 1);
	assert_int_equal(listening, 1);
	assert_int_equal(s->settled, 1);
	/* An open source borrows its strings from the trigger, and not from the job that opened it. */
	assert_ptr_equal(fr_trigger_find(s->t, "a")->source->config, &fr_trigger_find(s->t, "a")->config);
	assert_ptr_equal(fr_trigger_find(s->t, "a")->source->trigger, fr_trigger_find(s->t, "a"));
}

TEST(error_is_reported_when_it_is_known)
{
	const struct fr_trigger_config c[] = {
		section("b", "hung", FR_TRIGGER_FUNCTION), section("a", "broken", FR_TRIGGER_FUNCTION)};
	struct scene *s = *state;

	configure(s, c, 2);
	await_gate(1);
	assert_int_equal(s->failed, 0);
	set_gate(true);
	until_state(s, "a", FR_TRIGGER_FAILED);
	assert_int_equal(s->failed, 1);
	assert_string_equal(info(s, "a").diag->what, "flightrecd.conf:1: it is broken");
}

TEST(disabled_while_it_is_opened)
{
	struct fr_trigger_config c[] = {
		section("a", "hung", FR_TRIGGER_FUNCTION), section("b", "hung", FR_TRIGGER_FUNCTION)};
	struct scene *s = *state;

	configure(s, c, 2);
	await_gate(1);
	assert_string_equal(info(s, "b").behind, "a");
	assert_int_equal(fr_triggers_enable(s->t, "a", false, NULL), 0);
	assert_int_equal(fr_triggers_enable(s->t, "b", false, NULL), 0);
	assert_int_equal(info(s, "a").state, FR_TRIGGER_DISABLED);
	assert_int_equal(fr_triggers_enable(s->t, "a", true, NULL), 1);
	set_gate(true);
	until_state(s, "a", FR_TRIGGER_ARMED);
	/* The thread has closed the canceled source before it opened the next source. */
	assert_int_equal(opened - closed, 1);
	assert_string_equal(order, "aa");
}

TEST(removed_or_changed_while_it_is_opened)
{
	struct fr_trigger_config a = section("a", "hung", FR_TRIGGER_FUNCTION),
				 b = section("b", "x", FR_TRIGGER_FUNCTION);
	struct scene *s = *state;

	configure(s, &a, 1);
	await_gate(1);
	configure(s, NULL, 0);
	configure(s, &b, 1);
	set_gate(true);
	until_state(s, "b", FR_TRIGGER_ARMED);
	assert_string_equal(order, "ab");
	assert_int_equal(opened - closed, 1);
	set_gate(false);
	configure(s, &a, 1);
	await_gate(2);
	a.subject = (char *)"other";
	configure(s, &a, 1);
	set_gate(true);
	until_state(s, "a", FR_TRIGGER_ARMED);
	assert_string_equal(order, "abaa");
	assert_string_equal(fr_trigger_find(s->t, "a")->source->config->subject, "other");
	assert_int_equal(opened - closed, 1);
}

TEST(old_file_stays_armed_until_the_new_one_is_open)
{
	const struct fr_trigger_config c = section("a", "hung", FR_TRIGGER_PROGRAM);
	struct scene *s = *state;

	set_gate(true);
	configure(s, &c, 1);
	until_state(s, "a", FR_TRIGGER_ARMED);
	set_gate(false);
	stale = true;
	configure(s, &c, 1);
	await_gate(2);
	assert_int_equal(info(s, "a").state, FR_TRIGGER_ARMED);
	assert_int_equal(opened - closed, 1);
	set_gate(true);
	while (s->settled < 2)
		assert_true(sd_event_run(s->event, LIMIT_MS * 1000) > 0);
	assert_int_equal(opened - closed, 1);
	assert_int_equal(listening, 2);
}

TEST(probe_does_not_wait_for_a_file)
{
	const struct fr_trigger_config c[] = {section("a", "hung", FR_TRIGGER_FUNCTION),
		section("b", "x", FR_TRIGGER_FUNCTION), section("c", "x", FR_TRIGGER_PROBE)};
	struct scene *s = *state;

	configure(s, c, 3);
	await_gate(1);
	until_state(s, "c", FR_TRIGGER_ARMED);
	assert_int_equal(info(s, "b").state, FR_TRIGGER_ARMING);
	set_gate(true);
	until_state(s, "b", FR_TRIGGER_ARMED);
	assert_string_equal(order, "cab");
}

TEST(stop_does_not_wait_for_a_source)
{
	const struct fr_trigger_config c[] = {
		section("a", "hung", FR_TRIGGER_FUNCTION), section("b", "hung", FR_TRIGGER_FUNCTION)};
	struct scene *s = *state;

	configure(s, c, 2);
	await_gate(1);
	s->t = fr_triggers_free(s->t);
	s->arming[1] = fr_arming_stop(s->arming[1]); /* returns although the gate is closed */
	set_gate(true);
	pthread_mutex_lock(&lock);
	while (!order[0])
		pthread_cond_wait(&changed, &lock);
	assert_string_equal(order, "a");
	pthread_mutex_unlock(&lock);
	for (int ms = 0; closed < 1; ms++) {
		assert_true(ms < LIMIT_MS);
		usleep(1000);
	}
}
