/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Switches events off and on and changes their rates while recording goes on (docs/design/16): carries out
 * what persons and triggers ask for, notes what BPF programs have switched, brings events back to their
 * configuration after their time, logs each switch, and remembers the switches for dumps. Only the main
 * thread calls these functions, except where a comment says something else.
 *
 *   flightrecctl event, Action= ─► fr_switching_ask() ─┐
 *   BPF program ─► map ─► record ─► fr_switching_saw() ├─► entry (until its time is over) ─► log, steps
 *   time is over ─► fr_switching_expire() ─────────────┘
 */

#include "base/diag.h"
#include "base/lock.h"
#include "capture/switches.h"

#include <cjson/cJSON.h>
#include <sys/types.h>

struct fr_capture;

#define FR_SWITCH_STEPS 256 /* only the newest are remembered */
#define FR_SWITCH_BY_SIZE 96
#define FR_SWITCH_WHY_SIZE 128

/* An event that is not as configured. */
struct fr_switched {
	uint32_t slot;
	bool is_off;
	uint64_t rate;		     /* 0: the configured one */
	uint64_t since_ns, until_ns; /* monotonic; until_ns 0: without an end */
	bool is_limit;		     /* until_ns comes from SwitchLimit= */
	char by[FR_SWITCH_BY_SIZE], why[FR_SWITCH_WHY_SIZE];
};

struct fr_switch_step;
struct fr_switch_seen;

struct fr_switching {
	struct fr_switches *switches; /* borrowed */
	struct fr_switched *entries;
	size_t n_entries;
	struct fr_switch_seen *seen; /* for each slot */
	uint64_t limit_ns;	     /* SwitchLimit=; 0: no limit */
	uint64_t count;		     /* all switches so far */
	uint64_t lost;		     /* switches by programs whose records were lost */
	uint64_t log_ns;	     /* begin of the time in which `logged` lines were logged */
	unsigned logged;
	/* The lock protects the members below it. The main thread writes them, and the dumper thread reads
	   them. */
	struct fr_lock lock;
	struct fr_switch_step *steps;
	size_t n_steps;
	uint64_t forgotten, forgotten_ns; /* steps that are not remembered any more, and the newest time */
};

struct fr_switch_request {
	const char *event; /* its name; or a pattern with * and ? */
	enum fr_switch_action action;
	uint64_t rate;	      /* for FR_SWITCH_RATE, and, if it is not 0, for FR_SWITCH_RAISE */
	uint64_t for_ns;      /* 0: until the limit */
	bool only_extends;    /* an event that is already switched so, off or on, keeps a later end */
	const char *by, *why; /* why: NULL or "" if it is not known */
	pid_t pid;	      /* who asks, or whom the anomaly is about; 0: not known */
	int cpu;	      /* -1: not known */
};

/* SWITCHES is borrowed. Returns 0 or -ENOMEM. */
int fr_switching_init(struct fr_switching *w, struct fr_switches *switches, uint64_t limit_ns);
void fr_switching_deinit(struct fr_switching *w);

/* Switches the events of CAPTURE that match. Returns how many there are, also those that were in this state
   already; or a negative errno, with a message in D: -ENOENT if no event matches. If CHANGED is not NULL,
   appends the names of the events that have changed. */
int fr_switching_ask(struct fr_switching *w, struct fr_capture *capture, const struct fr_switch_request *q,
	cJSON *changed, struct fr_diag *d);
/* Notes a switch by a program of the trigger TRIGGER. */
void fr_switching_saw(struct fr_switching *w, const struct fr_capture *capture,
	const struct fr_switch_record *record, const char *trigger);
/* Brings the events whose time is over back to their configuration. Returns the time of the next end; 0:
   there is none. */
uint64_t fr_switching_expire(struct fr_switching *w, struct fr_capture *capture);
/* Finds the switches by programs whose records were lost. Call this function every few seconds. */
void fr_switching_tick(struct fr_switching *w, const struct fr_capture *capture);

/* Gives CAPTURE the rates of the entries. Call this function before CAPTURE replaces the recorded capture.
   Returns 0; or a negative errno, with a message in D. */
int fr_switching_prepare(const struct fr_switching *w, struct fr_capture *capture, struct fr_diag *d);
/* Call this function when CAPTURE has replaced the recorded capture. Events that are there as before stay
   switched; all others get the state of their configuration. */
void fr_switching_set_capture(struct fr_switching *w, struct fr_capture *capture);

/* Returns the entry of SLOT; NULL: the event is as configured. */
const struct fr_switched *fr_switching_find(const struct fr_switching *w, uint32_t slot);
/* Adds the array "switches" to META: the switches from FROM_NS to TO_NS, and those before FROM_NS that still
   applied then, with the member "before_window". If there is no switch, META does not change. Any thread is
   allowed to call this function. */
void fr_switching_add_steps(struct fr_switching *w, uint64_t from_ns, uint64_t to_ns, cJSON *meta);
