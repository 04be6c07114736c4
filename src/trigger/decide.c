// SPDX-License-Identifier: GPL-2.0-or-later
/* Turns an anomaly into a decision. */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/thread.h"
#include "base/units.h"
#include "trigger/triggers_private.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* For one trigger: least time between a call of ops.decided() and the next call for a repeat. */
#define REPEAT_PERIOD_NS FR_NSEC_PER_SEC
/* For one trigger and verdict: least time between two reports that have fr_decision.first set. */
#define LOG_PERIOD_NS (60 * FR_NSEC_PER_SEC)

static void explain(const struct fr_triggers *t, const struct fr_policy_trigger *p,
	const struct fr_policy_question *q, struct fr_decision *d)
{
	char a[FR_UNIT_SIZE], b[FR_UNIT_SIZE];
	const uint64_t token_ns = fr_policy_next_token_ns(&t->policy, q->now_ns);

#define WHY(...) snprintf(d->why, sizeof(d->why), __VA_ARGS__)
	switch (d->verdict) {
	case FR_VERDICT_FIRE:
		if (!p->only_switches)
			WHY("dump %" PRIu64, d->dump_id);
		break;
	case FR_VERDICT_COALESCE:
		WHY("shares the file of dump %" PRIu64, d->dump_id);
		break;
	case FR_VERDICT_DISABLED:
		WHY("the trigger is disabled");
		break;
	case FR_VERDICT_COOLDOWN:
		WHY("cools down for another %s", fr_duration_format(p->quiet_until_ns - q->now_ns, a));
		break;
	case FR_VERDICT_MIN_FILL:
		WHY("the ring holds %s, and MinFill= asks for %s", fr_duration_format(q->ring_span_ns, a),
			fr_duration_format(p->min_fill_ns, b));
		break;
	case FR_VERDICT_RATE:
		if (token_ns == UINT64_MAX) {
			WHY("RateLimit= allows no dump");
			break;
		}
		WHY("RateLimit= of %u in %s is used up; the next dump is possible in %s", t->policy.burst,
			fr_duration_format(t->policy.interval_ns, a),
			fr_duration_format(token_ns - q->now_ns, b));
		break;
	case FR_VERDICT_BUSY:
	default:
		WHY("too many dumps are waiting already");
		break;
	}
#undef WHY
}

static bool makes_dump(enum fr_verdict v)
{
	return v == FR_VERDICT_FIRE || v == FR_VERDICT_COALESCE;
}

/* Carries out Action=fleet: whoever watches the decisions asks the fleet. It depends on all of the policy,
   like a dump. */
static void ask_fleet(const struct fr_triggers *t, const struct fr_trigger *g, struct fr_decision *d)
{
	const struct fr_trigger_config *c = &g->config;
	const size_t len = strlen(d->why);

	if (!makes_dump(d->verdict) || !t->ops.window)
		return;
	d->fleet_len = fr_trigger_config_fleet(c, d->fleet);
	if (!d->fleet_len)
		return;
	t->ops.window(t->ops.ctx, c->window_ns, c->post_ns, d->cause.time_ns, &d->from_ns, &d->to_ns);
	snprintf(d->why + len, sizeof(d->why) - len, "%sasks the fleet: %.100s%s", len ? "; " : "", d->fleet,
		strlen(d->fleet) + 1 < d->fleet_len ? ", …" : "");
}

/* Carries out the actions that switch events. They do not depend on MinFill= and RateLimit=, which limit
   dumps. */
static void act(struct fr_triggers *t, const struct fr_trigger *g, struct fr_decision *d)
{
	char done[sizeof(d->why)] = "";
	const size_t len = strlen(d->why);

	if (!g->config.actions || !t->ops.act || d->verdict == FR_VERDICT_DISABLED ||
		d->verdict == FR_VERDICT_COOLDOWN)
		return;
	t->ops.act(t->ops.ctx, &g->config, &d->cause, done, sizeof(done));
	snprintf(d->why + len, sizeof(d->why) - len, "%s%s", len && done[0] ? "; " : "", done);
}

/* Returns the latest decision of G if D only repeats it: both decisions have the same verdict, and make no
   dump. Otherwise returns NULL. */
static struct fr_decision *find_repeated(
	struct fr_triggers *t, const struct fr_trigger *g, const struct fr_decision *d)
{
	struct fr_decision *latest = &t->decisions[g->latest_id % FR_DECISIONS_REMEMBERED];

