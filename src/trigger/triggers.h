/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * All triggers of a recorder: their sources, the shared policy, and the last decisions. Main thread only.
 *
 *   source ─► fire() ─► policy ─► ops.dump() or ops.coalesce() ─► decision: stored, counted, ops.decided()
 */

#include "trigger/policy.h"
#include "source/source.h"

struct fr_arming;
struct fr_triggers;

/* The decision about one anomaly. */
struct fr_decision {
	uint64_t id; /* counts up */
	struct fr_cause cause;
	enum fr_verdict verdict;
	uint64_t at_ns;	  /* monotonic time of the decision */
	uint64_t dump_id; /* FIRE and COALESCE: the job */
	char file[64];	  /* FIRE and COALESCE: its file; empty while it is not written */
	char why[160];	  /* in words: "cools down for another 42 s", "shares the file of dump 7" */
	/* A storm makes one decision: REPEATS more anomalies were suppressed for the same reason, the newest
	   at LAST_NS. */
	uint64_t repeats, last_ns;
	bool first; /* the first one with this verdict of this trigger in a minute: log it */
};
#define FR_DECISIONS_REMEMBERED 256

enum fr_arming_lane { FR_ARMING_OWN, FR_ARMING_FILES, FR_ARMING_LANES };

struct fr_triggers_ops {
	/* Starts a dump because of CAUSE (FR_TRIGGER_UNSET: the window of [Dump]). 0 with the job's number;
	   1: coalesced with that job; -EAGAIN: the queue is full. */
	int (*dump)(void *ctx, const struct fr_cause *cause, uint64_t window_ns, uint64_t post_ns,
		uint64_t *ret_id);
	/* Adds CAUSE, of a trigger with this window, to a dump that waits and that a source caused. 0 with
	   the job's number, or -ENOENT: there is none. */
	int (*coalesce)(void *ctx, const struct fr_cause *cause, uint64_t window_ns, uint64_t post_ns,
		uint64_t *ret_id);
	uint64_t (*ring_span_ns)(void *ctx);
	/* Receives each decision (borrowed). Repeats are reported once a second. */
	void (*decided)(void *ctx, const struct fr_decision *decision);
	/* D: NAME could not be armed. NULL: it can be armed again, or it was armed for its new target. */
	void (*armed)(void *ctx, const char *name, const struct fr_diag *d);
	/* NULL, or called when the attempts to arm triggers have ended. */
	void (*settled)(void *ctx);
	void *ctx;
	/* The threads that open sources with a listen(); borrowed. FILES opens what is read from a user's
	   file, which may hang. OWN opens the rest and does not wait for such a file. NULL: open on this
	   thread. */
	struct fr_arming *arming[FR_ARMING_LANES];
	/* For tests: the class of each kind (FR_TRIGGER_KINDS). NULL: fr_source_class_for_kind(). */
	const struct fr_source_class *const *classes;
};

/* A row of `flightrecctl triggers`. The strings are valid until the triggers change. */
struct fr_trigger_info {
	const char *name, *source, *subject;
	enum fr_trigger_state {
		FR_TRIGGER_DISABLED,
		FR_TRIGGER_ARMED,
		FR_TRIGGER_FAILED,
		FR_TRIGGER_ARMING, /* the thread reads its file, or the kernel verifies its program */
		FR_TRIGGER_STATES
	} state;
	const struct fr_diag *diag;   /* FAILED: why */
	uint64_t arming_ns;	      /* ARMING: since this time */
	char behind[64];	      /* ARMING: the trigger that it waits for; "": none */
	struct fr_source_stats stats; /* zero if there is no source */
	uint64_t counts[FR_VERDICTS];
	uint64_t last_fired_ns;	 /* monotonic; 0: never */
	const char *last_file;	 /* "": none yet */
	uint64_t quiet_until_ns; /* end of the cool-down; 0: there was none */
	const struct fr_trigger_config *config;
};

/* Creates the triggers; none is armed. ENV: fire, ctx, application_socket and bpf_quiet_ns are set here. 0 or
   a negative errno. */
int fr_triggers_new(
	const struct fr_source_env *env, const struct fr_triggers_ops *ops, struct fr_triggers **ret);
struct fr_triggers *fr_triggers_free(struct fr_triggers *t);

/*
 * Puts CONFIGS (copied) in force. 0, or -ENOMEM: nothing has changed.
 *
 * - A source stays open, with its counters, if neither its configuration nor its file changed.
 * - A trigger that cannot be armed is reported to ops.armed(); the others are not affected.
 * - Counters of a trigger last as long as its name; fr_triggers_enable() lasts until the next configuration.
 * - "signal", "control", "application" and each built-in probe exist without a section. A probe that is not
 *   armed by default is disabled then.
 * - ALL has the defaults for cool-down and window, except that signal, control and timer have no cool-down,
 * and signal and control have the window of [Dump].
 */
int fr_triggers_configure(struct fr_triggers *t, const struct fr_triggers_config *all,
	const struct fr_trigger_config *configs, size_t n);

/* A person asks for a dump, by SIGUSR1 or a call. NAME is "signal" or "control". Neither tokens nor MinFill=
   apply, and the dump is not coalesced here. If the policy says FIRE, DUMP (with CTX) starts the dump; it
   returns as ops.dump() does. Returns the verdict; the newest decision has the reason. */
enum fr_verdict fr_triggers_request(struct fr_triggers *t, const char *name, const struct fr_cause *cause,
	int (*dump)(void *ctx, const struct fr_cause *cause, uint64_t *ret_id), void *ctx);

/* Acts as if NAME's source had fired with a value at its threshold. Takes no token and starts no cool-down.
   BY: who asked. 0 with the job's number; -ENOENT: no such trigger; -EAGAIN: suppressed; -EBUSY: it is being
   armed; or the error of arming. All with D. */
int fr_triggers_test(
	struct fr_triggers *t, const char *name, const char *by, uint64_t *ret_id, struct fr_diag *d);
/* Arms or disarms NAME. 0; 1: it is being armed; -ENOENT: no such trigger; or the error of arming, with D. */
int fr_triggers_enable(struct fr_triggers *t, const char *name, bool enable, struct fr_diag *d);

/* Rearms triggers whose control group, or whose function's file, has been replaced, and tries again to arm
   those that lacked one. Call it every few seconds. */
void fr_triggers_rearm_stale(struct fr_triggers *t);

/* Rearms the triggers that have an event on each CPU. Call it when CPUs came online. */
void fr_triggers_rearm_events(struct fr_triggers *t);

/* Dump ID was written to FILE (NULL: it failed). */
void fr_triggers_set_dump_file(struct fr_triggers *t, uint64_t id, const char *file);

size_t fr_triggers_count(const struct fr_triggers *t);
size_t fr_triggers_count_arming(const struct fr_triggers *t); /* those in state FR_TRIGGER_ARMING */
void fr_triggers_get_info(struct fr_triggers *t, size_t i, struct fr_trigger_info *ret);
/* The I-th newest decision, borrowed until the next decision; NULL: there are fewer. */
const struct fr_decision *fr_triggers_get_decision(const struct fr_triggers *t, size_t i);

/* A copy of the token bucket. */
struct fr_policy fr_triggers_get_policy(const struct fr_triggers *t);
