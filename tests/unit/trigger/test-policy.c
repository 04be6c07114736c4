// SPDX-License-Identifier: GPL-2.0-or-later

/* Compares the verdicts of the policy (whether an anomaly makes a dump) on random anomalies with the verdicts
   of a simple model. */

#include "../unit.h"
#include "base/cleanup.h"
#include "trigger/policy.h"

#include <string.h>

#define TRIGGERS 5
#define QUESTIONS 200000
/* The rate limit gets a token every microsecond, and all times are multiples of an eighth of a microsecond. A
   double holds such numbers exactly, so the model and the policy must agree exactly. */
#define TOKEN_NS 1000ULL
#define TICK_NS (TOKEN_NS / 8)

static uint64_t seed = 0x2545f4914f6cdd1d;

static uint64_t random_below(uint64_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % below;
}

struct model {
	uint64_t eighths, burst; /* eighths of a token in the bucket; its size in tokens (0: no limit) */
	uint64_t now_ns;
	struct fr_policy_trigger t[TRIGGERS]; /* quiet_until_ns is not used */
	uint64_t last_ns[TRIGGERS];	      /* time of the last dump; 0 if there was none */
};

static void model_wait(struct model *m, uint64_t ticks)
{
	m->now_ns += ticks * TICK_NS;
	m->eighths += ticks;
	if (m->eighths > 8 * m->burst)
		m->eighths = 8 * m->burst;
}

static enum fr_verdict model_ask(struct model *m, size_t i, uint64_t span_ns, bool can_coalesce)
{
	enum fr_verdict v = FR_VERDICT_FIRE;

	if (!m->t[i].enabled)
		v = FR_VERDICT_DISABLED;
	else if (m->last_ns[i] && m->now_ns < m->last_ns[i] + m->t[i].cooldown_ns)
		v = FR_VERDICT_COOLDOWN;
	else if (can_coalesce)
		v = FR_VERDICT_COALESCE;
	else if (!m->t[i].by_person && span_ns < m->t[i].min_fill_ns)
		v = FR_VERDICT_MIN_FILL;
	else if (!m->t[i].by_person && m->burst && m->eighths < 8)
		v = FR_VERDICT_RATE;
	else if (!m->t[i].by_person && m->burst)
		m->eighths -= 8;
	if (v == FR_VERDICT_FIRE || v == FR_VERDICT_COALESCE)
		m->last_ns[i] = m->now_ns;
	m->t[i].counts[v]++;
	return v;
}

/* Replaces the last verdict, which was FIRE, by INSTEAD. */
static void model_revise(struct model *m, size_t i, enum fr_verdict instead)
{
	if (!m->t[i].by_person && m->burst && m->eighths + 8 <= 8 * m->burst)
		m->eighths += 8;
	m->t[i].counts[FR_VERDICT_FIRE]--;
	m->t[i].counts[instead]++;
}

static void begin(struct model *m, struct fr_policy *p, struct fr_policy_trigger *t)
{
	*m = (struct model){.burst = random_below(4) ? 1 + random_below(6) : 0,
		.now_ns = 1 + random_below(1000) * TICK_NS};
	m->eighths = 8 * m->burst;
	fr_policy_init(p, (unsigned)m->burst, m->burst * TOKEN_NS, m->now_ns);
	for (size_t i = 0; i < TRIGGERS; i++) {
		t[i] = (struct fr_policy_trigger){
			.enabled = random_below(8) != 0,
			.by_person = i == 0,
			.cooldown_ns = random_below(3) * random_below(40) * TICK_NS,
			.min_fill_ns = random_below(2) * random_below(100),
		};
		m->t[i] = t[i];
	}
}

static void ask_both(struct model *m, struct fr_policy *p, struct fr_policy_trigger *t)
{
	const size_t i = random_below(TRIGGERS);
	const struct fr_policy_question q = {
		.now_ns = m->now_ns, .ring_span_ns = random_below(150), .can_coalesce = random_below(4) == 0};
	const enum fr_verdict expected = model_ask(m, i, q.ring_span_ns, q.can_coalesce);

	assert_int_equal(fr_policy_ask(p, &t[i], &q), expected);
	if (expected == FR_VERDICT_FIRE && random_below(4) == 0) {
		const enum fr_verdict instead = random_below(2) ? FR_VERDICT_BUSY : FR_VERDICT_COALESCE;

		fr_policy_revise(p, &t[i], instead);
		model_revise(m, i, instead);
	}
}

