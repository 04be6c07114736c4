/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * All triggers of a recorder, with their sources, the policy that they share, and the last decisions
 * (verdicts with time and reason). Only the main thread calls these functions.
 *
 *   source ─► fire() ─► policy ─► ops.dump() or ops.coalesce() ─► decision: stored, counted, ops.decided()
 */

#include "trigger/policy.h"
#include "source/source.h"

struct fr_arming;
struct fr_switch_record;
struct fr_triggers;

/* The decision about one anomaly. */
struct fr_decision {
	uint64_t id; /* counts up */
	struct fr_cause cause;
	enum fr_verdict verdict;
	uint64_t at_ns;	  /* monotonic time of the decision */
	uint64_t dump_id; /* FIRE and COALESCE: number of the job; 0: the trigger only switches events */
	char file[64];	  /* FIRE and COALESCE: name of the dump's file; "" until the file is written */
	char why[160];	  /* the reason: "cools down for another 42 s", "shares the file of dump 7" */
	/* Action=fleet: the selectors, in the format of argz_add(3), and the window for the fleet (monotonic;
	   from_ns 0: the whole ring). fleet_len 0: the decision does not ask the fleet. */
	char fleet[FR_TRIGGER_FLEET_SIZE];
	size_t fleet_len;
	uint64_t from_ns, to_ns;
	/* A storm of anomalies makes one decision. `repeats` is the number of later anomalies that were
	   suppressed with the same verdict. `last_ns` is the time of the newest of these anomalies. */
	uint64_t repeats, last_ns;
	bool first; /* the receiver logs the decision: in the last minute, no report of this trigger and
		       verdict had `first` set */
};
#define FR_DECISIONS_REMEMBERED 256

enum fr_arming_lane { FR_ARMING_OWN, FR_ARMING_FILES, FR_ARMING_LANES };

struct fr_triggers_ops {
	/* Starts a dump because of CAUSE. If WINDOW_NS or POST_NS is FR_TRIGGER_UNSET, the value of [Dump] is
	   used. Returns 0 with the number of the new job; 1 with the number of the waiting job that got the
	   cause; or -EAGAIN if the queue is full. */
	int (*dump)(void *ctx, const struct fr_cause *cause, uint64_t window_ns, uint64_t post_ns,
		uint64_t *ret_id);
	/* Adds CAUSE to a waiting dump that a source (not a person) caused. WINDOW_NS and POST_NS are the
	   values of the cause's trigger. Returns 0 with the number of the job; or -ENOENT if no dump of a
	   source waits. */
	int (*coalesce)(void *ctx, const struct fr_cause *cause, uint64_t window_ns, uint64_t post_ns,
		uint64_t *ret_id);
	/* Carries out the actions of CONFIG that switch events. Writes what it has done into RET: "raised
	   sched:sched_switch". */
	void (*act)(void *ctx, const struct fr_trigger_config *config, const struct fr_cause *cause,
		char *ret, size_t size);
	/* Sets *RET_FROM_NS and *RET_TO_NS to the window of a trigger with these values around TIME_NS. */
	void (*window)(void *ctx, uint64_t window_ns, uint64_t post_ns, uint64_t time_ns,
		uint64_t *ret_from_ns, uint64_t *ret_to_ns);
	uint64_t (*ring_span_ns)(void *ctx);
	/* Receives each decision (borrowed). For each trigger, repeats (fr_decision.repeats) are reported at
	   most once a second. */
	void (*decided)(void *ctx, const struct fr_decision *decision);
	/* Called with the reason D when the trigger NAME could not be armed. Called with D = NULL
	   when NAME has been armed after a failure, or has been armed again for a new target (control
	   group or file). */
	void (*armed)(void *ctx, const char *name, const struct fr_diag *d);
	/* NULL, or: see struct fr_source_env. The triggers with the name NAME. */
	int (*find_switch)(void *ctx, const char *event, uint32_t *ret_slot, struct fr_diag *d);
	void (*switched)(void *ctx, const char *name, const struct fr_switch_record *record);
	/* NULL, or a function that is called each time when the arming threads have finished one or more
	   attempts to arm a trigger. */
	void (*settled)(void *ctx);
	void *ctx;
	/* The threads that open the sources whose class has a function listen(); borrowed. FR_ARMING_OWN
	   opens the built-in probes. FR_ARMING_FILES opens the other sources: these read a file that a person
	   names, which may be on a file system that hangs. If a pointer is NULL, the main thread opens the
	   sources of that thread itself. */
	struct fr_arming *arming[FR_ARMING_LANES];
	/* For tests: an array with the class of each kind. NULL: fr_source_class_for_kind() is used. */
	const struct fr_source_class *const *classes;
};

