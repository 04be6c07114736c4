/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A source tells when something happened; whether that makes a dump is policy.h's. All of it runs on the main
 * thread, on its sd-event loop, and never blocks on a disk, but for open() where a class has a listen().
 *
 * A class is a row of functions (source_bpf.c, source_function.c, source_pressure.c, source_event.c,
 * source_timer.c, source_application.c); which class a kind has is in triggers.c. To open a source is to arm
 * it, to close it is to disarm it: there is no third state.
 */

#include "base/diag.h"
#include "source/cause.h"
#include "source/config.h"

#include <systemd/sd-event.h>

struct fr_source;

/* What all sources of a process share; constant while any is open. */
struct fr_source_env {
	sd_event *event;
	pid_t self;	/* of the recorder as BPF sees it in its own pid namespace: never fires */
	uint32_t pidns; /* inode of our pid namespace; 0: it is the machine's first */
	const char *application_socket; /* path; "": none */
	gid_t gid;			/* of that socket; (gid_t)-1: root's */
	/* CAUSE (borrowed) happened. `trigger`, `source` are filled in by the receiver where empty/NULL.
	   Called from the event loop, never from within open(). */
	void (*fire)(void *ctx, void *trigger, const struct fr_cause *cause);
	/* NULL, or all that libbpf and the kernel's verifier said of a BPF object that was refused: many
	   lines, for a log at level debug. What a person needs of it is in the fr_diag of open(). Called on
	   the thread that opens. */
	void (*log)(void *ctx, const char *text);
	void *ctx;
	/* After each firing a BPF object is quiet for at least so long, whatever Cooldown= says. */
	uint64_t bpf_quiet_ns;
	bool bpf_classic; /* as if the kernel had no BTF: for tests */
};

/* What `flightrecctl triggers` shows of it. */
struct fr_source_stats {
	enum fr_unit_of_cause unit;
	uint64_t threshold; /* in force; 0: none */
	uint64_t last;	    /* newest value seen, whether or not it reached the threshold */
	uint64_t last_ns;   /* when, monotonic; 0: none yet */
	uint64_t fired;	    /* anomalies the source saw; each was sent, cooled or lost */
	uint64_t cooled;    /* held back at the source by its own cool-down */
	uint64_t lost;	    /* its buffer was full */
	uint64_t bad;	    /* what came and could not be understood: datagrams, events of a BPF object */
	const char *gone;   /* NULL, or why it hears nothing for now: "its cgroup is gone". Static storage */
};

struct fr_source_class {
	const char *name; /* "bpf", "pressure" … for fr_cause.source and the table */
	/* Arm what CONFIG says; TRIGGER goes to fire(). 0, or a negative errno with D (what, and what to do:
	   a verifier's log, a missing tracepoint, a bad threshold); then nothing is left open. -EOPNOTSUPP:
	   this kernel has not what it takes. ENV and CONFIG are borrowed until close(). */
	int (*open)(const struct fr_source_env *env, const struct fr_trigger_config *config, void *trigger,
		struct fr_source **ret, struct fr_diag *d);
	/* NULL, or: open() may wait for a file system or the kernel's verifier, and is of any thread: it does
	   not touch the event loop, and may be closed without this. Then this begins to listen, on the main
	   thread; by now ENV, CONFIG and TRIGGER of struct fr_source may be others that say the same. 0, or a
	   negative errno with D, and the source is to be closed. */
	int (*listen)(struct fr_source *s, struct fr_diag *d);
	void (*close)(struct fr_source *s);
	void (*stats)(struct fr_source *s, struct fr_source_stats *ret);
	/* NULL, or: the file that it was opened from is another one by now, so that a reload opens it anew.
	   One that is missing is not: what is armed stays. */
	bool (*is_stale)(const struct fr_source *s);
	/* NULL, or: check CONFIG without arming it, for verify-config. -EINVAL with D. */
	int (*check)(const struct fr_trigger_config *config, struct fr_diag *d);
};

/* What every class' own structure begins with. */
struct fr_source {
	const struct fr_source_class *class;
	const struct fr_source_env *env;
	const struct fr_trigger_config *config;
	void *trigger;
};

extern const struct fr_source_class fr_source_bpf;	/* FR_TRIGGER_PROBE, FR_TRIGGER_PROGRAM */
extern const struct fr_source_class fr_source_function; /* FR_TRIGGER_FUNCTION, FR_TRIGGER_USDT */
extern const struct fr_source_class fr_source_pressure;
extern const struct fr_source_class fr_source_event;
extern const struct fr_source_class fr_source_timer;
extern const struct fr_source_class fr_source_application;

/* Of a kind; NULL: it has none, signals and calls. */
const struct fr_source_class *fr_source_class_for_kind(enum fr_trigger_kind kind);

/* For the classes that see their anomalies in user space. How long to hold back what comes after one: within
   the trigger's cool-down, at most FR_SOURCE_COOLDOWN_MAX_NS. */
uint64_t fr_source_cooldown_ns(const struct fr_trigger_config *config);
/* Complete CAUSE from /proc where a filter needs it, and tell whether it is of whom Pid=, Comm= and CGroup=
 * (or below it) ask for. */
bool fr_source_wants(const struct fr_trigger_config *config, struct fr_cause *cause);
