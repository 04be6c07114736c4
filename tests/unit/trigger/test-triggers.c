// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests of the list of triggers, and of the decisions about their anomalies. */
#include "scene.h"
#include "source/probes.h"

static const struct fr_source_class hand = {.name = "hand",
	.size = sizeof(struct fr_source),
	.open = hand_open,
	.close = hand_close,
	.get_stats = hand_get_stats,
	.is_stale = hand_is_stale};

static int setup(void **state)
{
	return scene_new(&hand, false, state);
}

FIXTURE(setup, scene_free)

static struct fr_trigger_config pressure(const char *name, const char *subject)
{
	return section(name, subject, FR_TRIGGER_PRESSURE);
}

static void fire(char name)
{
	const struct fr_source *s = source_of[name - 'a'];
	const struct fr_cause c = {.reason = "test",
		.value = 7000,
		.threshold = 5000,
		.unit = FR_CAUSE_NS,
		.cpu = 1,
		.time_ns = 5};

	s->env->fire(s->env->ctx, s->trigger, &c);
}

static const struct fr_decision *newest(struct scene *s)
{
	return fr_triggers_get_decision(s->t, 0);
}

static void check_fire(struct scene *s, char name, enum fr_verdict expected)
{
	fire(name);
	assert_int_equal(newest(s)->verdict, expected);
}

TEST(fixed_triggers_and_probes_exist_without_sections)
{
	static const char *const fixed[] = {"signal", "control", "application", "fleet"};
	struct scene *s = *state;
	struct fr_triggers_config a = defaults();
	struct fr_trigger_info i;
	size_t n_probes;
	const struct fr_probe *probes = fr_probes(&n_probes);

	a.probes_by_section = false;
	assert_int_equal(fr_triggers_configure(s->t, &a, NULL, 0), 0);
	assert_int_equal(fr_triggers_count(s->t), 4 + n_probes);
	for (size_t k = 0; k < FR_ARRAY_SIZE(fixed); k++) {
		fr_triggers_get_info(s->t, k, &i);
		assert_string_equal(i.name, fixed[k]);
		/* The trigger "application" is disabled, because there is no socket for applications. */
		assert_int_equal(i.state, k == 2 ? FR_TRIGGER_DISABLED : FR_TRIGGER_ARMED);
	}
	for (size_t k = 0; k < n_probes; k++) {
		fr_triggers_get_info(s->t, 4 + k, &i);
		assert_string_equal(i.name, probes[k].name);
		assert_int_equal(i.state, probes[k].armed ? FR_TRIGGER_ARMED : FR_TRIGGER_DISABLED);
		assert_int_equal(fr_triggers_enable(s->t, i.name, true, NULL), 0);
		assert_int_equal(info(s, probes[k].name).state, FR_TRIGGER_ARMED);
	}
	/* A recorder that a person starts arms no probe without a section. */
	a.probes_by_section = true;
	assert_int_equal(fr_triggers_configure(s->t, &a, NULL, 0), 0);
	assert_int_equal(opened, n_probes);
	assert_int_equal(closed, n_probes);
}

TEST(failed_trigger_does_not_affect_others)
{
	struct fr_trigger_config c[] = {pressure("a", "broken"), pressure("b", "works")};
	struct scene *s = *state;
	struct fr_diag d = {0};

	configure(s, c, 2);
	assert_int_equal(info(s, "a").state, FR_TRIGGER_FAILED);
	assert_string_equal(info(s, "a").diag->what, "flightrecd.conf:1: it is broken");
	assert_string_equal(info(s, "a").diag->hint, "mend it");
	assert_int_equal(info(s, "b").state, FR_TRIGGER_ARMED);
	assert_int_equal(s->failed, 1);
	assert_int_equal(fr_triggers_enable(s->t, "a", true, &d), -EOPNOTSUPP);
	assert_string_equal(d.hint, "mend it");
	assert_int_equal(fr_triggers_enable(s->t, "a", false, &d), 0);
	assert_int_equal(info(s, "a").state, FR_TRIGGER_DISABLED);
	assert_int_equal(fr_triggers_enable(s->t, "b", false, &d), 0);
	assert_int_equal(closed, 1);
	d = (struct fr_diag){0};
	assert_int_equal(fr_triggers_enable(s->t, "nobody", true, &d), -ENOENT);
	assert_non_null(strstr(d.what, "nobody"));
	/* After the next configuration, each trigger is enabled or disabled as the configuration says. */
	configure(s, c, 2);
	assert_int_equal(info(s, "b").state, FR_TRIGGER_ARMED);
	assert_int_equal(info(s, "a").state, FR_TRIGGER_FAILED);
	c[0].subject = (char *)"works";
	configure(s, c, 2);
	assert_int_equal(info(s, "a").state, FR_TRIGGER_ARMED);
	assert_int_equal(s->healed, 1);
}