	return g->latest_id && latest->id == g->latest_id && latest->verdict == d->verdict &&
			       !makes_dump(d->verdict)
		       ? latest
		       : NULL;
}

static void report(struct fr_triggers *t, struct fr_trigger *g, struct fr_decision *d, uint64_t now_ns)
{
	uint64_t *first_ns = &g->first_ns[d->verdict];

	g->reported_ns = now_ns;
	d->first = !*first_ns || now_ns - *first_ns >= LOG_PERIOD_NS;
	if (d->first)
		*first_ns = now_ns;
	t->ops.decided(t->ops.ctx, d);
}

/* Stores D among the last decisions, and reports it. If D repeats the latest decision of G, does not store D,
   but counts it in the latest decision, and reports the latest decision at most once a second. Returns the
   stored decision. */
static struct fr_decision *remember(struct fr_triggers *t, struct fr_trigger *g, const struct fr_decision *d)
{
	struct fr_decision *slot = find_repeated(t, g, d);
	const uint64_t now_ns = d->at_ns;

	if (slot) {
		slot->repeats++;
		slot->last_ns = now_ns;
		memcpy(slot->why, d->why, sizeof(slot->why));
		if (now_ns - g->reported_ns >= REPEAT_PERIOD_NS)
			report(t, g, slot, now_ns);
		return slot;
	}
	slot = &t->decisions[t->next_id % FR_DECISIONS_REMEMBERED];
	*slot = *d;
	fr_cause_fill_from_proc(&slot->cause);
	slot->id = g->latest_id = t->next_id++;
	if (makes_dump(d->verdict)) {
		g->last_fired_ns = now_ns;
		g->last_dump_id = d->dump_id;
	}
	report(t, g, slot, now_ns);
	return slot;
}

static void fill_cause(const struct fr_trigger *g, struct fr_cause *c, uint64_t now_ns)
{
	if (!c->trigger[0])
		snprintf(c->trigger, sizeof(c->trigger), "%s", g->config.name);
	if (!c->source)
		c->source = g->class ? g->class->name : g->config.name;
	if (!c->time_ns)
		c->time_ns = now_ns;
}

/* Adds the cause to the waiting dump. If the dumper has begun to write that dump in the meantime, asks the
   policy again, with can_coalesce = false. Returns the verdict. */
static enum fr_verdict coalesce(struct fr_triggers *t, const struct fr_trigger *g,
	struct fr_policy_trigger *p, struct fr_policy_question *q, const struct fr_policy_trigger *p_before,
	struct fr_decision *d)
{
	fr_cause_fill_from_proc(&d->cause);
	if (t->ops.coalesce(t->ops.ctx, &d->cause, g->config.window_ns, g->config.post_ns, &d->dump_id) == 0)
		return FR_VERDICT_COALESCE;
	*p = *p_before; /* undo the verdict COALESCE, which took no token */
	q->can_coalesce = false;
	return fr_policy_ask(&t->policy, p, q);
}

static enum fr_verdict start_dump(struct fr_triggers *t, struct fr_policy_trigger *p, struct fr_decision *d,
	fr_trigger_dump dump, void *dump_ctx)
{
	enum fr_verdict verdict;
	int r;

	fr_cause_fill_from_proc(&d->cause);
	r = dump(dump_ctx, &d->cause, &d->dump_id);
	verdict = r == 0 ? FR_VERDICT_FIRE : r > 0 ? FR_VERDICT_COALESCE : FR_VERDICT_BUSY;
	if (verdict != FR_VERDICT_FIRE)
		fr_policy_revise(&t->policy, p, verdict);
	return verdict;
}

const struct fr_decision *fr_trigger_decide(struct fr_triggers *t, struct fr_trigger *g,
	struct fr_policy_trigger *p, const struct fr_cause *cause, bool may_coalesce, fr_trigger_dump dump,
	void *dump_ctx)
{
	const struct fr_policy_trigger before = *p;
	struct fr_policy_question q = {.now_ns = fr_monotonic_ns(), .can_coalesce = may_coalesce};
	struct fr_decision d = {.cause = *cause, .at_ns = q.now_ns, .last_ns = q.now_ns};

	fill_cause(g, &d.cause, q.now_ns);
	if (p->min_fill_ns && !p->by_person) /* only if needed: ring_span_ns() takes the ring's lock */
		q.ring_span_ns = t->ops.ring_span_ns(t->ops.ctx);
	d.verdict = fr_policy_ask(&t->policy, p, &q);
	if (d.verdict == FR_VERDICT_COALESCE)
		d.verdict = coalesce(t, g, p, &q, &before, &d);
	if (d.verdict == FR_VERDICT_FIRE && !p->only_switches)
		d.verdict = start_dump(t, p, &d, dump, dump_ctx);
	explain(t, p, &q, &d);
	act(t, g, &d);
	ask_fleet(t, g, &d);
	return remember(t, g, &d);
}

