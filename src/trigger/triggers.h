/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * All triggers of a recorder: their sources, the one policy, and the last decisions. Main thread.
 *
 *   source ─► fire() ─► policy ─► ops.dump() ─► decision (remembered, counted, told to who watches)
 */

#include "trigger/policy.h"
#include "source/source.h"

struct fr_arming;
struct fr_triggers;

/* What was decided of one anomaly. */
struct fr_decision {
	uint64_t id; /* counts up */
	struct fr_cause cause;
	enum fr_verdict verdict;
	uint64_t at_ns;	  /* monotonic: when it was decided */
	uint64_t dump_id; /* of FIRE and JOIN: the job; its file is known later (fr_triggers_set_dump_file())
			   */
	char file[64];	  /* of FIRE and JOIN, once it is written; empty: not yet, or it failed */
	char why[160];	  /* in words: "cools down for another 42 s", "shares the file of dump 7" */
	/* A storm makes one decision of its trigger, and not one for each: so many more were suppressed like
	   this one since, the newest at LAST_NS. */
	uint64_t repeats, last_ns;
	bool first; /* with this verdict of its trigger for a minute: worth a line in a log */
};
#define FR_DECISIONS_REMEMBERED 256

enum fr_arming_lane { FR_ARMING_OWN, FR_ARMING_FILES, FR_ARMING_LANES };

struct fr_triggers_ops {
	/* Dump because of CAUSE with this window (FR_TRIGGER_UNSET: the configuration's). 0 with the job's
	   number; 1: joined that one; -EAGAIN: refused, the queue is full. */
	int (*dump)(void *ctx, const struct fr_cause *cause, uint64_t window_ns, uint64_t post_ns,
		uint64_t *ret_id);
	/* Add CAUSE, of a trigger that has this window, to an automatic dump that waits: 0 with its number,
	   -ENOENT: none. */
	int (*coalesce)(void *ctx, const struct fr_cause *cause, uint64_t window_ns, uint64_t post_ns,
		uint64_t *ret_id);
	uint64_t (*ring_span_ns)(void *ctx);
	/* A decision was made (borrowed): log, watchers. Of repeats, one call a second. */
	void (*decided)(void *ctx, const struct fr_decision *decision);
	/* A trigger could not be armed, or could again: D says why (NULL: it is armed now). */
	void (*armed)(void *ctx, const char *name, const struct fr_diag *d);
	/* NULL, or: triggers that were being armed are, or could not be. */
	void (*settled)(void *ctx);
	void *ctx;
	/* What opens the sources that have a listen(); borrowed. FILES: those that are read from a file of a
	   person's, which may hang; OWN: the others, which do not wait for it. NULL: all are opened at once.
	 */
	struct fr_arming *arming[FR_ARMING_LANES];
	/* The class of each kind (FR_TRIGGER_KINDS of them), or NULL: those of source.h. */
	const struct fr_source_class *const *classes;
};

/* One row of `flightrecctl triggers`. Strings are borrowed until the triggers change. */
struct fr_trigger_info {
	const char *name, *source, *subject;
	enum fr_trigger_state {
		FR_TRIGGER_DISABLED,
		FR_TRIGGER_ARMED,
		FR_TRIGGER_FAILED,
		FR_TRIGGER_ARMING, /* a file is read for it, or the kernel looks at its program */
		FR_TRIGGER_STATES
	} state;
	const struct fr_diag *diag;   /* of FAILED */
	uint64_t arming_ns;	      /* of ARMING: for so long */
	char behind[64];	      /* of ARMING: the trigger that it waits for; "": none */
	struct fr_source_stats stats; /* zero where there is no source */
	uint64_t counts[FR_VERDICTS];
	uint64_t last_fired_ns;	 /* monotonic; 0: never */
	const char *last_file;	 /* "" none yet */
	uint64_t quiet_until_ns; /* cooling down before; 0: not yet once */
	const struct fr_trigger_config *config;
};

/* ENV's fire, ctx and application_socket are set here; EVENT, self … by the caller. Nothing is armed yet. */
int fr_triggers_new(
	const struct fr_source_env *env, const struct fr_triggers_ops *ops, struct fr_triggers **ret);
struct fr_triggers *fr_triggers_free(struct fr_triggers *t);

/* Arm what CONFIGS (copied deep) say, disarm what is no longer there; whose source is the same, with the file
   that it was opened from, stays armed with its counters. A trigger that cannot be armed is told to ops.armed
   and does not hinder the others. Counters of a name live as long as the name. An enable/disable by hand
   lasts until the next configure. "signal", "control", "application" and each probe that is built in are
   there without a section, a probe that is not armed by default as a disabled one. Who says nothing of a
   cool-down has that of ALL, but for what a person or a clock asks for (signal, control, timer): none. Who
   says nothing of a window has that of ALL, but for what a person asks for. 0;
   -ENOMEM, and then nothing has changed.
 */
int fr_triggers_configure(struct fr_triggers *t, const struct fr_triggers_config *all,
	const struct fr_trigger_config *configs, size_t n);

/* An anomaly from outside of any source: SIGUSR1, a call. NAME is "signal" or "control". A person asked:
   neither tokens nor MinFill= are in the way, and the window is the caller's, so that no other dump is joined
   here. DUMP (with CTX) makes it where the policy says FIRE, and returns as ops.dump() does. The verdict; the
   newest decision says why. */
enum fr_verdict fr_triggers_request(struct fr_triggers *t, const char *name, const struct fr_cause *cause,
	int (*dump)(void *ctx, const struct fr_cause *cause, uint64_t *ret_id), void *ctx);

/* As if NAME's source had fired with a value at its threshold ("test"); goes through the policy without
   taking a token and without cool-down. BY: who wants it. 0 with *RET_ID of the dump; -ENOENT; -EAGAIN where
   the policy suppressed it; or as arming failed. All with D. */
int fr_triggers_test(
	struct fr_triggers *t, const char *name, const char *by, uint64_t *ret_id, struct fr_diag *d);
/* Arm or disarm NAME by hand. 1: it is being armed; -ENOENT; or as arming fails; with D. */
int fr_triggers_enable(struct fr_triggers *t, const char *name, bool enable, struct fr_diag *d);

/* To be called every few seconds: a trigger whose control group, or whose function's file, is another one by
   now is armed for that one; so is one that could not be armed because either was not there. */
void fr_triggers_rearm_stale(struct fr_triggers *t);

/* CPUs came online: what has an event on each of them opens these anew. */
void fr_triggers_rearm_events(struct fr_triggers *t);

/* FILE (NULL: it failed) is what came of dump ID. */
void fr_triggers_set_dump_file(struct fr_triggers *t, uint64_t id, const char *file);

size_t fr_triggers_count(const struct fr_triggers *t);
size_t fr_triggers_count_arming(const struct fr_triggers *t); /* those with that state */
void fr_triggers_get_info(struct fr_triggers *t, size_t i, struct fr_trigger_info *ret);
/* The I-th newest decision, or NULL. Borrowed until the next one. */
const struct fr_decision *fr_triggers_get_decision(const struct fr_triggers *t, size_t i);

/* The bucket of all, as it is. */
struct fr_policy fr_triggers_get_policy(const struct fr_triggers *t);
