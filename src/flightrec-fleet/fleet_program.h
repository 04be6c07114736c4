/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * flightrec-fleet: the program behind "flightrecctl fleet". Each verb is a function of a file of its own. It
 * returns an exit code from 0 on, or a negative errno with a message in D, which main() prints. All texts
 * from the bus and the store are hostile; they go through fr_utf8_sanitize() before they are printed.
 *
 * The program has one thread. Threads of the bus only call the functions that are given to it.
 */

#include "bus/bus.h"
#include "config/config.h"
#include "fleet/clock.h"
#include "fleet/location.h"
#include "fleet/message.h"
#include "flightrec-fleet/command.h"
#include "store/s3.h"

#define FLEET_TIMEOUT_NS (10 * 1000000000ULL) /* of one question to the broker */

struct fleet {
	const struct fleet_command *command;
	struct fr_config config;
	struct fr_bus *bus;
	struct fr_store *store;
	struct fr_fleet_location location; /* of the store; bucket "": no Upload= */
	char name[FR_FLEET_TEXT_SIZE];	   /* "user@host" */
	uint64_t ignored;		   /* messages that cannot be read */
	uint64_t done_bytes, total_bytes;  /* of all transfers; total_bytes 0: no progress is shown */
};

int fleet_dump(struct fleet *f, struct fr_diag *d);
int fleet_list(struct fleet *f, struct fr_diag *d);
int fleet_status(struct fleet *f, struct fr_diag *d);
int fleet_get(struct fleet *f, struct fr_diag *d);
int fleet_explain(struct fleet *f, struct fr_diag *d);
int fleet_watch(struct fleet *f, struct fr_diag *d);
int fleet_setup(struct fleet *f, struct fr_diag *d);
int fleet_prune(struct fleet *f, struct fr_diag *d);
int fleet_forget(struct fleet *f, struct fr_diag *d);

/* --- connect.c --- */

/* Reads the configuration. It can be called only once. Returns 0 or a negative errno. */
int fleet_open_config(struct fleet *f, struct fr_diag *d);
/* Connects to the broker. ON_LINK may be NULL. Returns 0 or a negative errno. */
int fleet_open_bus(struct fleet *f, void (*on_link)(void *ctx, bool is_up), struct fr_diag *d);
/* Opens the store. Returns 0; or a negative errno: -EINVAL if Upload= is not set. */
int fleet_open_store(struct fleet *f, struct fr_diag *d);
void fleet_close(struct fleet *f);
/* Measures the clock of the broker: stores a command that chooses no machine. It always has the same id, so
   that only one is stored. Returns 0 or a negative errno. */
#define FLEET_CLOCK_ID "19700101T000000Z-00000000"
int fleet_measure_clock(struct fleet *f, struct fr_fleet_clock *ret, struct fr_diag *d);
/* Returns the time of the broker, as exact as the ages of machines need it. NEWEST_NS is the newest time that
   the broker gave to a presence. Uses the wall clock if it can be right, or if the broker does not permit to
   measure its clock. */
uint64_t fleet_now(struct fleet *f, uint64_t newest_ns);
