// SPDX-License-Identifier: GPL-2.0-or-later

/* Triggers whose sources take their time to open: a gate holds up those with the subject "hung", as a file
   system would, and the caller is never held up. */

#include "../source/heard.h"

#include "base/cleanup.h"
#include "trigger/triggers_private.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool gate;	  /* open */
static char order[64];	  /* the first letters of what was opened */
static unsigned at_gate;  /* how many have come there */
static atomic_int opened; /* and not closed */
static atomic_int closed;
static bool stale;

static void set_gate(bool open)
{
	pthread_mutex_lock(&lock);
	gate = open;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static void await_gate(unsigned n)
{
	pthread_mutex_lock(&lock);
	while (at_gate < n)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static int slow_open(struct fr_source *s, struct fr_diag *d)
{
	const struct fr_trigger_config *config = s->config;
	const bool broken = config->comm;

	pthread_mutex_lock(&lock);
	if (!strcmp(config->subject, "hung")) {
		at_gate++;
		pthread_cond_broadcast(&changed);
		while (!gate)
			pthread_cond_wait(&changed, &lock);
	}
	strncat(order, config->name, 1);
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	if (broken)
		return fr_fail(d, -ENOENT, NULL, "it is broken");
	opened++;
	return 0;
}

static unsigned listening;

static int slow_listen(struct fr_source *s, struct fr_diag *d)
{
	listening++;
	return 0;
}

static void slow_close(struct fr_source *s)
{
	assert_non_null(s->config->name); /* what it borrowed is there */
	if (s->config->comm)
		return;
	opened--;
	closed++;
}

static bool slow_is_stale(const struct fr_source *s)
{
	return stale;
}

static const struct fr_source_class slow = {.name = "slow",
	.size = sizeof(struct fr_source),
	.open = slow_open,
	.listen = slow_listen,
	.close = slow_close,
	.is_stale = slow_is_stale};
static const struct fr_source_class *const slows[FR_TRIGGER_KINDS] = {
	[FR_TRIGGER_PROBE] = &slow,
	[FR_TRIGGER_PROGRAM] = &slow,
	[FR_TRIGGER_FUNCTION] = &slow,
	[FR_TRIGGER_APPLICATION] = &slow,
};

struct scene {
	sd_event *event;
	struct fr_arming *arming[FR_ARMING_LANES];
	struct fr_triggers *t;
	unsigned failed, healed, settled;
};

static void on_armed(void *ctx, const char *name, const struct fr_diag *d)
{
	struct scene *s = ctx;

	s->failed += d != NULL;
	s->healed += d == NULL;
}

static void on_settled(void *ctx)
{
	((struct scene *)ctx)->settled++;
}

static int setup(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct fr_triggers_ops ops = {.armed = on_armed, .settled = on_settled, .ctx = s, .classes = slows};
	struct fr_source_env env = {.self = getpid(), .gid = (gid_t)-1};

	gate = stale = false;
	at_gate = listening = 0;
	closed = 0;
	order[0] = '\0';
	if (sd_event_new(&s->event) < 0 || fr_arming_start(&s->arming[0], NULL) < 0 ||
		fr_arming_start(&s->arming[1], NULL) < 0)
		return -1;
	env.event = s->event;
	memcpy(ops.arming, s->arming, sizeof(ops.arming));
	*state = s;
	return fr_triggers_new(&env, &ops, &s->t);
}

static int teardown(void **state)
{
	struct scene *s = *state;

	set_gate(true);
	fr_triggers_free(s->t);
	fr_arming_stop(s->arming[0]);
	fr_arming_stop(s->arming[1]);
	sd_event_unref(s->event);
	free(s);
	return opened == 0 ? 0 : -1;
}

static struct fr_trigger_config section(const char *name, const char *subject, enum fr_trigger_kind kind)
{
	struct fr_trigger_config c = heard_config(kind);

	c.name = (char *)name;
	c.subject = (char *)subject;
	return c;
}

static void configure(struct scene *s, const struct fr_trigger_config *c, size_t n)
{
	const struct fr_triggers_config all = {
		.cooldown_ns = FR_NSEC_PER_SEC, .probes_by_section = true, .socket = (char[]){""}};

	assert_int_equal(fr_triggers_configure(s->t, &all, c, n), 0);
}

static struct fr_trigger_info info(struct scene *s, const char *name)
{
	struct fr_trigger_info ret;

	for (size_t i = 0; i < fr_triggers_count(s->t); i++) {
		fr_triggers_get_info(s->t, i, &ret);
		if (!strcmp(ret.name, name))
			return ret;
	}
	fail_msg("there is no trigger %s", name);
	return ret;
}

static void until_state(struct scene *s, const char *name, enum fr_trigger_state state)
{
	while (info(s, name).state != state)
		assert_true(sd_event_run(s->event, HEARD_LIMIT_MS * 1000) > 0);
}

static void armed_when_it_is_open(void **state)
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
	configure(s, &c, 1); /* the same again: nothing is begun anew */
	fr_triggers_rearm_stale(s->t);
	set_gate(true);
	until_state(s, "a", FR_TRIGGER_ARMED);
	assert_int_equal(at_gate, 1);
	assert_int_equal(opened, 1);
	assert_int_equal(listening, 1);
	assert_int_equal(s->settled, 1);
	/* What it borrows is the trigger's own by now. */
	assert_ptr_equal(fr_trigger_find(s->t, "a")->source->config, &fr_trigger_find(s->t, "a")->config);
	assert_ptr_equal(fr_trigger_find(s->t, "a")->source->trigger, fr_trigger_find(s->t, "a"));
}

static void refused_when_it_is_known(void **state)
{
	struct fr_trigger_config c = section("a", "hung", FR_TRIGGER_FUNCTION);
	struct scene *s = *state;

	c.comm = (char *)"broken";
	configure(s, &c, 1);
	assert_int_equal(s->failed, 0);
	set_gate(true);
	until_state(s, "a", FR_TRIGGER_FAILED);
	assert_int_equal(s->failed, 1);
	assert_string_equal(info(s, "a").diag->what, "it is broken");
}

static void disabled_meanwhile(void **state)
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
	/* What was given up was closed by the thread before the next was begun. */
	assert_int_equal(opened, 1);
	assert_string_equal(order, "aa");
}

