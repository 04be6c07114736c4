/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Output for people and as JSON. */

#include "base/table.h"
#include "base/units.h"
#include "flightrec-fleet/fleet_program.h"

enum print_colour { PRINT_NORMAL, PRINT_BOLD, PRINT_GREEN, PRINT_YELLOW, PRINT_RED };

/* Opens the pager, unless the command line says no. Call print_end() before the program ends. */
void print_begin(const struct fleet_command *c);
void print_end(void);
/* Returns an escape sequence, or "" without colours. */
const char *print_colour(enum print_colour c);
/* Prints the table with the headings that the command line wants, and frees it. Returns 0 or -ENOMEM. */
int print_table(const struct fleet_command *c, struct fr_table *t);
/* Prints O as the command line says, and frees it. O may be NULL: no memory. Returns 0 or -ENOMEM. */
int print_json(const struct fleet_command *c, cJSON *o);
/* Adds TEXT unless it is "". */
void print_add_text(cJSON *o, const char *name, const char *text);
/* Returns RET with the time of AT_NS, local or UTC, as --from accepts it; "-" for 0. */
const char *print_time(const struct fleet_command *c, uint64_t at_ns, char ret[static FR_UNIT_SIZE]);
/* Returns RET or a constant, with "5min 3s": the time from AT_NS to NOW_NS. */
const char *print_age(uint64_t at_ns, uint64_t now_ns, char ret[static FR_UNIT_SIZE]);
/* Warns of messages that could not be read. */
void print_ignored(const struct fleet *f);
