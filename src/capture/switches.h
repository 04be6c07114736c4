/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Which events are switched off (docs/design/16). There is one slot for each name of an event. The slots are
 * in a BPF map, which user space has mapped: the programs that make samples read it, and programs of triggers
 * write it. It outlives the captures, so a slot keeps its state and its number while events are opened again.
 *
 * Any thread is allowed to call these functions.
 */

#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct fr_switches;

/* The slot of events without a switch. It is never off. */
#define FR_SWITCH_NONE 0u
/* All slots have lower numbers: one for each event that a recording can have, and FR_SWITCH_NONE. */
#define FR_SWITCHES_MAX (8192u + 1)

/* Makes the map. If BPF is not permitted, uses ordinary memory: then programs cannot switch events, and user
   space still can. Returns 0 or -ENOMEM. */
int fr_switches_new(struct fr_switches **ret);
struct fr_switches *fr_switches_free(struct fr_switches *s); /* NULL is allowed; returns NULL */

/* Returns the map, which stays S's; -1: there is none. */
int fr_switches_fd(const struct fr_switches *s);

/* Returns the slot of NAME. If NAME has no slot yet, adds one, and sets it to off if IS_OFF is true. Returns
   FR_SWITCH_NONE if there is no room for one more name, or if NAME is too long for a slot. */
uint32_t fr_switches_add(struct fr_switches *s, const char *name, bool is_off);
/* Returns the slot of NAME, or FR_SWITCH_NONE. */
uint32_t fr_switches_find(struct fr_switches *s, const char *name);
/* Returns the name of SLOT, which is valid until fr_switches_free(). */
const char *fr_switches_name(struct fr_switches *s, uint32_t slot);

bool fr_switches_is_off(const struct fr_switches *s, uint32_t slot);
/* Returns whether this has changed the state of SLOT. */
bool fr_switches_set(struct fr_switches *s, uint32_t slot, bool is_off);
/* Returns how often programs have switched SLOT. */
uint32_t fr_switches_changes(const struct fr_switches *s, uint32_t slot);

/* A person or a trigger can ask for these actions. */
enum fr_switch_action {
	FR_SWITCH_ON,
	FR_SWITCH_OFF,
	FR_SWITCH_RATE,	 /* another frequency or period */
	FR_SWITCH_RAISE, /* on; if a rate is given and the event has one, with this rate */
	FR_SWITCH_RESET, /* back to the configuration */
};

/* A BPF program has switched an event. */
struct fr_switch_record {
	uint64_t time_ns, for_ns;
	uint32_t slot;
	bool is_off;
	pid_t pid, tid;
	int cpu;
	char comm[16];
};
