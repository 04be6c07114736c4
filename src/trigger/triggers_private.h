/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The parts of triggers.h among themselves: triggers.c (which there are, armed or not), follow.c (armed anew,
   when what they are about is another), decide.c (what becomes of an anomaly). */

#include "trigger/arming.h"
#include "trigger/triggers.h"

/* How a trigger is armed. */
enum fr_arm {
	FR_ARM_AGAIN = 1,  /* by the clock, and not because somebody wants it: only what is new is told */
	FR_ARM_BESIDE = 2, /* what it is armed for goes on as the older one */
	FR_ARM_INSTEAD = 4 /* what it is armed for ends when that is known */
};

struct fr_trigger {
	struct fr_trigger_config config;     /* cooldown_ns and min_fill_ns are never UNSET here */
	const struct fr_source_class *class; /* NULL: signal, control */
	struct fr_source *source;	     /* NULL: not armed */
	struct fr_source
		*older; /* of the file that SOURCE's took the place of: some still run it; NULL: none */
	struct fr_source_stats before; /* of sources that were closed */
	struct fr_diag diag;	       /* why it could not be armed; code 0: it could */
	struct fr_arming_job *job;     /* that opens its next source; NULL: none */
	unsigned how;		       /* FR_ARM_…, of the last time */
	bool failed_before;	       /* as it was armed the last time */
	struct fr_policy_trigger policy;
	char subject[64]; /* of a timer, in words */
	/* follow.c; when it was last armed, or could not be */
	uint64_t cgroup_id; /* that CGroup= was; 0: none */
	uint64_t tried_ns, pause_ns;
	bool soon; /* it is armed anew so often that the pause grows */

	uint64_t last_fired_ns, last_dump_id;
	char last_file[sizeof(((struct fr_decision *)0)->file)];
	uint64_t latest_id;		 /* of its decisions */
	uint64_t told_ns;		 /* ops.decided() of it */
	uint64_t spoken_ns[FR_VERDICTS]; /* fr_decision.first */
	bool kept;			 /* configure(): goes on */
	bool stale;			 /* configure(): its file is another one */
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

/* 0; 1: it will turn out; or as opening failed: G says why then, and ops.armed() hears it. HOW: FR_ARM_…;
   without BESIDE and INSTEAD nothing is done where it is armed. */
int fr_trigger_arm(struct fr_triggers *t, struct fr_trigger *g, unsigned how);
void fr_trigger_disarm(struct fr_trigger *g);
/* SOURCE (NULL: nothing) is none of G's any more; what it counted stays. */
void fr_trigger_close(struct fr_trigger *g, struct fr_source *source);
/* G, armed AGAIN, is armed, or R is why not. */
void fr_trigger_followed(struct fr_triggers *t, struct fr_trigger *g, int r);
/* G is armed for what is there now. */
void fr_trigger_tried(struct fr_trigger *g);
/* What G is armed for is another one by now: its file, its control group. */
bool fr_trigger_is_stale(const struct fr_trigger *g);
struct fr_trigger *fr_trigger_find(const struct fr_triggers *t, const char *name);
/* The same for a name that a person gave: where there is none, D says which is near. */
struct fr_trigger *fr_trigger_wanted(const struct fr_triggers *t, const char *name, struct fr_diag *d);
/* Ask the policy of P, which is G's or a copy, about CAUSE, and do what it says. With MAY_JOIN, in the file
   of a dump that waits. Returns the decision, borrowed until the next. */
const struct fr_decision *fr_trigger_decide(struct fr_triggers *t, struct fr_trigger *g,
	struct fr_policy_trigger *p, const struct fr_cause *cause, bool may_coalesce, fr_trigger_dump dump,
	void *dump_ctx);
/* fr_source_env.fire of all sources. */
void fr_trigger_fire(void *triggers, void *trigger, const struct fr_cause *cause);