TEST(reload_keeps_unchanged_sources)
{
	struct fr_trigger_config c[] = {pressure("a", "x"), pressure("b", "y"), pressure("c", "z")};
	struct scene *s = *state;

	configure(s, c, 3);
	assert_int_equal(opened, 3);
	fire('a');
	hand_stats.fired = 10;
	c[0].window_ns = 1234; /* A gets another window, which is not of its source */
	c[0].origin = (char *)"flightrecd.conf:9";
	c[1].threshold = (char *)"20ms"; /* B needs another source */
	configure(s, c, 2);		 /* C is removed */
	assert_int_equal(opened, 4);
	assert_int_equal(closed, 2);
	assert_int_equal(info(s, "a").counts[FR_VERDICT_FIRE], 1);
	assert_int_equal(info(s, "a").stats.fired, 10);
	assert_int_equal(info(s, "a").config->window_ns, 1234);
	assert_string_equal(info(s, "a").config->origin, "flightrecd.conf:9");
	/* The count is the sum of the counts of the closed source and of the new source. */
	assert_int_equal(info(s, "b").stats.fired, 20);
	/* A cool-down that has already begun gets the new length. */
	check_fire(s, 'a', FR_VERDICT_COOLDOWN);
	c[0].cooldown_ns = 2 * FR_NSEC_PER_SEC;
	configure(s, c, 2);
	assert_int_equal(opened, 4);
	assert_true(info(s, "a").quiet_until_ns < fr_monotonic_ns() + 2 * FR_NSEC_PER_SEC);
	/* The configuration is the same, but the file was replaced. */
	stale = true;
	configure(s, c, 2);
	stale = false;
	assert_int_equal(opened, 6);
	assert_int_equal(closed, 4);
	/* A source itself has a cool-down of a second, or less. So A needs a new source if its cool-down
	   becomes less than a second. */
	c[0].cooldown_ns = 0;
	configure(s, c, 2);
	assert_int_equal(opened, 7);
	check_fire(s, 'a', FR_VERDICT_FIRE);
}

/* Lets the triggers look for new files and processes, as they do after a pause. */
static void follow(struct scene *s)
{
	for (size_t i = 0; i < s->t->n; i++)
		s->t->list[i]->tried_ns = 0;
	fr_triggers_rearm_stale(s->t);
}

TEST(replaced_file_is_armed_beside_the_old_one)
{
	struct fr_trigger_config c[] = {section("a", "some file", FR_TRIGGER_FUNCTION),
		section("b", "y", FR_TRIGGER_PROGRAM), section("c", "z", FR_TRIGGER_USDT)};
	struct scene *s = *state;

	c[2].enabled = false;
	configure(s, c, 3);
	stale = true;
	fr_triggers_rearm_stale(s->t); /* does nothing, because it is during the pause */
	stale = false;
	follow(s);
	assert_int_equal(opened, 2);
	stale = true;
	follow(s);
	stale = false;
	/* A trigger with Program= is armed again only at a reload. For A, the source of the old file stays
	   open, and a source of the new file is opened, too. */
	assert_int_equal(opened, 3);
	assert_int_equal(closed, 0);
	assert_int_equal(s->healed, 1);
	assert_int_equal(info(s, "a").state, FR_TRIGGER_ARMED);
	hand_stats.fired = 5;
	assert_int_equal(info(s, "a").stats.fired, 10);
	check_fire(s, 'a', FR_VERDICT_FIRE);
	/* If the new file does not have the function, the sources of the old files stay open. */
	broken = -ENOENT;
	strcpy(fr_trigger_find(s->t, "a")->config.subject, "broken");
	stale = true;
	follow(s);
	assert_int_equal(closed, 0);
	assert_int_equal(info(s, "a").state, FR_TRIGGER_FAILED);
	assert_int_equal(info(s, "a").stats.fired, 10);
	strcpy(fr_trigger_find(s->t, "a")->config.subject, "x");
	follow(s);
	stale = false;
	assert_int_equal(opened, 4);
	assert_int_equal(closed, 1);
	assert_int_equal(info(s, "a").state, FR_TRIGGER_ARMED);
	assert_int_equal(info(s, "a").stats.fired, 15);
	assert_int_equal(fr_triggers_enable(s->t, "a", false, NULL), 0);
	assert_int_equal(closed, 3);
	assert_int_equal(info(s, "a").stats.fired, 15);
}

