/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A source detects anomalies. For each anomaly, it passes a cause (the description of the anomaly) to
 * env->fire(). trigger/policy.h decides whether a cause makes a dump.
 *
 *   fr_source_open() ─► [class->listen()] ─► env->fire() … ─► fr_source_close()
 *
 * A source is armed from fr_source_open() (or listen(), if its class has it) until fr_source_close(). A
 * source runs on the main thread's event loop and does not wait for a disk. The exception is open() of a
 * class with listen(): it runs on another thread (fr-arming), and is allowed to wait.
 */

#include "base/diag.h"
#include "source/cause.h"
#include "source/config.h"

#include <systemd/sd-event.h>

struct fr_source;
struct fr_switch_record;

/* The environment that all sources of a process share. It does not change while a source is open. */
struct fr_source_env {
	sd_event *event;
	pid_t self;	/* the recorder's pid in its own pid namespace; BPF programs ignore this process */
	uint32_t pidns; /* inode of the recorder's pid namespace; 0: the initial pid namespace */
	const char *application_socket; /* path; "": none */
	gid_t gid;			/* group of the file application_socket; (gid_t)-1: the
					   group of root */
	/* Reports an anomaly with CAUSE (borrowed). If the members trigger and source of CAUSE are empty,
	   the receiver sets these members in its copy of CAUSE. Sources call fire() from the event loop,
	   never from open(). */
	void (*fire)(void *ctx, void *trigger, const struct fr_cause *cause);
	/* For BPF programs that switch events; NULL: they cannot. find_switch() finds the slot of the event
	   NAME in the map switches_fd; any thread calls it. It returns 0; or a negative errno, with a message
	   in D. switched() reports that a program of TRIGGER has switched an event. */
	int (*find_switch)(void *ctx, const char *name, uint32_t *ret_slot, struct fr_diag *d);
	void (*switched)(void *ctx, void *trigger, const struct fr_switch_record *record);
	int switches_fd;
	/* NULL, or a function that gets the output of libbpf and the verifier when the kernel refuses a BPF
	   object: the last 64 KiB, many lines, for log level debug. The fr_diag of open() has the summary.
	   The thread that opens the source calls the function. */
	void (*log)(void *ctx, const char *text);
	void *ctx;
	/* A BPF object pauses for at least this time after it has fired, even if Cooldown= is shorter. */
	uint64_t bpf_quiet_ns;
	bool bpf_classic; /* for tests: act as if the kernel had no BTF */
};

/* The numbers that `flightrecctl triggers` shows. */
struct fr_source_stats {
	enum fr_unit_of_cause unit;
	uint64_t threshold; /* the current threshold; 0: none */
	uint64_t last;	    /* newest value, even if this value did not reach the threshold */
	uint64_t last_ns;   /* monotonic time of the newest value; 0: no value yet */
	uint64_t fired;	    /* all anomalies that the source saw: the reported, the cooled and the
			       lost anomalies */
	uint64_t cooled;    /* anomalies that the source did not report, because they came in its
			       own cool-down */
	uint64_t lost;	    /* anomalies for which the kernel's buffer had no room */
	uint64_t bad;	    /* malformed datagrams, or malformed events of a BPF object */
	const char *gone;   /* NULL, or the reason why the source cannot see anomalies at the moment;
			       static storage */
};

struct fr_source_class {
	const char *name; /* "bpf", "pressure" …: fr_cause.source */
	size_t size;	  /* size of the class's structure, which begins with struct fr_source */
	/* Arms S. Before the call, the members of the class's structure (except struct fr_source) are zero.
	   Returns 0; or a negative errno, with a message in D: -EOPNOTSUPP if this kernel does not have a
	   feature that the source needs. After a failure, fr_source_open() calls close(). */
	int (*open)(struct fr_source *s, struct fr_diag *d);
	/* NULL: open() runs on the main thread. If listen is not NULL, open() runs on any thread, is allowed
	   to wait for a file system or the verifier, and does not use the event loop. After open(), the main
	   thread calls listen(), which adds S to the event loop. listen() returns 0; or a negative errno,
	   with a message in D, and the caller then closes S. */
	int (*listen)(struct fr_source *s, struct fr_diag *d);
	/* Releases everything that open() and listen() have acquired, also after a failed open().
	   Does not free S. */
	void (*close)(struct fr_source *s);
	/* NULL: S->stats is always up to date. Otherwise get_stats() updates RET, a copy of S->stats. */
	void (*get_stats)(struct fr_source *s, struct fr_source_stats *ret);
	/* NULL, or a function that returns whether the file of S has been replaced or changed. If the
	   function returns true, a reload opens the file again. If the file is missing, the function returns
	   false, so that S stays armed. */
	bool (*is_stale)(const struct fr_source *s);
	/* NULL, or a function that checks CONFIG for verify-config, and arms nothing. Returns 0; or -EINVAL,
	   with a message in D. */
	int (*check)(const struct fr_trigger_config *config, struct fr_diag *d);
};

struct fr_source {
	const struct fr_source_class *class;
	/* Borrowed. After open() and before listen(), the caller is allowed to replace both pointers by
	   pointers to equal copies that exist longer. */
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

/* Returns the class for KIND; or NULL for signal, control and fleet, which have no source. */
const struct fr_source_class *fr_source_class_for_kind(enum fr_trigger_kind kind);

/* Opens a source of CLASS. ENV, CONFIG and TRIGGER are borrowed until the source is closed. Returns 0; or a
   negative errno, with a message in D, and nothing stays open. */
int fr_source_open(const struct fr_source_class *class, const struct fr_source_env *env,
	const struct fr_trigger_config *config, void *trigger, struct fr_source **ret, struct fr_diag *d);
struct fr_source *fr_source_close(struct fr_source *s); /* NULL is allowed; returns NULL */
void fr_source_get_stats(struct fr_source *s, struct fr_source_stats *ret);

/* --- for the classes */

/* Passes CAUSE and the trigger of S to fr_source_env.fire(). */
void fr_source_fire(const struct fr_source *s, const struct fr_cause *cause);
/* Returns the source's own cool-down: Cooldown=, but at most FR_SOURCE_COOLDOWN_MAX_NS. */
uint64_t fr_source_cooldown_ns(const struct fr_trigger_config *config);
/* Returns whether CAUSE matches Pid=, Comm= and CGroup= (the cgroup itself or a cgroup below it). If Comm= or
   CGroup= is set, reads the missing texts of CAUSE from /proc. */
bool fr_source_matches(const struct fr_trigger_config *config, struct fr_cause *cause);
