/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* frtest-fleet: a broker with many simulated machines or with a long index. */

#include "base/diag.h"
#include "bus/bus.h"
#include "fleet/message.h"

#include <stdint.h>

#define SIM_TIMEOUT_NS (30 * 1000000000ULL)

struct sim_options {
	const char *servers;
	const char *user, *password; /* NULL: none */
	uint64_t n;		     /* machines, or entries of the index */
	uint64_t threads;
	uint64_t connections; /* index: connections that the threads share */
	uint64_t dump_ms;     /* agents: a dump takes so long */
};

/* Connects the client NAME. Ends the program on failure. */
struct fr_bus *sim_connect(const struct sim_options *o, const char *name);
/* Fills in the name and the labels of the simulated machine number I. */
void sim_machine(uint64_t i, char name[FR_FLEET_NAME_SIZE], struct fr_labels *labels);
uint64_t sim_wall_ns(void);
/* The clock of a simulated machine: the offset between the clocks of this machine. */
void sim_clock(struct fr_fleet_clock *ret);
/* Fills in a manifest for the command ID whose window ends at TO_NS (fleet time). */
void sim_manifest(struct fr_fleet_manifest *ret, const char *id, const char *machine,
	const struct fr_labels *labels, uint64_t to_ns);
/* Stores TEXT, which this function frees. Ends the program on failure. */
void sim_store(struct fr_bus *bus, const char *stream, const char *prefix, const char *id,
	const char *machine, char *text);

/* Both run until they are done; the agents run until a SIGTERM. They print JSON, one object a line. */
int sim_agents(const struct sim_options *o);
int sim_index(const struct sim_options *o);
