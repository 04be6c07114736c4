/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Shared by the four files that implement triggers.h: triggers.c (arming, state), configure.c (the list of
   triggers), follow.c (rearming when a target changes), decide.c (decisions). */

#include "trigger/arming.h"
#include "trigger/triggers.h"

/* Flags of fr_trigger_arm(). */
enum fr_arm {
	FR_ARM_AGAIN = 1,  /* a timer tries again: an error is reported only if it differs from
			      the last error */
	FR_ARM_BESIDE = 2, /* keep the current source, as fr_trigger.older, beside the new source */
	FR_ARM_INSTEAD = 4 /* close the current source, even if the new source cannot be opened */
};

struct fr_trigger {
	struct fr_trigger_config config;     /* with all defaults: cooldown_ns and min_fill_ns are set */
	const struct fr_source_class *class; /* NULL: signal, control */
	struct fr_source *source;	     /* NULL: not armed */
	struct fr_source *older; /* the source for the previous version of the file, because processes can
				    still run that version; or NULL */
	struct fr_source_stats closed_stats; /* counters of closed sources */
	struct fr_diag diag;		     /* error of the last attempt to arm; code 0: none */
	struct fr_arming_job *job;	     /* the job that opens the next source; or NULL */
	unsigned arm_flags;		     /* FR_ARM_… of the last attempt */
	bool failed_before;		     /* the trigger had an error when the last attempt began */
	struct fr_policy_trigger policy;
	char subject[64]; /* timer: the interval in words; other kinds: "" */

	/* follow.c: the last attempt to arm the trigger */
	uint64_t cgroup_id;	     /* id of CGroup= at that time; 0: none */
	uint64_t tried_ns, pause_ns; /* time of the attempt; pause until the next attempt */
	bool is_frequent;	     /* the attempt came soon after the previous attempt, so
					the pause grows */

	/* decide.c */
	uint64_t last_fired_ns, last_dump_id;
	char last_file[sizeof(((struct fr_decision *)0)->file)];
	uint64_t latest_id;		/* id of the newest decision; 0: none */
	uint64_t reported_ns;		/* time of the last ops.decided() for this trigger */
	uint64_t first_ns[FR_VERDICTS]; /* for each verdict: time of the last report with fr_decision.first */

	/* configure.c */
	bool is_kept; /* the trigger stays in the new list */
};

struct fr_triggers {
	struct fr_source_env env;
	struct fr_triggers_ops ops;
	char *socket;
	sd_event_source *armed_io[FR_ARMING_LANES]; /* watch fr_arming_done_fd() of ops.arming */
	struct fr_policy policy;
	struct fr_trigger **list;
	size_t n;
	uint64_t next_id;
	struct fr_decision decisions[FR_DECISIONS_REMEMBERED]; /* index: id modulo the size */
};

typedef int (*fr_trigger_dump)(void *ctx, const struct fr_cause *cause, uint64_t *ret_id);

/* Arms G. FLAGS are of enum fr_arm. If FLAGS have neither FR_ARM_BESIDE nor FR_ARM_INSTEAD, an armed trigger
   stays as it is. Returns 0; 1 if an arming thread will open the source; or the error of class->open() or
   class->listen(). On an error, G->diag has the message, and ops.armed() is called with it; if FLAGS have
   FR_ARM_AGAIN, ops.armed() is called only if the message is a new one. */
int fr_trigger_arm(struct fr_triggers *t, struct fr_trigger *g, unsigned flags);
void fr_trigger_disarm(struct fr_trigger *g);
struct fr_trigger *fr_trigger_free(struct fr_trigger *g);
/* Sets G->subject, the text for fr_trigger_info.subject. */
void fr_trigger_describe(struct fr_trigger *g);
/* Call this function when an attempt with FR_ARM_AGAIN has ended with the result R. Sets the pause before the
   next attempt. If G has been armed, and there was no error before, calls ops.armed(). */
void fr_trigger_report_rearmed(struct fr_triggers *t, struct fr_trigger *g, int r);
/* Stores the time of an attempt to arm G, and the id of G's control group at this time. */
void fr_trigger_note_attempt(struct fr_trigger *g);
/* Returns whether G is armed, and G's file or control group has been replaced since G was armed. */
bool fr_trigger_is_stale(const struct fr_trigger *g);
struct fr_trigger *fr_trigger_find(const struct fr_triggers *t, const char *name);
/* Returns the trigger with the NAME that a person gave; or NULL, with a message in D, which suggests a
   similar name. */
struct fr_trigger *fr_trigger_find_named(const struct fr_triggers *t, const char *name, struct fr_diag *d);
/* Asks the policy about CAUSE and acts on the verdict: adds CAUSE to a waiting dump (only if MAY_COALESCE is
   true), calls DUMP, or does neither. P is G->policy, or a copy of G->policy. Returns the decision; the
   pointer is valid until the next decision. */
const struct fr_decision *fr_trigger_decide(struct fr_triggers *t, struct fr_trigger *g,
	struct fr_policy_trigger *p, const struct fr_cause *cause, bool may_coalesce, fr_trigger_dump dump,
	void *dump_ctx);
/* The function fr_source_env.fire of all sources. */
void fr_trigger_fire(void *triggers, void *trigger, const struct fr_cause *cause);