/* The context of a dump that a source causes. */
struct automatic {
	struct fr_triggers *t;
	const struct fr_trigger_config *config;
};

static int dump_automatic(void *ctx, const struct fr_cause *cause, uint64_t *ret_id)
{
	const struct automatic *a = ctx;

	return a->t->ops.dump(a->t->ops.ctx, cause, a->config->window_ns, a->config->post_ns, ret_id);
}

void fr_trigger_fire(void *triggers, void *trigger, const struct fr_cause *cause)
{
	struct fr_trigger *g = trigger;
	struct automatic a = {triggers, &g->config};

	fr_trigger_decide(a.t, g, &g->policy, cause, true, dump_automatic, &a);
}

enum fr_verdict fr_triggers_request(struct fr_triggers *t, const char *name, const struct fr_cause *cause,
	fr_trigger_dump dump, void *ctx)
{
	struct fr_trigger *g = fr_trigger_find(t, name);

	fr_thread_assert(FR_THREAD_MAIN);
	return fr_trigger_decide(t, g, &g->policy, cause, false, dump, ctx)->verdict;
}

/* Makes the cause that the source of G would report for a value at its threshold. */
static struct fr_cause test_cause(struct fr_trigger *g, const char *by)
{
	struct fr_source_stats stats = {0};
	struct fr_cause c = {.cpu = -1};

	if (g->source)
		fr_source_get_stats(g->source, &stats);
	c.unit = stats.unit;
	c.value = c.threshold = stats.threshold;
	snprintf(c.reason, sizeof(c.reason), "test");
	snprintf(c.detail, sizeof(c.detail), "by %s", by);
	return c;
}

int fr_triggers_test(
	struct fr_triggers *t, const char *name, const char *by, uint64_t *ret_id, struct fr_diag *d)
{
	struct fr_trigger *g = fr_trigger_find_named(t, name, d);
	const struct fr_decision *decision;
	struct fr_policy_trigger p;
	struct automatic a;
	struct fr_cause c;

	fr_thread_assert(FR_THREAD_MAIN);
	if (!g)
		return -ENOENT;
	if (g->policy.enabled && g->job && !g->source)
		return fr_fail(d, -EBUSY, "wait until `flightrecctl triggers` shows that it is armed",
			"the trigger %s is still being armed", name);
	if (g->policy.enabled && g->diag.code) {
		*d = g->diag;
		return g->diag.code;
	}
	a = (struct automatic){t, &g->config};
	c = test_cause(g, by);
	p = g->policy;
	p.by_person = true;
	p.quiet_until_ns = p.cooldown_ns = 0;
	decision = fr_trigger_decide(t, g, &p, &c, true, dump_automatic, &a);
	memcpy(g->policy.counts, p.counts, sizeof(p.counts));
	if (!makes_dump(decision->verdict))
		return fr_fail(d, -EAGAIN,
			decision->verdict == FR_VERDICT_DISABLED
				? "enable the trigger with `flightrecctl enable`"
				: NULL,
			"%s: suppressed: %s", name, decision->why);
	*ret_id = decision->dump_id;
	return 0;
}

void fr_triggers_set_dump_file(struct fr_triggers *t, uint64_t id, const char *file)
{
	if (!file)
		return;
	for (size_t i = 0; i < t->n; i++)
		if (id && t->list[i]->last_dump_id == id)
			snprintf(t->list[i]->last_file, sizeof(t->list[i]->last_file), "%s", file);
	for (size_t i = 0; i < FR_DECISIONS_REMEMBERED; i++)
		if (t->decisions[i].id && t->decisions[i].dump_id == id &&
			makes_dump(t->decisions[i].verdict))
			snprintf(t->decisions[i].file, sizeof(t->decisions[i].file), "%s", file);
}

const struct fr_decision *fr_triggers_get_decision(const struct fr_triggers *t, size_t i)
{
	const uint64_t n = FR_MIN(t->next_id - 1, (uint64_t)FR_DECISIONS_REMEMBERED);

	return i < n ? &t->decisions[(t->next_id - 1 - i) % FR_DECISIONS_REMEMBERED] : NULL;
}
