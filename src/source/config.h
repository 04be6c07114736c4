/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* One section [Trigger NAME] of the configuration. flightrecd fills it; the sources read it. */

#include "capture/switches.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FR_TRIGGER_UNSET UINT64_MAX /* a duration that the section does not set, so a default applies */

/* The kind of a trigger selects its source (the code that sees the anomalies). Each kind except signal,
   control and fleet has a key of its own. A section has exactly one of these keys; if the section has the
   name of a built-in trigger, it needs no key. */
enum fr_trigger_kind {
	FR_TRIGGER_SIGNAL,	/* [Trigger signal]: SIGUSR1; always there */
	FR_TRIGGER_CONTROL,	/* [Trigger control]: flightrecctl dump; always there */
	FR_TRIGGER_PROBE,	/* Probe=NAME, or a section with the name of a probe */
	FR_TRIGGER_PROGRAM,	/* Program=/path/to/object.bpf.o, -e object.bpf.o */
	FR_TRIGGER_FUNCTION,	/* Function=/path/to/binary:symbol */
	FR_TRIGGER_USDT,	/* USDT=/path/to/binary:provider:begin,provider:end */
	FR_TRIGGER_PRESSURE,	/* Pressure=cpu|memory|io some|full */
	FR_TRIGGER_EVENT,	/* Event= in perf's syntax */
	FR_TRIGGER_TIMER,	/* Every=1h */
	FR_TRIGGER_APPLICATION, /* Application=yes: an application asks for a dump, see flightrec/trigger.h */
	FR_TRIGGER_FLEET,	/* [Trigger fleet]: a dump of the fleet; always there */
	FR_TRIGGER_KINDS,
};

/* The structure owns all of its strings. */
struct fr_trigger_config {
	char *name;
	char *origin; /* "file:line" for error messages; NULL: the trigger has no section */
	enum fr_trigger_kind kind;
	char *subject;	   /* value of the kind's key; NULL for signal, control, fleet, timer,
			      application */
	uint64_t every_ns; /* Every= */

	/* The source reads the members from here to set_len. */
	char *threshold;      /* text of Threshold=: "20ms", "1000", "64M"; NULL: the source's default */
	uint64_t interval_ns; /* Interval=; FR_TRIGGER_UNSET: the source's default */
	char *filter;	      /* Filter= of Event= */
	char *syscalls;	      /* Syscall= of the probe syscall-latency: names, separated by blanks */
	char *comm;	      /* Comm= */
	char *cgroup;	      /* CGroup=: path below the cgroup root */
	pid_t pid;	      /* Pid=; 0: any */
	char *set;	      /* Set=: the assignments NAME=VALUE to globals of a Program=, in the format of
				 argz_add(3); NULL: none */
	size_t set_len;

	/* The policy or the dump uses the members from here. The source also reads cooldown_ns. */
	bool enabled;	      /* Enabled=, default yes */
	uint64_t cooldown_ns; /* Cooldown= */
	uint64_t min_fill_ns; /* MinFill= */
	uint64_t window_ns;   /* Window=; 0: the whole ring */
	uint64_t post_ns;     /* PostTrigger= */
	char *actions;	      /* Action=: the lines, in the format of argz_add(3); NULL: dump */
	size_t actions_len;
};

#define FR_TRIGGER_FLEET_SIZE 512 /* all selectors of Action=fleet of a trigger, each with its NUL */

/* A line Action=. */
struct fr_trigger_action {
	bool is_dump;	   /* the other members have no meaning then */
	const char *fleet; /* the selector of Action=fleet, in the text of the line; NULL: another action. If
			      it is not NULL, the members below have no meaning. */
	enum fr_switch_action action;
	char event[64];	 /* a name, or a pattern with * and ? */
	uint64_t rate;	 /* for FR_SWITCH_RAISE; 0: not changed */
	uint64_t for_ns; /* 0: until SwitchLimit= */
};
/* Parses "dump", "fleet SELECTOR", "enable NAME", "disable NAME" or "raise NAME to 999"; the last three can
   end with "for 30s". RET->fleet points into TEXT. Returns 0 or -EINVAL. */
int fr_trigger_action_parse(const char *text, struct fr_trigger_action *ret);
/* Returns whether one of the actions is a dump. */
bool fr_trigger_config_dumps(const struct fr_trigger_config *c);
/* Returns whether one of the actions switches events. */
bool fr_trigger_config_switches(const struct fr_trigger_config *c);
/* Writes the selectors of Action=fleet into RET, in the format of argz_add(3). Returns their length; 0: there
   is no such action. The caller (a configuration that is checked) has selectors that fit. */
size_t fr_trigger_config_fleet(const struct fr_trigger_config *c, char ret[static FR_TRIGGER_FLEET_SIZE]);

/* [Triggers]: defaults and limits for all triggers. */
struct fr_triggers_config {
	uint64_t cooldown_ns;	   /* Cooldown=1min */
	uint64_t min_fill_ns;	   /* MinFill=0 */
	uint64_t window_ns;	   /* Window=30s; 0: the whole ring */
	unsigned rate_burst;	   /* RateLimit=20/1h: the bucket has at most 20 tokens, and each dump
				      takes one token */
	uint64_t rate_interval_ns; /* RateLimit=20/1h: an empty bucket is full again after 1 h; 0:
				      there is no limit */
	bool probes_by_section;	   /* a built-in probe is armed only if it has a section */
	char *socket;		   /* Socket=/run/flightrec/trigger, for applications; "": none */
};

/* A source need not report the anomalies in the cool-down of its trigger. But when this time has passed since
   the last report of the source, the source must report the next anomaly. If the cool-down has not ended
   then, the policy suppresses and counts that anomaly. */
#define FR_SOURCE_COOLDOWN_MAX_NS 1000000000ULL

/* Returns whether a source for A is also right for B, so that a reload can keep the source open. `origin`,
   and the members of the policy and the dump, can differ. But a cool-down below FR_SOURCE_COOLDOWN_MAX_NS
   must be the same, because the source also reads it. */
bool fr_trigger_config_same_source(const struct fr_trigger_config *a, const struct fr_trigger_config *b);
/* Makes a deep copy of C in RET. RET need not be initialized. Returns 0; or -ENOMEM, and RET is then
   empty. */
int fr_trigger_config_copy(struct fr_trigger_config *ret, const struct fr_trigger_config *c);
void fr_trigger_config_deinit(struct fr_trigger_config *c);

/* Parses a threshold in UNIT (enum fr_unit_of_cause): "20ms", "1000", "64M" or "12%". With FR_CAUSE_NONE,
   tries a whole number, then a duration, then a size. Returns 0 or -EINVAL. */
int fr_threshold_parse(const char *text, int unit, uint64_t *ret);