/* A row of `flightrecctl triggers`. The strings are valid until the triggers change. */
struct fr_trigger_info {
	const char *name, *source, *subject;
	enum fr_trigger_state {
		FR_TRIGGER_DISABLED,
		FR_TRIGGER_ARMED,
		FR_TRIGGER_FAILED,
		FR_TRIGGER_ARMING, /* a thread reads the file, or the kernel verifies the program */
		FR_TRIGGER_STATES
	} state;
	const struct fr_diag *diag;   /* FAILED: why */
	uint64_t arming_ns;	      /* ARMING: time since the attempt began */
	char behind[64];	      /* ARMING: the trigger that the thread arms before this
					 trigger; "": none */
	struct fr_source_stats stats; /* its counters are sums over the current source and all
					 earlier sources */
	uint64_t counts[FR_VERDICTS];
	uint64_t last_fired_ns;	 /* monotonic time of the last FIRE or COALESCE; 0: none */
	const char *last_file;	 /* file of the last dump; "": none yet */
	uint64_t quiet_until_ns; /* monotonic end of the last cool-down; 0: there was none */
	const struct fr_trigger_config *config;
};

/* Creates an empty list of triggers. Copies ENV, but sets the members fire, find_switch, switched, ctx,
   application_socket and bpf_quiet_ns of the copy. Returns 0 or a negative errno. */
int fr_triggers_new(
	const struct fr_source_env *env, const struct fr_triggers_ops *ops, struct fr_triggers **ret);
struct fr_triggers *fr_triggers_free(struct fr_triggers *t);

/*
 * Puts CONFIGS (copied) in force. Returns 0; or -ENOMEM, and then no trigger has changed.
 *
 * - A source stays open, with its counters, if its configuration, its file and its cgroup are the same.
 * - A trigger that cannot be armed is reported to ops.armed(), and does not affect the other triggers.
 * - The counters of a trigger are kept as long as a trigger of the same name exists. The effect of
 *   fr_triggers_enable() ends when the next configuration is put in force.
 * - "signal", "control", "application", "fleet" and each built-in probe exist even if they have no section. A
 *   probe without a section is enabled only if it is armed by default.
 * - The parameter `all` has the defaults for all triggers. Two defaults are different: signal, control,
 *   fleet and timers have no cool-down, and signal, control and fleet have the window of [Dump].
 */
int fr_triggers_configure(struct fr_triggers *t, const struct fr_triggers_config *all,
	const struct fr_trigger_config *configs, size_t n);

/* Handles a request by SIGUSR1 or a call of the control socket. NAME is "signal", "control" or "fleet". A
   request of a person ("signal", "control") takes no token, and MinFill= does not apply. The policy does not
   add the request to a dump that waits. If the verdict is FIRE, calls dump(), which starts the dump and
   returns the same as ops.dump(). Returns the verdict; the newest decision of the trigger NAME has the
   reason. */
enum fr_verdict fr_triggers_request(struct fr_triggers *t, const char *name, const struct fr_cause *cause,
	int (*dump)(void *ctx, const struct fr_cause *cause, uint64_t *ret_id), void *ctx);

/* Acts as if the source of the trigger NAME had reported a value at its threshold. Cool-down, MinFill= and
   rate limit do not apply. Takes no token and starts no cool-down. The parameter `by` is the name of the
   person. Returns 0 with the number of the job; or, with a message in D: -ENOENT if there is no trigger NAME;
   -EAGAIN if the anomaly is suppressed; -EBUSY if the trigger is still being armed; or the error of the last
   attempt to arm it. */
int fr_triggers_test(
	struct fr_triggers *t, const char *name, const char *by, uint64_t *ret_id, struct fr_diag *d);
/* Arms or disarms NAME. Returns 0; 1 if an arming thread will arm it; or, with a message in D: -ENOENT if
   there is no trigger NAME; or the error of the attempt to arm it. */
int fr_triggers_enable(struct fr_triggers *t, const char *name, bool enable, struct fr_diag *d);

/* Rearms each trigger whose control group, or whose file of Function= or USDT=, has been replaced. Also tries
   again to arm triggers whose control group or file did not exist at the last attempt. Call this function
   every few seconds. */
void fr_triggers_rearm_stale(struct fr_triggers *t);

/* Rearms the triggers that have an event on each CPU. Call this function when a CPU has come online. */
void fr_triggers_rearm_events(struct fr_triggers *t);

/* Stores FILE as the file of dump ID. Does nothing if FILE is NULL, which means that the dump has failed. */
void fr_triggers_set_dump_file(struct fr_triggers *t, uint64_t id, const char *file);

size_t fr_triggers_count(const struct fr_triggers *t);
size_t fr_triggers_count_arming(const struct fr_triggers *t); /* triggers in state FR_TRIGGER_ARMING */
void fr_triggers_get_info(struct fr_triggers *t, size_t i, struct fr_trigger_info *ret);
/* Returns decision I, counted from the newest (0); or NULL if there are fewer decisions. The pointer is valid
   until the next decision. */
const struct fr_decision *fr_triggers_get_decision(const struct fr_triggers *t, size_t i);

/* Returns a copy of the token bucket. */
struct fr_policy fr_triggers_get_policy(const struct fr_triggers *t);
