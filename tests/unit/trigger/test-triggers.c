// SPDX-License-Identifier: GPL-2.0-or-later

/* Which triggers there are and what becomes of their anomalies, with a class of sources that fires when the
   test says so; and once with a real timer. */

#include "base/cleanup.h"
#include "base/clock.h"
#include "source/probes.h"
#include "trigger/triggers_private.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

/* --- a source whose anomalies the test makes; its subject "broken" does not open */

static unsigned opened, closed;
static int broken = -EOPNOTSUPP;
static struct fr_source *source_of[26]; /* by the first letter of its trigger */
static struct fr_source_stats hand_stats;

static int hand_open(struct fr_source *s, struct fr_diag *d)
{
	const struct fr_trigger_config *config = s->config;

	if (config->subject && !strcmp(config->subject, "broken"))
		return fr_fail(d, broken, "mend it", "it is broken%s", broken == -ESRCH ? ": nobody" : "");
	source_of[config->name[0] - 'a'] = s;
	s->stats.unit = FR_CAUSE_NS;
	opened++;
	return 0;
}

static void hand_close(struct fr_source *s)
{
	/* What it borrowed is still there, and still its own. */
	assert_non_null(s->config->name);
	closed += s->stats.unit != FR_CAUSE_NONE;
}

static void hand_get_stats(struct fr_source *s, struct fr_source_stats *ret)
{
	*ret = hand_stats;
}

static bool hand_stale;

static bool hand_is_stale(const struct fr_source *s)
{
	return hand_stale;
}

static const struct fr_source_class hand = {.name = "hand",
	.size = sizeof(struct fr_source),
	.open = hand_open,
	.close = hand_close,
	.get_stats = hand_get_stats,
	.is_stale = hand_is_stale};
static const struct fr_source_class *const hands[FR_TRIGGER_KINDS] = {
	[FR_TRIGGER_PROBE] = &hand,
	[FR_TRIGGER_PROGRAM] = &hand,
	[FR_TRIGGER_FUNCTION] = &hand,
	[FR_TRIGGER_USDT] = &hand,
	[FR_TRIGGER_PRESSURE] = &hand,
	[FR_TRIGGER_EVENT] = &hand,
	[FR_TRIGGER_TIMER] = &fr_source_timer,
	[FR_TRIGGER_APPLICATION] = &hand,
};

/* --- what the triggers are told to do */

struct scene {
	struct fr_triggers *t;
	sd_event *event;
	int dump_returns, coalesce_returns;
	uint64_t span_ns, next_id, coalesced_id;
	unsigned dumps, joins, decided, first, failed, healed;
	struct fr_cause cause; /* of the newest dump or join */
	uint64_t window_ns, post_ns;
};

static int on_dump(
	void *ctx, const struct fr_cause *cause, uint64_t window_ns, uint64_t post_ns, uint64_t *ret_id)
{
	struct scene *s = ctx;

	if (s->dump_returns < 0)
		return s->dump_returns;
	s->dumps++;
	s->cause = *cause;
	s->window_ns = window_ns;
	s->post_ns = post_ns;
	*ret_id = s->dump_returns ? s->next_id : ++s->next_id;
	return s->dump_returns;
}

static int on_coalesce(
	void *ctx, const struct fr_cause *cause, uint64_t window_ns, uint64_t post_ns, uint64_t *ret_id)
{
	struct scene *s = ctx;

	if (s->coalesce_returns < 0)
		return s->coalesce_returns;
	s->joins++;
	s->cause = *cause;
	*ret_id = s->coalesced_id;
	return 0;
}

static uint64_t on_span(void *ctx)
{
	struct scene *s = ctx;

	return s->span_ns;
}

static void on_decided(void *ctx, const struct fr_decision *d)
{
	struct scene *s = ctx;

	s->decided++;
	s->first += d->first;
}

static void on_armed(void *ctx, const char *name, const struct fr_diag *d)
{
	struct scene *s = ctx;

	if (d)
		s->failed++;
	else
		s->healed++;
}

static int setup(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));
	const struct fr_triggers_ops ops = {.dump = on_dump,
		.coalesce = on_coalesce,
		.ring_span_ns = on_span,
		.decided = on_decided,
		.armed = on_armed,
		.ctx = s,
		.classes = hands};
	struct fr_source_env env = {.self = getpid(), .gid = (gid_t)-1};

	opened = closed = 0;
	broken = -EOPNOTSUPP;
	hand_stats = (struct fr_source_stats){.unit = FR_CAUSE_NS, .threshold = 5000};
	if (!s || sd_event_new(&s->event) < 0)
		return -1;
	env.event = s->event;
	s->coalesce_returns = -ENOENT;
	*state = s;
	return fr_triggers_new(&env, &ops, &s->t);
}

