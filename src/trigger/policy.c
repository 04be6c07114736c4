// SPDX-License-Identifier: GPL-2.0-or-later
#include "trigger/policy.h"
#include "base/cleanup.h"

#include <math.h>

const char *fr_verdict_name(enum fr_verdict v)
{
	static const char *const names[FR_VERDICTS] = {
		[FR_VERDICT_FIRE] = "fire",
		[FR_VERDICT_COALESCE] = "join",
		[FR_VERDICT_DISABLED] = "disabled",
		[FR_VERDICT_COOLDOWN] = "cool-down",
		[FR_VERDICT_MIN_FILL] = "min-fill",
		[FR_VERDICT_RATE] = "rate-limit",
		[FR_VERDICT_BUSY] = "busy",
	};

	return names[v];
}

void fr_policy_init(struct fr_policy *p, unsigned burst, uint64_t interval_ns, uint64_t now_ns)
{
	*p = (struct fr_policy){
		.burst = burst, .interval_ns = interval_ns, .tokens = burst, .filled_ns = now_ns};
}

double fr_policy_tokens(const struct fr_policy *p, uint64_t now_ns)
{
	const uint64_t elapsed_ns = now_ns > p->filled_ns ? now_ns - p->filled_ns : 0;

	if (!p->interval_ns)
		return p->burst;
	return FR_MIN(p->tokens + (double)elapsed_ns * p->burst / (double)p->interval_ns, (double)p->burst);
}

static void fill(struct fr_policy *p, uint64_t now_ns)
{
	p->tokens = fr_policy_tokens(p, now_ns);
	p->filled_ns = FR_MAX(p->filled_ns, now_ns);
}

void fr_policy_change(struct fr_policy *p, unsigned burst, uint64_t interval_ns, uint64_t now_ns)
{
	fill(p, now_ns);
	/* If there was no limit before this call, the bucket counts as full. */
	p->tokens = p->interval_ns ? FR_MIN(p->tokens, (double)burst) : burst;
	p->burst = burst;
	p->interval_ns = interval_ns;
}

static bool take_token(struct fr_policy *p, uint64_t now_ns)
{
	if (!p->interval_ns)
		return true;
	fill(p, now_ns);
	if (p->tokens < 1)
		return false;
	p->tokens -= 1;
	return true;
}

static enum fr_verdict decide(
	struct fr_policy *p, const struct fr_policy_trigger *t, const struct fr_policy_question *q)
{
	if (!t->enabled)
		return FR_VERDICT_DISABLED;
	if (q->now_ns < t->quiet_until_ns)
		return FR_VERDICT_COOLDOWN;
	if (t->only_switches)
		return FR_VERDICT_FIRE;
	if (q->can_coalesce)
		return FR_VERDICT_COALESCE;
	if (t->by_person)
		return FR_VERDICT_FIRE;
	if (q->ring_span_ns < t->min_fill_ns)
		return FR_VERDICT_MIN_FILL;
	return take_token(p, q->now_ns) ? FR_VERDICT_FIRE : FR_VERDICT_RATE;
}

enum fr_verdict fr_policy_ask(
	struct fr_policy *p, struct fr_policy_trigger *t, const struct fr_policy_question *q)
{
	const enum fr_verdict v = decide(p, t, q);

	t->counts[v]++;
	if (v == FR_VERDICT_FIRE || v == FR_VERDICT_COALESCE)
		t->quiet_until_ns = q->now_ns + FR_MIN(t->cooldown_ns, UINT64_MAX - q->now_ns);
	return v;
}

void fr_policy_revise(struct fr_policy *p, struct fr_policy_trigger *t, enum fr_verdict verdict)
{
	if (!t->by_person && p->interval_ns)
		p->tokens = FR_MIN(p->tokens + 1, (double)p->burst);
	t->counts[FR_VERDICT_FIRE]--;
	t->counts[verdict]++;
}

uint64_t fr_policy_next_token_ns(const struct fr_policy *p, uint64_t now_ns)
{
	const double missing = 1 - fr_policy_tokens(p, now_ns);

	if (!p->interval_ns || missing <= 0)
		return 0;
	if (!p->burst)
		return UINT64_MAX;
	return now_ns + (uint64_t)ceil(missing * (double)p->interval_ns / p->burst);
}