/* A is tried again, because its file can appear later or can be incomplete while it is being written. B is
   not tried again, because a probe has no file. C is not tried again after its process has ended, because
   another process can get the pid. */
TEST(trigger_is_tried_again_if_its_target_may_exist)
{
	static const int incomplete[] = {-EBADMSG, -ENOEXEC, -EBADMSG};
	struct fr_trigger_config c[] = {section("a", "broken", FR_TRIGGER_FUNCTION),
		section("b", "broken", FR_TRIGGER_PROBE), section("c", "broken", FR_TRIGGER_FUNCTION)};
	struct scene *s = *state;

	c[2].pid = 4711;
	broken = -ENOENT;
	configure(s, c, 3);
	assert_int_equal(s->failed, 3);
	follow(s);
	assert_int_equal(s->failed, 3); /* the same error is not reported again */
	broken = -ESRCH;
	follow(s);
	assert_int_equal(s->failed, 5); /* A and C now have another error */
	for (size_t i = 0; i < FR_ARRAY_SIZE(incomplete); i++) {
		broken = incomplete[i];
		follow(s);
		assert_int_equal(fr_trigger_find(s->t, "a")->diag.code, broken);
		assert_int_equal(fr_trigger_find(s->t, "c")->diag.code, -ESRCH);
	}
	assert_int_equal(opened + s->healed, 0);
	strcpy(fr_trigger_find(s->t, "a")->config.subject, "there");
	follow(s);
	assert_int_equal(s->healed, 1);
	assert_int_equal(info(s, "a").state, FR_TRIGGER_ARMED);
	assert_int_equal(info(s, "b").state, FR_TRIGGER_FAILED);
}

/* Lets A be armed again, and checks that this happens exactly at the end of its pause. Returns the pause in
 * seconds. */
static uint64_t follow_soon(struct scene *s)
{
	struct fr_trigger *g = fr_trigger_find(s->t, "a");
	const uint64_t pause_ns = FR_MAX(g->pause_ns, 10 * FR_NSEC_PER_SEC);
	const unsigned before = opened;

	g->tried_ns = fr_monotonic_ns() - pause_ns + FR_NSEC_PER_SEC;
	fr_triggers_rearm_stale(s->t);
	assert_int_equal(opened, before);
	g->tried_ns -= FR_NSEC_PER_SEC;
	fr_triggers_rearm_stale(s->t);
	assert_int_equal(opened, before + 1);
	return pause_ns / FR_NSEC_PER_SEC;
}

TEST(frequent_changes_make_the_pause_longer)
{
	static const uint64_t pauses[] = {10, 20, 40, 60, 60};
	struct fr_trigger_config c = section("a", "x", FR_TRIGGER_FUNCTION);
	struct scene *s = *state;

	configure(s, &c, 1);
	stale = true;
	for (size_t i = 0; i < FR_ARRAY_SIZE(pauses); i++)
		assert_int_equal(follow_soon(s), pauses[i]);
	follow(s); /* this is much later than the end of the pause */
	assert_int_equal(follow_soon(s), pauses[0]);
	stale = false;
}

