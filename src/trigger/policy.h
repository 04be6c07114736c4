/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The policy decides whether an anomaly makes a dump. The policy does not depend on sources, files or clocks:
 * the caller passes the time.
 *
 *   disabled? ─► cooling down? ─► does a dump wait? ─► ring filled enough? ─► a token? ─► fire
 *                                  └► coalesce
 *
 * fr_policy_ask() returns one verdict (the answer of the policy) for each anomaly, and counts the verdict in
 * the trigger. So the sum of a trigger's counts is the number of its anomalies.
 */

#include <stdbool.h>
#include <stdint.h>

enum fr_verdict {
	FR_VERDICT_FIRE,
	FR_VERDICT_COALESCE, /* the cause goes into a dump that waits */
	FR_VERDICT_DISABLED, /* a person asked (signal, control, test), but the trigger is disabled */
	FR_VERDICT_COOLDOWN,
	FR_VERDICT_MIN_FILL,
	FR_VERDICT_RATE,
	FR_VERDICT_BUSY, /* the dumper's queue is full; only fr_policy_revise() counts this verdict */
	FR_VERDICTS,
};
/* "fire", "join", "disabled", "cool-down", "min-fill", "rate-limit", "busy" */
const char *fr_verdict_name(enum fr_verdict v);

/* The token bucket that all triggers share. */
struct fr_policy {
	unsigned burst;	      /* capacity in tokens */
	uint64_t interval_ns; /* time in which an empty bucket becomes full; 0: no limit */
	double tokens;	      /* tokens in the bucket at the time filled_ns */
	uint64_t filled_ns;
};

/* The state of one trigger. */
struct fr_policy_trigger {
	bool enabled;
	bool by_person;	    /* a person asks for the dump (signal, control, test): it takes no token, and
			       min_fill_ns does not apply */
	bool only_switches; /* its actions make no dump here: they switch events or ask the fleet. It takes no
			       token either, needs no filled ring, and its cause goes into no dump */
	uint64_t cooldown_ns, min_fill_ns;
	uint64_t quiet_until_ns; /* end of the cool-down */
	uint64_t counts[FR_VERDICTS];
};

void fr_policy_init(struct fr_policy *p, unsigned burst, uint64_t interval_ns, uint64_t now_ns);
/* Sets new limits. The bucket keeps its tokens, but at most BURST. If there was no limit before, the bucket
   is full after the call. */
void fr_policy_change(struct fr_policy *p, unsigned burst, uint64_t interval_ns, uint64_t now_ns);

struct fr_policy_question {
	uint64_t now_ns;
	uint64_t ring_span_ns; /* the time that the ring covers */
	bool can_coalesce;     /* a dump waits and has room for a cause */
};
enum fr_verdict fr_policy_ask(
	struct fr_policy *p, struct fr_policy_trigger *t, const struct fr_policy_question *q);
/* Call this function when fr_policy_ask() has just returned FIRE for T, but the result is another verdict:
   VERDICT, which is COALESCE or BUSY. Puts the token back and corrects the counts, but does not end the
   cool-down that FIRE began. */
void fr_policy_revise(struct fr_policy *p, struct fr_policy_trigger *t, enum fr_verdict verdict);
/* Returns the number of tokens in the bucket at NOW_NS. */
double fr_policy_tokens(const struct fr_policy *p, uint64_t now_ns);
/* Returns the monotonic time of the next token; 0 if there is a token now, or if there is no limit;
   UINT64_MAX if no token will ever come. */
uint64_t fr_policy_next_token_ns(const struct fr_policy *p, uint64_t now_ns);