static void gone_meanwhile(void **state)
{
	struct fr_trigger_config c = section("a", "hung", FR_TRIGGER_FUNCTION);
	struct scene *s = *state;

	configure(s, &c, 1);
	await_gate(1);
	configure(s, NULL, 0);
	c = section("b", "x", FR_TRIGGER_FUNCTION);
	configure(s, &c, 1);
	set_gate(true);
	until_state(s, "b", FR_TRIGGER_ARMED);
	assert_string_equal(order, "ab");
	assert_int_equal(opened, 1);
}

static void another_subject_meanwhile(void **state)
{
	struct fr_trigger_config c = section("a", "hung", FR_TRIGGER_FUNCTION);
	struct scene *s = *state;

	configure(s, &c, 1);
	await_gate(1);
	c.subject = (char *)"other";
	configure(s, &c, 1);
	set_gate(true);
	until_state(s, "a", FR_TRIGGER_ARMED);
	assert_string_equal(order, "aa");
	assert_string_equal(fr_trigger_find(s->t, "a")->source->config->subject, "other");
	assert_int_equal(opened, 1);
}

/* Until the file of now is open, who runs the one of before is heard. */
static void armed_for_the_file_of_before(void **state)
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
	assert_int_equal(opened, 1);
	set_gate(true);
	while (s->settled < 2)
		assert_true(sd_event_run(s->event, HEARD_LIMIT_MS * 1000) > 0);
	assert_int_equal(opened, 1);
	assert_int_equal(listening, 2);
}

static void what_has_no_file_does_not_wait(void **state)
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

static void stopped_meanwhile(void **state)
{
	const struct fr_trigger_config c[] = {
		section("a", "hung", FR_TRIGGER_FUNCTION), section("b", "hung", FR_TRIGGER_FUNCTION)};
	struct scene *s = *state;

	configure(s, c, 2);
	await_gate(1);
	s->t = fr_triggers_free(s->t);
	s->arming[1] = fr_arming_stop(s->arming[1]); /* it does not wait for the gate */
	set_gate(true);
	pthread_mutex_lock(&lock);
	while (!order[0])
		pthread_cond_wait(&changed, &lock);
	assert_string_equal(order, "a");
	pthread_mutex_unlock(&lock);
	for (int ms = 0; closed < 1; ms++) {
		assert_true(ms < HEARD_LIMIT_MS);
		usleep(1000);
	}
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(armed_when_it_is_open),
		TEST(refused_when_it_is_known),
		TEST(disabled_meanwhile),
		TEST(gone_meanwhile),
		TEST(another_subject_meanwhile),
		TEST(armed_for_the_file_of_before),
		TEST(what_has_no_file_does_not_wait),
		TEST(stopped_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