TEST(policy_agrees_with_the_model)
{
	uint64_t verdicts[FR_VERDICTS] = {0};

	for (int round = 0; round < 100; round++) {
		struct fr_policy_trigger t[TRIGGERS];
		uint64_t sum = 0;
		struct fr_policy p;
		struct model m;

		begin(&m, &p, t);
		for (int i = 0; i < QUESTIONS / 100; i++) {
			model_wait(&m, random_below(3) * random_below(6));
			ask_both(&m, &p, t);
		}
		for (size_t i = 0; i < TRIGGERS; i++)
			for (int v = 0; v < FR_VERDICTS; v++) {
				assert_int_equal(t[i].counts[v], m.t[i].counts[v]);
				verdicts[v] += t[i].counts[v];
				sum += t[i].counts[v];
			}
		assert_int_equal(sum, QUESTIONS / 100);
	}
	for (int v = 0; v < FR_VERDICTS; v++) /* checks that the questions were random enough */
		assert_true(verdicts[v] > QUESTIONS / 1000);
}

static enum fr_verdict ask(struct fr_policy *p, struct fr_policy_trigger *t, uint64_t now_ns)
{
	const struct fr_policy_question q = {.now_ns = now_ns};

	return fr_policy_ask(p, t, &q);
}

TEST(time_of_the_next_token)
{
	struct fr_policy_trigger t = {.enabled = true}, other = {.enabled = true};
	struct fr_policy p;
	uint64_t next_ns;

	fr_policy_init(&p, 3, 1000, 5);
	assert_int_equal(fr_policy_next_token_ns(&p, 5), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ask(&p, &t, 5), FR_VERDICT_FIRE);
	next_ns = fr_policy_next_token_ns(&p, 5);
	assert_in_range(next_ns, 5 + 333, 5 + 335);
	assert_int_equal(ask(&p, &t, next_ns - 2), FR_VERDICT_RATE);
	assert_int_equal(ask(&p, &t, next_ns), FR_VERDICT_FIRE);
	/* If the time goes back, no tokens are added. */
	assert_int_equal(ask(&p, &other, 1), FR_VERDICT_RATE);
	assert_int_equal(ask(&p, &t, next_ns + 1), FR_VERDICT_RATE);
}

TEST(empty_bucket_and_endless_cooldown)
{
	struct fr_policy_trigger t = {.enabled = true}, person = {.enabled = true, .by_person = true};
	struct fr_policy p;

	fr_policy_init(&p, 0, 1000, 1);
	assert_int_equal(ask(&p, &t, 1000000), FR_VERDICT_RATE);
	assert_int_equal(fr_policy_next_token_ns(&p, 1000000), UINT64_MAX);
	assert_int_equal(ask(&p, &person, 1000000), FR_VERDICT_FIRE);
	fr_policy_init(&p, 0, 0, 1);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(ask(&p, &t, 2), FR_VERDICT_FIRE);
	/* The time of the end of this cool-down would overflow. */
	t.cooldown_ns = UINT64_MAX;
	assert_int_equal(ask(&p, &t, 3), FR_VERDICT_FIRE);
	assert_int_equal(ask(&p, &t, UINT64_MAX - 1), FR_VERDICT_COOLDOWN);
}

TEST(new_limits_keep_tokens)
{
	struct fr_policy_trigger t = {.enabled = true};
	struct fr_policy p;

	fr_policy_init(&p, 0, 0, 0); /* a bucket without a limit counts as full when it gets a limit */
	fr_policy_change(&p, 2, 1000, 10);
	assert_int_equal(ask(&p, &t, 10), FR_VERDICT_FIRE);
	/* A bucket that becomes larger keeps its tokens. A bucket that becomes smaller keeps the tokens that
	 * fit. */
	fr_policy_change(&p, 10, 1000000, 10);
	assert_true(fr_policy_tokens(&p, 10) == 1);
	fr_policy_change(&p, 1, 1000000, 1000000);
	assert_true(fr_policy_tokens(&p, 1000000) == 1);
	assert_int_equal(ask(&p, &t, 1000000), FR_VERDICT_FIRE);
	assert_int_equal(ask(&p, &t, 1000001), FR_VERDICT_RATE);
}

TEST(verdicts_have_different_names)
{
	for (int v = 0; v < FR_VERDICTS; v++)
		for (int w = 0; w < v; w++)
			assert_string_not_equal(fr_verdict_name(v), fr_verdict_name(w));
}