TEST(counters_outlive_sources_and_values_do_not)
{
	struct scene *s = *state;
	struct fr_trigger_config c = pressure("a", "memory some");

	hand_stats.fired = hand_stats.cooled = 2;
	hand_stats.bad = 3;
	hand_stats.last = 7;
	hand_stats.last_ns = 1;
	hand_stats.gone = "its cgroup is gone";
	configure(s, &c, 1);
	assert_string_equal(info(s, "a").stats.gone, "its cgroup is gone");

	assert_int_equal(fr_triggers_enable(s->t, "a", false, NULL), 0);
	assert_null(info(s, "a").stats.gone);
	assert_int_equal(info(s, "a").stats.threshold, 5000);
	assert_int_equal(fr_triggers_enable(s->t, "a", true, NULL), 0);
	hand_stats.last_ns = 0;
	assert_int_equal(info(s, "a").stats.bad, 6);
	assert_int_equal(info(s, "a").stats.last, 7);
	assert_int_equal(fr_triggers_enable(s->t, "a", false, NULL), 0);
	assert_int_equal(info(s, "a").stats.last, 7);

	c.subject = (char *)"io full";
	c.enabled = false;
	configure(s, &c, 1);
	assert_int_equal(info(s, "a").stats.threshold, 0);
	assert_int_equal(info(s, "a").stats.last_ns, 0);
	assert_int_equal(info(s, "a").stats.fired, 4);
	assert_int_equal(info(s, "a").stats.bad, 6);
}

TEST(decision_gets_the_file_of_its_dump)
{
	struct fr_trigger_config c[] = {pressure("a", "x")};
	struct scene *s = *state;

	configure(s, c, 1);
	fire('a');
	fr_triggers_set_dump_file(s->t, newest(s)->dump_id + 1, "of another");
	fr_triggers_set_dump_file(s->t, newest(s)->dump_id, NULL);
	assert_string_equal(newest(s)->file, "");
	fr_triggers_set_dump_file(s->t, newest(s)->dump_id, "perf.data.sample.x");
	assert_string_equal(newest(s)->file, "perf.data.sample.x");
	assert_string_equal(info(s, "a").last_file, "perf.data.sample.x");
	assert_true(info(s, "a").last_fired_ns > 0);
}

TEST(storm_makes_one_decision)
{
	struct fr_trigger_config c[] = {pressure("a", "x"), pressure("b", "x")};
	struct scene *s = *state;

	configure(s, c, 2);
	for (int i = 0; i < 10000; i++)
		fire('a');
	fire('b');
	for (int i = 0; i < 10000; i++)
		fire('a');
	assert_int_equal(s->dumps, 2);
	assert_int_equal(newest(s)->verdict, FR_VERDICT_FIRE);
	assert_int_equal(fr_triggers_get_decision(s->t, 1)->verdict, FR_VERDICT_COOLDOWN);
	assert_int_equal(fr_triggers_get_decision(s->t, 1)->repeats, 19998);
	assert_non_null(strstr(fr_triggers_get_decision(s->t, 1)->why, "cools down for another 59min"));
	assert_int_equal(fr_triggers_get_decision(s->t, 2)->verdict, FR_VERDICT_FIRE);
	assert_null(fr_triggers_get_decision(s->t, 3));
	assert_int_equal(info(s, "a").counts[FR_VERDICT_COOLDOWN], 19999);
	/* For each trigger and verdict, decided() is called at most once a second, and at most once a minute
	   for a line in the log. */
	assert_in_range(s->decided, 3, 3 + 60);
	assert_int_equal(s->first, 3);
}

TEST(full_queue_returns_the_token)
{
	struct fr_trigger_config c[] = {pressure("a", "x"), pressure("b", "x"), pressure("c", "x")};
	struct fr_triggers_config a = defaults();
	struct scene *s = *state;

	a.rate_burst = 1;
	a.rate_interval_ns = 3600 * FR_NSEC_PER_SEC;
	assert_int_equal(fr_triggers_configure(s->t, &a, c, 3), 0);
	s->dump_returns = -EAGAIN;
	check_fire(s, 'a', FR_VERDICT_BUSY);
	s->dump_returns = 0;
	check_fire(s, 'b', FR_VERDICT_FIRE);
	check_fire(s, 'c', FR_VERDICT_RATE);
	assert_non_null(strstr(newest(s)->why, "RateLimit= of 1 in 1h 0min is used up"));
}

TEST(number_of_stored_decisions_is_limited)
{
	struct fr_trigger_config c[] = {pressure("a", "x")};
	struct scene *s = *state;
	size_t n = 0;

	c[0].cooldown_ns = 0;
	configure(s, c, 1);
	for (int i = 0; i < 1000; i++)
		fire('a');
	for (; fr_triggers_get_decision(s->t, n); n++)
		assert_int_equal(fr_triggers_get_decision(s->t, n)->dump_id, 1000 - n);
	assert_int_equal(n, FR_DECISIONS_REMEMBERED);
}

