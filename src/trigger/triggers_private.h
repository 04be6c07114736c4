/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Shared by the files of triggers.h: triggers.c (arming, state), configure.c (which triggers there are),
   follow.c (rearming when a target changes), decide.c (decisions). */

#include "trigger/arming.h"
#include "trigger/triggers.h"

/* Flags of fr_trigger_arm(). */
enum fr_arm {
	FR_ARM_AGAIN = 1,  /* a timer asks, not a person: report only what is new */
	FR_ARM_BESIDE = 2, /* keep the present source as the older one */
	FR_ARM_INSTEAD = 4 /* close the present source when the new one is known */
};

struct fr_trigger {
	struct fr_trigger_config config;     /* cooldown_ns and min_fill_ns are set */
	const struct fr_source_class *class; /* NULL: signal, control */
	struct fr_source *source;	     /* NULL: not armed */
	struct fr_source *older;       /* of the previous file, which processes may still run; or NULL */
	struct fr_source_stats before; /* counters of closed sources */
	struct fr_diag diag;	       /* why it could not be armed; code 0: it could */
	struct fr_arming_job *job;     /* opens its next source; or NULL */
	unsigned how;		       /* FR_ARM_… of the last attempt */
	bool failed_before;	       /* the attempt before the last one failed */
	struct fr_policy_trigger policy;
	char subject[64]; /* of a timer, in words */

	/* follow.c: the last attempt to arm it */
	uint64_t cgroup_id; /* of CGroup= at that time; 0: none */
	uint64_t tried_ns, pause_ns;
	bool is_frequent; /* it came soon after the one before, so the pause grows */

	/* decide.c */
	uint64_t last_fired_ns, last_dump_id;
	char last_file[sizeof(((struct fr_decision *)0)->file)];
	uint64_t latest_id;		/* its newest decision */
	uint64_t reported_ns;		/* its last ops.decided() */
	uint64_t first_ns[FR_VERDICTS]; /* time of the last fr_decision.first */

	/* configure.c */
	bool is_kept; /* it stays in the new list */
};

struct fr_triggers {
	struct fr_source_env env;
	struct fr_triggers_ops ops;
	char *socket;
	sd_event_source *armed_io[FR_ARMING_LANES]; /* of ops.arming */
	struct fr_policy policy;
	struct fr_trigger **list;
	size_t n;
	uint64_t next_id;
	struct fr_decision decisions[FR_DECISIONS_REMEMBERED]; /* by id, modulo */
};

typedef int (*fr_trigger_dump)(void *ctx, const struct fr_cause *cause, uint64_t *ret_id);

/* Arms G. HOW: FR_ARM_…; without BESIDE or INSTEAD an armed trigger stays as it is. 0; 1: the arming thread
   works on it; or the error of open(), which G->diag has and ops.armed() gets. */
int fr_trigger_arm(struct fr_triggers *t, struct fr_trigger *g, unsigned how);
void fr_trigger_disarm(struct fr_trigger *g);
struct fr_trigger *fr_trigger_free(struct fr_trigger *g);
/* Text for fr_trigger_info.subject. */
void fr_trigger_describe(struct fr_trigger *g);
/* Reports that an attempt with FR_ARM_AGAIN has ended with R. */
void fr_trigger_report_rearmed(struct fr_triggers *t, struct fr_trigger *g, int r);
/* Notes time and target of an attempt to arm G. */
void fr_trigger_note_attempt(struct fr_trigger *g);
/* True: G's file or control group has been replaced since it was armed. */
bool fr_trigger_is_stale(const struct fr_trigger *g);
struct fr_trigger *fr_trigger_find(const struct fr_triggers *t, const char *name);
/* Finds a trigger by a name that a person gave. NULL with D, which suggests a similar name. */
struct fr_trigger *fr_trigger_find_named(const struct fr_triggers *t, const char *name, struct fr_diag *d);
/* Asks the policy about CAUSE and acts on the verdict. P: G's policy, or a copy of it. Returns the decision,
   borrowed until the next one. */
const struct fr_decision *fr_trigger_decide(struct fr_triggers *t, struct fr_trigger *g,
	struct fr_policy_trigger *p, const struct fr_cause *cause, bool may_coalesce, fr_trigger_dump dump,
	void *dump_ctx);
/* fr_source_env.fire of all sources. */
void fr_trigger_fire(void *triggers, void *trigger, const struct fr_cause *cause);
