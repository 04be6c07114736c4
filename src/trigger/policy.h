/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Whether an anomaly makes a dump. Knows nothing of sources, files and clocks: times are given to it.
 *
 *   disabled? ─► cooling down? ─► a dump waits? ─► ring filled enough? ─► a token? ─► fire
 *                                  └► join it
 *
 * Every question to it ends in one verdict, which is counted; so for every trigger the anomalies asked about
 * are the sum of its verdicts.
 */

#include <stdbool.h>
#include <stdint.h>

enum fr_verdict {
	FR_VERDICT_FIRE,
	FR_VERDICT_COALESCE, /* shares the file of a dump that waits */
	FR_VERDICT_DISABLED, /* the switch is off: an anomaly that was on its way */
	FR_VERDICT_COOLDOWN,
	FR_VERDICT_MIN_FILL,
	FR_VERDICT_RATE,
	FR_VERDICT_BUSY, /* the dumper's queue is full: told to the policy afterwards */
	FR_VERDICTS,
};
/* "fire", "join", "disabled", "cool-down", "min-fill", "rate-limit", "busy" */
const char *fr_verdict_name(enum fr_verdict v);

/* The bucket of all. */
struct fr_policy {
	unsigned burst;	      /* tokens it holds */
	uint64_t interval_ns; /* in which it fills up; 0: no limit */
	double tokens;
	uint64_t filled_ns;
};

/* Of one trigger. */
struct fr_policy_trigger {
	bool enabled;
	bool free; /* takes no token, and fires without MinFill=: a person asked (signal, control, test) */
	uint64_t cooldown_ns, min_fill_ns;
	uint64_t quiet_until_ns; /* cooling down before */
	uint64_t counts[FR_VERDICTS];
};

void fr_policy_init(struct fr_policy *p, unsigned burst, uint64_t interval_ns, uint64_t now_ns);
/* Other limits, from now on; what is in the bucket stays, as far as it fits. */
void fr_policy_change(struct fr_policy *p, unsigned burst, uint64_t interval_ns, uint64_t now_ns);

struct fr_policy_question {
	uint64_t now_ns;
	uint64_t ring_span_ns; /* how much time the ring holds */
	bool can_coalesce; /* a dump of a trigger waits for its post-trigger time, and has room for a cause */
};
enum fr_verdict fr_policy_ask(
	struct fr_policy *p, struct fr_policy_trigger *t, const struct fr_policy_question *q);
/* The dump that FIRE or JOIN promised was refused: gives the token back, and counts BUSY in its place. The
   cool-down goes on. */
void fr_policy_refused(struct fr_policy *p, struct fr_policy_trigger *t, enum fr_verdict verdict);
/* The dump that FIRE promised became one file with another that waits: gives the token back, and counts JOIN
   in its place. */
void fr_policy_coalesced(struct fr_policy *p, struct fr_policy_trigger *t);
/* What the bucket holds. */
double fr_policy_tokens(const struct fr_policy *p, uint64_t now_ns);
/* When a token will be there, monotonic; 0: now; UINT64_MAX: never, the bucket holds none. For "why". */
uint64_t fr_policy_next_token_ns(const struct fr_policy *p, uint64_t now_ns);