/* Dumps succeed and fail at random. Each anomaly has one verdict, and the verdicts match the dumps. */
TEST(verdicts_add_up_to_anomalies)
{
	struct fr_trigger_config c[] = {pressure("a", "x"), pressure("b", "y"), pressure("c", "z")};
	struct fr_triggers_config a = defaults();
	struct scene *s = *state;
	uint64_t asked[3] = {0}, dumps = 0, coalesced = 0;

	srand(7);
	a.cooldown_ns = 20 * FR_NSEC_PER_USEC;
	a.rate_burst = 50;
	a.rate_interval_ns = FR_NSEC_PER_MSEC;
	/* On a fast machine, many rounds are within a cool-down, so there are more rounds. */
	for (int round = 0; round < 20000 || (round < 10000000 && (s->next_id <= 100 || s->coalesced <= 100));
		round++) {
		const int i = rand() % 3;

		if (round % 1000 == 0) {
			c[round / 1000 % 3].min_fill_ns = (uint64_t)(rand() % 100);
			assert_int_equal(fr_triggers_configure(s->t, &a, c, 3), 0);
		}
		s->span_ns = (uint64_t)(rand() % 150);
		s->dump_returns = rand() % 8 == 0 ? -EAGAIN : rand() % 8 == 0;
		s->coalesce_returns = rand() % 4 ? -ENOENT : 0;
		fire((char)('a' + i));
		asked[i]++;
	}
	for (int i = 0; i < 3; i++) {
		const struct fr_trigger_info t = info(s, c[i].name);
		uint64_t sum = 0;

		for (int v = 0; v < FR_VERDICTS; v++)
			sum += t.counts[v];
		assert_int_equal(sum, asked[i]);
		dumps += t.counts[FR_VERDICT_FIRE];
		coalesced += t.counts[FR_VERDICT_COALESCE];
	}
	assert_int_equal(dumps + coalesced, s->dumps + s->coalesced);
	assert_int_equal(dumps, s->next_id);
	assert_true(dumps > 100 && coalesced > 100);
}

static void set_action(struct fr_trigger_config *c, const char *line)
{
	c->actions = (char *)line;
	c->actions_len = strlen(line) + 1;
}

/* The action switches although there is no token and the ring is empty, but not within the cool-down. */
TEST(actions_do_not_depend_on_the_limits_of_dumps)
{
	struct fr_trigger_config c[] = {pressure("a", "x"), pressure("b", "x")};
	struct fr_triggers_config all = defaults();
	struct scene *s = *state;

	set_action(&c[0], "enable x");
	set_action(&c[1], "enable x");
	c[1].actions = (char *)"enable x\0dump";
	c[1].actions_len = sizeof("enable x\0dump");
	c[1].cooldown_ns = 0;
	all.rate_burst = 1;
	all.rate_interval_ns = 3600 * FR_NSEC_PER_SEC;
	assert_int_equal(fr_triggers_configure(s->t, &all, c, 2), 0);
	s->coalesce_returns = 0;
	check_fire(s, 'a', FR_VERDICT_FIRE);
	assert_int_equal(newest(s)->dump_id, 0);
	assert_string_equal(newest(s)->why, "enable x");
	assert_int_equal(s->dumps + s->coalesced, 0);
	assert_int_equal(s->acts, 1);
	check_fire(s, 'a', FR_VERDICT_COOLDOWN);
	assert_int_equal(s->acts, 1);
	s->coalesce_returns = -ENOENT;
	check_fire(s, 'b', FR_VERDICT_FIRE);
	assert_string_equal(newest(s)->why, "dump 1; enable x");
	check_fire(s, 'b', FR_VERDICT_RATE);
	assert_int_equal(s->dumps, 1);
	assert_int_equal(s->acts, 3);
}