static int teardown(void **state)
{
	struct scene *s = *state;

	fr_triggers_free(s->t);
	sd_event_unref(s->event);
	free(s);
	return opened == closed ? 0 : -1;
}

static char empty[] = "";

static struct fr_triggers_config all(void)
{
	return (struct fr_triggers_config){
		.cooldown_ns = 3600 * FR_NSEC_PER_SEC, .probes_by_section = true, .socket = empty};
}

static struct fr_trigger_config section(const char *name, const char *subject)
{
	return (struct fr_trigger_config){
		.name = (char *)name,
		.origin = (char *)"flightrecd.conf:1",
		.kind = FR_TRIGGER_PRESSURE,
		.subject = (char *)subject,
		.interval_ns = FR_TRIGGER_UNSET,
		.enabled = true,
		.cooldown_ns = FR_TRIGGER_UNSET,
		.min_fill_ns = FR_TRIGGER_UNSET,
		.window_ns = FR_TRIGGER_UNSET,
		.post_ns = FR_TRIGGER_UNSET,
	};
}

static void configure(struct scene *s, const struct fr_trigger_config *c, size_t n)
{
	const struct fr_triggers_config a = all();

	assert_int_equal(fr_triggers_configure(s->t, &a, c, n), 0);
}

static struct fr_trigger_info info(struct scene *s, const char *name)
{
	for (size_t i = 0; i < fr_triggers_count(s->t); i++) {
		struct fr_trigger_info ret;

		fr_triggers_get_info(s->t, i, &ret);
		if (!strcmp(ret.name, name))
			return ret;
	}
	fail_msg("there is no trigger %s", name);
	return (struct fr_trigger_info){0};
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

/* --- the tests */

static void test_defaults(void **state)
{
	static const char *const fixed[] = {"signal", "control", "application"};
	struct scene *s = *state;
	struct fr_triggers_config a = all();
	struct fr_trigger_info i;
	size_t n_probes;
	const struct fr_probe *probes = fr_probes(&n_probes);

	a.probes_by_section = false;
	assert_int_equal(fr_triggers_configure(s->t, &a, NULL, 0), 0);
	assert_int_equal(fr_triggers_count(s->t), 3 + n_probes);
	for (size_t k = 0; k < FR_ARRAY_SIZE(fixed); k++) {
		fr_triggers_get_info(s->t, k, &i);
		assert_string_equal(i.name, fixed[k]);
		/* There is no socket that an application could send to. */
		assert_int_equal(i.state, k == 2 ? FR_TRIGGER_DISABLED : FR_TRIGGER_ARMED);
	}
	for (size_t k = 0; k < n_probes; k++) {
		fr_triggers_get_info(s->t, 3 + k, &i);
		assert_string_equal(i.name, probes[k].name);
		assert_int_equal(i.state, probes[k].armed ? FR_TRIGGER_ARMED : FR_TRIGGER_DISABLED);
		assert_int_equal(fr_triggers_enable(s->t, i.name, true, NULL), 0);
		assert_int_equal(info(s, probes[k].name).state, FR_TRIGGER_ARMED);
	}
	/* A recorder of a command arms none by itself. */
	a.probes_by_section = true;
	assert_int_equal(fr_triggers_configure(s->t, &a, NULL, 0), 0);
	assert_int_equal(opened, n_probes);
	assert_int_equal(closed, n_probes);
}

static void test_arming(void **state)
{
	struct fr_trigger_config c[] = {section("a", "broken"), section("b", "works")};
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
	/* By hand lasts until the next configuration, which mends A, too. */
	configure(s, c, 2);
	assert_int_equal(info(s, "b").state, FR_TRIGGER_ARMED);
	assert_int_equal(info(s, "a").state, FR_TRIGGER_FAILED);
	c[0].subject = (char *)"works";
	configure(s, c, 2);
	assert_int_equal(info(s, "a").state, FR_TRIGGER_ARMED);
	assert_int_equal(s->healed, 1);
}

static void test_reload_keeps_what_is_the_same(void **state)
{
	struct fr_trigger_config c[] = {section("a", "x"), section("b", "y"), section("c", "z")};
	struct scene *s = *state;

	configure(s, c, 3);
	assert_int_equal(opened, 3);
	fire('a');
	hand_stats.fired = 10;
	c[0].window_ns = 1234; /* policy */
	c[0].origin = (char *)"flightrecd.conf:9";
	c[1].threshold = (char *)"20ms"; /* another source */
	configure(s, c, 2);		 /* and c is gone */
	assert_int_equal(opened, 4);
	assert_int_equal(closed, 2);
	assert_int_equal(info(s, "a").counts[FR_VERDICT_FIRE], 1);
	assert_int_equal(info(s, "a").stats.fired, 10);
	assert_int_equal(info(s, "a").config->window_ns, 1234);
	assert_string_equal(info(s, "a").config->origin, "flightrecd.conf:9");
	/* What the one before saw, and the new one. */
	assert_int_equal(info(s, "b").stats.fired, 20);
	/* The cool-down that goes on is as long as it is now. */
	fire('a');
	assert_int_equal(newest(s)->verdict, FR_VERDICT_COOLDOWN);
	c[0].cooldown_ns = 2 * FR_NSEC_PER_SEC;
	configure(s, c, 2);
	assert_int_equal(opened, 4);
	assert_true(info(s, "a").quiet_until_ns < fr_monotonic_ns() + 2 * FR_NSEC_PER_SEC);
	/* Of the same words, but of a file that was replaced. */
	hand_stale = true;
	configure(s, c, 2);
	hand_stale = false;
	assert_int_equal(opened, 6);
	assert_int_equal(closed, 4);
	/* Less than what a source holds back by itself: that is another source. */
	c[0].cooldown_ns = 0;
	configure(s, c, 2);
	assert_int_equal(opened, 7);
	fire('a');
	assert_int_equal(newest(s)->verdict, FR_VERDICT_FIRE);
}

/* The pause after a try is over. */
static void follow(struct scene *s)
{
	for (size_t i = 0; i < s->t->n; i++)
		s->t->list[i]->tried_ns = 0;
	fr_triggers_rearm_stale(s->t);
}

static void test_a_file_that_was_replaced_is_followed(void **state)
{
	struct fr_trigger_config c[] = {section("a", "some file"), section("b", "y"), section("c", "z")};
	struct scene *s = *state;

	c[0].kind = FR_TRIGGER_FUNCTION;
	c[1].kind = FR_TRIGGER_PROGRAM;
	c[2].kind = FR_TRIGGER_USDT;
	c[2].enabled = false;
	configure(s, c, 3);
	hand_stale = true;
	fr_triggers_rearm_stale(s->t); /* too soon */
	hand_stale = false;
	follow(s);
	assert_int_equal(opened, 2);
	hand_stale = true;
	follow(s);
	hand_stale = false;
	/* A program of the user waits for a reload; the file of before has its probe as long as there is no
	 * third. */
	assert_int_equal(opened, 3);
	assert_int_equal(closed, 0);
	assert_int_equal(s->healed, 1);
	assert_int_equal(info(s, "a").state, FR_TRIGGER_ARMED);
	hand_stats.fired = 5;
	assert_int_equal(info(s, "a").stats.fired, 10);
	fire('a');
	assert_int_equal(newest(s)->verdict, FR_VERDICT_FIRE);
	/* What the file of now lacks, that of before has. */
	broken = -ENOENT;
	strcpy(fr_trigger_find(s->t, "a")->config.subject, "broken");
	hand_stale = true;
	follow(s);
	assert_int_equal(closed, 0);
	assert_int_equal(info(s, "a").state, FR_TRIGGER_FAILED);
	assert_int_equal(info(s, "a").stats.fired, 10);
	strcpy(fr_trigger_find(s->t, "a")->config.subject, "x");
	follow(s);
	hand_stale = false;
	assert_int_equal(opened, 4);
	assert_int_equal(closed, 1);
	assert_int_equal(info(s, "a").state, FR_TRIGGER_ARMED);
	assert_int_equal(info(s, "a").stats.fired, 15);
	assert_int_equal(fr_triggers_enable(s->t, "a", false, NULL), 0);
	assert_int_equal(closed, 3);
	assert_int_equal(info(s, "a").stats.fired, 15);
}

static void test_what_comes_later_is_armed_then(void **state)
{
	struct fr_trigger_config c[] = {section("a", "broken"), section("b", "broken")};
	struct scene *s = *state;

	c[0].kind = FR_TRIGGER_FUNCTION;
	c[1].kind = FR_TRIGGER_PROBE;
	broken = -ENOENT;
	configure(s, c, 2);
	assert_int_equal(s->failed, 2);
	follow(s);
	assert_int_equal(s->failed, 2); /* it is told once */
	broken = -ESRCH;
	follow(s);
	assert_int_equal(s->failed, 3); /* another reason: of A, as B is of no file */
	assert_int_equal(s->healed, 0);
	strcpy(fr_trigger_find(s->t, "a")->config.subject, "there");
	follow(s);
	assert_int_equal(s->healed, 1);
	assert_int_equal(info(s, "a").state, FR_TRIGGER_ARMED);
	assert_int_equal(info(s, "b").state, FR_TRIGGER_FAILED);
}

/* A file is read while it is being written; a process that has ended leaves its number to another. */
static void test_what_will_be_whole_is_tried_again(void **state)
{
	struct fr_trigger_config c[] = {section("a", "broken"), section("b", "broken")};
	struct scene *s = *state;

	c[0].kind = c[1].kind = FR_TRIGGER_FUNCTION;
	c[1].pid = 4711;
	broken = -ESRCH;
	configure(s, c, 2);
	broken = -EBADMSG;
	follow(s);
	assert_int_equal(fr_trigger_find(s->t, "a")->diag.code, -EBADMSG);
	assert_int_equal(fr_trigger_find(s->t, "b")->diag.code, -ESRCH);
	broken = -ENOEXEC;
	follow(s);
	assert_int_equal(fr_trigger_find(s->t, "a")->diag.code, -ENOEXEC);
	broken = -EBADMSG;
	follow(s);
	assert_int_equal(fr_trigger_find(s->t, "a")->diag.code, -EBADMSG);
	assert_int_equal(opened, 0);
}

/* How long after the one before it was armed anew, which is done as soon as it may be. */
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

static void test_what_changes_all_the_time_is_followed_less(void **state)
{
	static const uint64_t pauses[] = {10, 20, 40, 60, 60};
	struct fr_trigger_config c = section("a", "x");
	struct scene *s = *state;

	c.kind = FR_TRIGGER_FUNCTION;
	configure(s, &c, 1);
	hand_stale = true;
	for (size_t i = 0; i < FR_ARRAY_SIZE(pauses); i++)
		assert_int_equal(follow_soon(s), pauses[i]);
	follow(s); /* after a long time */
	assert_int_equal(follow_soon(s), pauses[0]);
	hand_stale = false;
}

/* Of sources before: what they counted stays, what they measured goes with what they were. */
static void test_counters_outlive_values(void **state)
{
	struct scene *s = *state;
	struct fr_trigger_config c = section("a", "memory some");

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

static void test_fire(void **state)
{
	struct fr_trigger_config c[] = {section("a", "x")};
	struct scene *s = *state;

	c[0].window_ns = 77;
	c[0].post_ns = 0;
	configure(s, c, 1);
	fire('a');
	assert_int_equal(s->dumps, 1);
	assert_int_equal(s->window_ns, 77);
	assert_int_equal(s->post_ns, 0);
	assert_string_equal(s->cause.trigger, "a");
	assert_string_equal(s->cause.source, "hand");
	assert_int_equal(s->cause.value, 7000);
	assert_string_equal(newest(s)->file, "");
	fr_triggers_set_dump_file(s->t, newest(s)->dump_id + 1, "of another");
	fr_triggers_set_dump_file(s->t, newest(s)->dump_id, NULL);
	assert_string_equal(newest(s)->file, "");
	fr_triggers_set_dump_file(s->t, newest(s)->dump_id, "perf.data.sample.x");
	assert_string_equal(newest(s)->file, "perf.data.sample.x");
	assert_string_equal(info(s, "a").last_file, "perf.data.sample.x");
	assert_true(info(s, "a").last_fired_ns > 0);
}

static void test_a_storm_is_one_decision(void **state)
{
	struct fr_trigger_config c[] = {section("a", "x"), section("b", "x")};
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
	/* One call a second; and of each trigger and verdict one line in the log a minute. */
	assert_in_range(s->decided, 3, 3 + 60);
	assert_int_equal(s->first, 3);
}

static void test_join(void **state)
{
	struct fr_trigger_config c[] = {section("a", "x"), section("b", "x"), section("c", "x")};
	struct scene *s = *state;

	configure(s, c, 3);
	s->coalesce_returns = 0;
	s->coalesced_id = 40;
	fire('a');
	assert_int_equal(newest(s)->verdict, FR_VERDICT_COALESCE);
	assert_int_equal(newest(s)->dump_id, 40);
	fire('a'); /* it cools down after it has joined, too */
	assert_int_equal(newest(s)->verdict, FR_VERDICT_COOLDOWN);
	assert_int_equal(s->joins, 1);
	assert_int_equal(s->dumps, 0);
	/* None waits any more: it fires as if none had. */
	s->coalesce_returns = -ENOENT;
	fire('b');
	assert_int_equal(newest(s)->verdict, FR_VERDICT_FIRE);
	assert_int_equal(info(s, "b").counts[FR_VERDICT_COALESCE], 0);
	/* The dumper made one of two that asked for the same. */
	s->dump_returns = 1;
	fire('c');
	assert_int_equal(newest(s)->verdict, FR_VERDICT_COALESCE);
	assert_int_equal(info(s, "c").counts[FR_VERDICT_COALESCE], 1);
	assert_int_equal(info(s, "c").counts[FR_VERDICT_FIRE], 0);
}

static void test_limits(void **state)
{
	struct fr_trigger_config c[] = {section("a", "x"), section("b", "x"), section("c", "x")};
	struct fr_triggers_config a = all();
	struct scene *s = *state;

	a.rate_burst = 1;
	a.rate_interval_ns = 3600 * FR_NSEC_PER_SEC;
	a.min_fill_ns = 30 * FR_NSEC_PER_SEC;
	assert_int_equal(fr_triggers_configure(s->t, &a, c, 3), 0);
	s->span_ns = 3 * FR_NSEC_PER_SEC;
	fire('a');
	assert_int_equal(newest(s)->verdict, FR_VERDICT_MIN_FILL);
	assert_string_equal(newest(s)->why, "the ring holds 3.0s, and MinFill= wants 30.0s");
	s->span_ns = 30 * FR_NSEC_PER_SEC;
	s->dump_returns = -EAGAIN;
	fire('a');
	assert_int_equal(newest(s)->verdict, FR_VERDICT_BUSY);
	s->dump_returns = 0; /* the token of who was refused is there again */
	fire('b');
	assert_int_equal(newest(s)->verdict, FR_VERDICT_FIRE);
	fire('c');
	assert_int_equal(newest(s)->verdict, FR_VERDICT_RATE);
	assert_non_null(strstr(newest(s)->why, "RateLimit= of 1 in 1h 0min is used up"));
	assert_int_equal(fr_triggers_get_policy(s->t).burst, 1);
}

static int no_dump(void *ctx, const struct fr_cause *cause, uint64_t *ret_id)
{
	unsigned *n = ctx;

	*ret_id = 99;
	(*n)++;
	return 0;
}

static void test_a_person_asks(void **state)
{
	struct fr_triggers_config a = all();
	struct fr_trigger_config c = section("signal", NULL);
	const struct fr_cause cause = {.reason = "SIGUSR1", .cpu = -1};
	struct scene *s = *state;
	unsigned n = 0;

	a.rate_interval_ns = a.min_fill_ns = 3600 * FR_NSEC_PER_SEC;
	assert_int_equal(fr_triggers_configure(s->t, &a, NULL, 0), 0);
	for (int i = 0; i < 10; i++)
		assert_int_equal(fr_triggers_request(s->t, "signal", &cause, no_dump, &n), FR_VERDICT_FIRE);
	assert_int_equal(n, 10);
	assert_int_equal(newest(s)->dump_id, 99);
	assert_string_equal(newest(s)->cause.source, "signal");
	assert_true(newest(s)->cause.time_ns > 0);
	/* Unless the section of it says so. */
	c.kind = FR_TRIGGER_SIGNAL;
	c.enabled = false;
	assert_int_equal(fr_triggers_configure(s->t, &a, &c, 1), 0);
	assert_int_equal(fr_triggers_request(s->t, "signal", &cause, no_dump, &n), FR_VERDICT_DISABLED);
	assert_int_equal(fr_triggers_request(s->t, "control", &cause, no_dump, &n), FR_VERDICT_FIRE);
	assert_int_equal(info(s, "signal").counts[FR_VERDICT_FIRE], 10);
	assert_int_equal(n, 11);
}

static void test_test(void **state)
{
	struct fr_trigger_config c[] = {section("a", "x"), section("b", "broken")};
	struct fr_triggers_config a = all();
	struct scene *s = *state;
	struct fr_diag d = {0};
	uint64_t id = 0;

	a.rate_interval_ns = 1; /* and no token at all */
	assert_int_equal(fr_triggers_configure(s->t, &a, c, 2), 0);
	for (int i = 1; i <= 3; i++) {
		assert_int_equal(fr_triggers_test(s->t, "a", "me", &id, &d), 0);
		assert_int_equal(id, i);
	}
	assert_string_equal(s->cause.reason, "test");
	assert_string_equal(s->cause.detail, "by me");
	assert_int_equal(s->cause.value, 5000);
	assert_int_equal(s->cause.threshold, 5000);
	assert_int_equal(info(s, "a").counts[FR_VERDICT_FIRE], 3);
	assert_int_equal(info(s, "a").quiet_until_ns, 0);
	assert_int_equal(fr_triggers_test(s->t, "b", "me", &id, &d), -EOPNOTSUPP);
	d = (struct fr_diag){0};
	assert_int_equal(fr_triggers_test(s->t, "nobody", "me", &id, &d), -ENOENT);
	d = (struct fr_diag){0};
	assert_int_equal(fr_triggers_enable(s->t, "a", false, &d), 0);
	assert_int_equal(fr_triggers_test(s->t, "a", "me", &id, &d), -EAGAIN);
	assert_string_equal(d.what, "a: suppressed: the trigger is disabled");
	assert_int_equal(info(s, "a").counts[FR_VERDICT_DISABLED], 1);
}

static void test_memory_is_bounded(void **state)
{
	struct fr_trigger_config c[] = {section("a", "x")};
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

/* Whatever happens, each anomaly is in one count, and each dump was promised. */
static void test_counts_add_up(void **state)
{
	struct fr_trigger_config c[] = {section("a", "x"), section("b", "y"), section("c", "z")};
	struct fr_triggers_config a = all();
	struct scene *s = *state;
	uint64_t asked[3] = {0}, dumps = 0, joins = 0;

	srand(7);
	a.cooldown_ns = 20 * FR_NSEC_PER_USEC;
	a.rate_burst = 50;
	a.rate_interval_ns = FR_NSEC_PER_MSEC;
	/* A fast machine makes many rounds before a cool-down is over. */
	for (int round = 0; round < 20000 || (round < 10000000 && (s->next_id <= 100 || s->joins <= 100));
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
		joins += t.counts[FR_VERDICT_COALESCE];
	}
	assert_int_equal(dumps + joins, s->dumps + s->joins);
	assert_int_equal(dumps, s->next_id);
	assert_true(dumps > 100 && joins > 100);
}

/* Its real source, in a real loop: a clock needs no pause after each. */
static void test_timer(void **state)
{
	struct fr_trigger_config c = section("tick", NULL);
	struct scene *s = *state;
	const uint64_t end_ns = fr_monotonic_ns() + 60 * FR_NSEC_PER_SEC;

	c.kind = FR_TRIGGER_TIMER;
	c.every_ns = 50 * FR_NSEC_PER_MSEC;
	configure(s, &c, 1);
	assert_string_equal(info(s, "tick").subject, "every 50ms");
	while (s->dumps < 3 && fr_monotonic_ns() < end_ns)
		assert_true(sd_event_run(s->event, 1000000) >= 0);
	assert_int_equal(s->dumps, 3);
	assert_string_equal(s->cause.source, "timer");
	configure(s, NULL, 0);
	assert_int_equal(sd_event_run(s->event, 200000), 0);
	assert_int_equal(s->dumps, 3);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_defaults),
		TEST(test_arming),
		TEST(test_reload_keeps_what_is_the_same),
		TEST(test_a_file_that_was_replaced_is_followed),
		TEST(test_what_comes_later_is_armed_then),
		TEST(test_what_will_be_whole_is_tried_again),
		TEST(test_what_changes_all_the_time_is_followed_less),
		TEST(test_counters_outlive_values),
		TEST(test_fire),
		TEST(test_a_storm_is_one_decision),
		TEST(test_join),
		TEST(test_limits),
		TEST(test_a_person_asks),
		TEST(test_test),
		TEST(test_memory_is_bounded),
		TEST(test_counts_add_up),
		TEST(test_timer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
