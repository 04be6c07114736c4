/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The agent of a machine: it obeys the commands of the fleet. docs/design/85 describes the protocol.
 *
 *   bus thread     the link to the broker, the clock, presence; reads commands; stores answers and the index
 *   dump threads   ask the recorder for a dump, and wait for it
 *   upload thread  brings dumps to the store, one after the other
 *   watch thread   waits for decisions of triggers with Action=fleet
 *
 * All of them log (base/log.h). A broker, a store or a recorder that does not answer is no error: the agent
 * waits for it.
 */

#include "base/diag.h"
#include "config/config.h"

#include <stdbool.h>
#include <stdint.h>

struct fr_agent;

struct fr_agent_config {
	const struct fr_fleet_config *fleet; /* borrowed while the agent lives */
	const char *socket;		     /* the control socket of the recorder; borrowed, too */
	const char *state;		     /* the directory of the state; it exists */
};
/* Reads the state and starts the threads. Returns 0; or a negative errno, with a message in D: -EINVAL for a
   wrong configuration, -EACCES if the state cannot be written. */
int fr_agent_new(const struct fr_agent_config *config, struct fr_agent **ret, struct fr_diag *d);
/* Stops the threads, which takes a few seconds at most, and frees A. Tells the fleet that this machine leaves
   if IS_LEAVING. A may be NULL. Returns NULL. */
struct fr_agent *fr_agent_free(struct fr_agent *a, bool is_leaving);
/* Returns whether the threads that must not hang have done something lately. Does not wait. */
bool fr_agent_is_alive(struct fr_agent *a);

struct fr_agent_stats {
	const char *name; /* of the machine */
	bool is_up;	  /* the link to the broker */
	char why_down[256];
	char recorder[256], store[256]; /* "": no error */
	uint64_t links, bus_errors, messages_refused, commands_bad;
	uint64_t presence, last_presence_ns;	/* stored; monotonic time of the last one, 0: none */
	uint64_t commands;			/* that were taken */
	uint64_t done, stored, refused, failed; /* their outcomes */
	uint64_t uploads, uploads_bytes;	/* dumps that wait for the store */
	uint64_t jobs;				/* commands that are not complete */
	uint64_t uploaded_bytes, store_errors;
	uint64_t incidents_sent, incidents_joined, incidents_failed;
	int64_t clock_offset_ns;
	uint64_t clock_error_ns; /* UINT64_MAX: not measured */
};
void fr_agent_stats(struct fr_agent *a, struct fr_agent_stats *ret);