TEST(a_trigger_asks_the_fleet_if_the_policy_allows_it)
{
	struct fr_trigger_config c[] = {pressure("a", "x"), pressure("b", "x")};
	struct fr_triggers_config all = defaults();
	const struct fr_decision *d;
	struct scene *s = *state;

	set_action(&c[0], "fleet role=db");
	c[1].actions = (char *)"fleet *\0dump\0enable x\0fleet name=w?,zone!=b";
	c[1].actions_len = sizeof("fleet *\0dump\0enable x\0fleet name=w?,zone!=b");
	c[0].window_ns = 30;
	c[0].post_ns = 5;
	c[1].cooldown_ns = 0;
	all.rate_burst = 1;
	all.rate_interval_ns = 3600 * FR_NSEC_PER_SEC;
	assert_int_equal(fr_triggers_configure(s->t, &all, c, 2), 0);
	check_fire(s, 'a', FR_VERDICT_FIRE);
	d = newest(s);
	assert_int_equal(s->dumps, 0);
	assert_int_equal(d->fleet_len, sizeof("role=db"));
	assert_string_equal(d->fleet, "role=db");
	assert_int_equal(d->from_ns, d->cause.time_ns - 30);
	assert_int_equal(d->to_ns, d->cause.time_ns + 5);
	assert_string_equal(d->why, "fleet role=db; asks the fleet: role=db");
	check_fire(s, 'a', FR_VERDICT_COOLDOWN);
	assert_int_equal(newest(s)->fleet_len, 0);
	check_fire(s, 'b', FR_VERDICT_FIRE);
	assert_int_equal(s->dumps, 1);
	assert_int_equal(newest(s)->fleet_len, sizeof("*\0name=w?,zone!=b"));
	assert_memory_equal(newest(s)->fleet, "*\0name=w?,zone!=b", sizeof("*\0name=w?,zone!=b"));
	check_fire(s, 'b', FR_VERDICT_RATE);
	assert_int_equal(newest(s)->fleet_len, 0);
}

static int request_dump(void *ctx, const struct fr_cause *cause, uint64_t *ret_id)
{
	return on_dump(ctx, cause, 0, 0, ret_id);
}

/* A dump of the fleet takes a token and needs a filled ring, as the dump of a source does. */
TEST(the_policy_decides_about_dumps_of_the_fleet)
{
	const struct fr_cause cause = {.trigger = "fleet", .time_ns = 7, .cpu = -1, .fleet = "1"};
	struct fr_triggers_config all = defaults();
	struct scene *s = *state;

	all.rate_burst = 1;
	all.rate_interval_ns = 3600 * FR_NSEC_PER_SEC;
	all.min_fill_ns = 10;
	s->span_ns = 9;
	assert_int_equal(fr_triggers_configure(s->t, &all, NULL, 0), 0);
	assert_int_equal(fr_triggers_request(s->t, "fleet", &cause, request_dump, s), FR_VERDICT_MIN_FILL);
	s->span_ns = 10;
	assert_int_equal(fr_triggers_request(s->t, "fleet", &cause, request_dump, s), FR_VERDICT_FIRE);
	assert_string_equal(newest(s)->cause.source, "fleet");
	assert_string_equal(newest(s)->cause.fleet, "1");
	assert_int_equal(fr_triggers_request(s->t, "fleet", &cause, request_dump, s), FR_VERDICT_RATE);
	assert_int_equal(fr_triggers_request(s->t, "control", &cause, request_dump, s), FR_VERDICT_FIRE);
	assert_int_equal(fr_triggers_enable(s->t, "fleet", false, NULL), 0);
	assert_int_equal(fr_triggers_request(s->t, "fleet", &cause, request_dump, s), FR_VERDICT_DISABLED);
}

TEST(a_reload_changes_actions_and_keeps_the_source)
{
	struct fr_trigger_config c[] = {pressure("a", "x")};
	struct scene *s = *state;

	configure(s, c, 1);
	set_action(&c[0], "enable x");
	configure(s, c, 1);
	assert_int_equal(closed, 0);
	check_fire(s, 'a', FR_VERDICT_FIRE);
	assert_int_equal(s->acts, 1);
	assert_int_equal(s->dumps, 0);
	c[0].actions = NULL;
	c[0].actions_len = 0;
	c[0].cooldown_ns = 0;
	configure(s, c, 1);
	check_fire(s, 'a', FR_VERDICT_FIRE);
	assert_int_equal(s->acts, 1);
	assert_int_equal(s->dumps, 1);
}
