/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The machines of the fleet, and what each did for one id: from presence, answers and index. */

#include "flightrec-fleet/fleet_program.h"

struct machine {
	char name[FR_FLEET_NAME_SIZE];
	uint64_t seen_ns; /* of the last presence, fleet time; 0: there is none */
	bool is_leaving;
	bool is_chosen;			    /* by the selector, and by its presence */
	struct fr_fleet_presence *presence; /* NULL: not kept */
	struct fr_fleet_answer *answer;	    /* NULL: none */
	struct fr_fleet_manifest *manifest; /* NULL: not in the index */
	const char *folder;		    /* get: of its files; NULL: not downloaded */
	char *problem;			    /* get: why they could not be downloaded; NULL: no problem */
	char token[FR_FLEET_TOKEN_SIZE];
};

struct machines {
	struct machine **v; /* sorted by name after machines_sort() */
	size_t n, room;
	void *tree; /* tsearch(3) */
};

void machines_deinit(struct machines *m);
/* Returns the machine NAME, which is added if it is not there; or NULL if there is no memory. */
struct machine *machines_get(struct machines *m, const char *name);
void machines_sort(struct machines *m);
/* Returns the newest time of a presence; 0: none. */
uint64_t machines_newest(const struct machines *m);

/* --- machines_read.c: each adds what the broker has. They return 0 or a negative errno. --- */

/* Reads the presence of all machines. If KEEP is true, keeps the messages. */
int machines_read_presence(
	struct fleet *f, struct machines *m, const char *selector, bool keep, struct fr_diag *d);
int machines_read_answers(struct fleet *f, struct machines *m, const char *id, struct fr_diag *d);
int machines_read_index(struct fleet *f, struct machines *m, const char *id, struct fr_diag *d);
/* Reads the command. Returns 0; 1 if it is not kept any more; or a negative errno. RET_STORED_NS gets the
   time at which the broker stored it. */
int machines_read_command(struct fleet *f, const char *id, struct fr_fleet_command *ret,
	uint64_t *ret_stored_ns, struct fr_diag *d);

/* Returns whether an answer can be expected from the machine at NOW_NS (fleet time). */
bool machine_is_reachable(const struct machine *m, uint64_t now_ns);
/* Returns whether the machine belongs to the fleet dump: it was chosen, or it did something for it. */
bool machine_takes_part(const struct machine *m);
/* Returns the state for people: "stored", "refused", "not reached" … */
const char *machine_state(const struct machine *m);
/* Writes where the dump is, or why there is none, into RET, and returns RET. */
const char *machine_where(const struct machine *m, uint64_t now_ns, char *ret, size_t size);
/* Returns {"machine", "state", …}, or NULL if there is no memory. */
cJSON *machine_json(const struct machine *m, uint64_t now_ns);
