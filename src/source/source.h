/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A source detects anomalies and fires a cause for each. trigger/policy.h decides whether a cause makes a
 * dump.
 *
 *   fr_source_open() ─► [class->listen()] ─► env->fire() … ─► fr_source_close()
 *
 * To open a source is to arm it, to close it is to disarm it; there is no third state. A source runs on the
 * main thread's event loop and does not wait for a disk. The exception is open() of a class with listen().
 */

#include "base/diag.h"
#include "source/cause.h"
#include "source/config.h"

#include <systemd/sd-event.h>

struct fr_source;

/* The environment that all sources of a process share. It does not change while a source is open. */
struct fr_source_env {
	sd_event *event;
	pid_t self;	/* the recorder's pid in its own pid namespace; BPF programs ignore this process */
	uint32_t pidns; /* inode of the recorder's pid namespace; 0: the initial one */
	const char *application_socket; /* path; "": none */
	gid_t gid;			/* group of that socket; (gid_t)-1: root's */
	/* Passes CAUSE on (borrowed). The receiver sets `trigger` and `source` where they are empty. The
	   event loop calls it; open() never does. */
	void (*fire)(void *ctx, void *trigger, const struct fr_cause *cause);
	/* NULL, or receives the complete output of libbpf and the verifier for a refused BPF object: many
	   lines, for log level debug. The fr_diag of open() has the summary. Called on the opening thread. */
	void (*log)(void *ctx, const char *text);
	void *ctx;
	/* Minimum pause of a BPF object after it fired; it overrides a shorter Cooldown=. */
	uint64_t bpf_quiet_ns;
	bool bpf_classic; /* for tests: act as if the kernel had no BTF */
};

/* The numbers that `flightrecctl triggers` shows. */
struct fr_source_stats {
	enum fr_unit_of_cause unit;
	uint64_t threshold; /* in force; 0: none */
	uint64_t last;	    /* newest value, even if it did not reach the threshold */
	uint64_t last_ns;   /* monotonic time of that value; 0: none yet */
	uint64_t fired;	    /* anomalies that the source saw; each was passed on, cooled or lost */
	uint64_t cooled;    /* held back by the source's own cool-down */
	uint64_t lost;	    /* the buffer was full */
	uint64_t bad;	    /* malformed datagrams, or malformed events of a BPF object */
	const char *gone;   /* NULL, or why the source sees nothing at present; static storage */
};

struct fr_source_class {
	const char *name; /* "bpf", "pressure" …: fr_cause.source */
	size_t size;	  /* of the class's structure, which begins with struct fr_source */
	/* Arms S, whose own members are zero. 0, or a negative errno with D; then close() is called.
	   -EOPNOTSUPP: this kernel lacks what the source needs. */
	int (*open)(struct fr_source *s, struct fr_diag *d);
	/* NULL: open() runs on the main thread. Otherwise open() may wait for a file system or the verifier,
	   runs on any thread and does not touch the event loop. Then listen(), on the main thread, adds S to
	   the event loop. 0, or a negative errno with D; then the caller closes S. */
	int (*listen)(struct fr_source *s, struct fr_diag *d);
	/* Releases what open() and listen() acquired, also after a failed open(). Does not free S. */
	void (*close)(struct fr_source *s);
	/* NULL: S->stats is up to date. Otherwise updates RET, which is a copy of S->stats. */
	void (*get_stats)(struct fr_source *s, struct fr_source_stats *ret);
	/* NULL, or true if the file that S was opened from has been replaced: a reload opens it again. A
	   missing file is not stale, so that S stays armed. */
	bool (*is_stale)(const struct fr_source *s);
	/* NULL, or checks CONFIG without arming it, for verify-config. 0, or -EINVAL with D. */
	int (*check)(const struct fr_trigger_config *config, struct fr_diag *d);
};

struct fr_source {
	const struct fr_source_class *class;
	/* Borrowed. Before listen() the caller may replace them with equal ones that live longer. */
	const struct fr_source_env *env;
	const struct fr_trigger_config *config;
	void *trigger; /* argument of fire() */
	struct fr_source_stats stats;
};

extern const struct fr_source_class fr_source_bpf;	/* FR_TRIGGER_PROBE, FR_TRIGGER_PROGRAM */
extern const struct fr_source_class fr_source_function; /* FR_TRIGGER_FUNCTION, FR_TRIGGER_USDT */
extern const struct fr_source_class fr_source_pressure;
extern const struct fr_source_class fr_source_event;
extern const struct fr_source_class fr_source_timer;
extern const struct fr_source_class fr_source_application;

/* The class for KIND; NULL for signal and control, which have no source. */
const struct fr_source_class *fr_source_class_for_kind(enum fr_trigger_kind kind);

/* Opens a source of CLASS. ENV, CONFIG and TRIGGER are borrowed until it is closed. 0, or a negative errno
   with D; then nothing is left open. */
int fr_source_open(const struct fr_source_class *class, const struct fr_source_env *env,
	const struct fr_trigger_config *config, void *trigger, struct fr_source **ret, struct fr_diag *d);
struct fr_source *fr_source_close(struct fr_source *s); /* NULL is allowed; returns NULL */
void fr_source_get_stats(struct fr_source *s, struct fr_source_stats *ret);

/* --- for the classes */

/* Fires CAUSE for the trigger of S. */
void fr_source_fire(const struct fr_source *s, const struct fr_cause *cause);
/* The pause of a source after an anomaly: Cooldown=, at most FR_SOURCE_COOLDOWN_MAX_NS. */
uint64_t fr_source_cooldown_ns(const struct fr_trigger_config *config);
/* True: CAUSE passes Pid=, Comm= and CGroup= (that cgroup or one below it). Reads /proc only if Comm= or
   CGroup= needs it. */
bool fr_source_matches(const struct fr_trigger_config *config, struct fr_cause *cause);
