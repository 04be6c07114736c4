/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A decision of a trigger with Action=fleet, and what follows from it. */

#include "fleet/clock.h"
#include "fleet/message.h"

#include <cjson/cJSON.h>

#define FR_AGENT_SELECTORS_MAX 8u

struct fr_agent_decision {
	char key[160];	  /* its name: boot, trigger, time */
	uint64_t at_ns;	  /* monotonic */
	uint64_t from_ns; /* monotonic; 0: from the oldest sample on */
	uint64_t to_ns;
	char trigger[64];
	char reason[FR_FLEET_TEXT_SIZE];
	size_t n;
	char selectors[FR_AGENT_SELECTORS_MAX][FR_SELECTOR_SIZE]; /* normalized */
};
/* Reads a decision of the recorder. Returns 1; 0 if it does not ask the fleet; or -EBADMSG. */
int fr_decision_read(const cJSON *json, const char *boot_id, struct fr_agent_decision *ret);

/* Makes the command of the decision D for SELECTOR. BY is the name of this machine, and CLOCK its clock. */
int fr_decision_command(const struct fr_agent_decision *d, const char *selector, const char *by,
	const struct fr_fleet_clock *clock, struct fr_fleet_command *ret);
/* Writes the last token of the subject of the incident of the normalized SELECTOR. */
void fr_incident_token(const char *selector, char ret[20]);
/* Returns whether an incident that the broker stored at STORED_NS lasts at NOW_NS (fleet time). */
bool fr_incident_lasts(uint64_t stored_ns, uint64_t now_ns, uint64_t incident_ns);
