/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The fleet dumps of the index, one for each id. */

#include "flightrec-fleet/fleet_program.h"

struct fleet_dump_entry {
	char id[FR_FLEET_ID_SIZE];
	uint64_t at_ns;	   /* the time of the id */
	uint64_t machines; /* that have an entry */
	uint64_t bytes;	   /* of all their dumps */
	/* Of one of the entries. */
	char trigger[64];
	char *cause, *by;
};

struct fleet_index {
	struct fleet_dump_entry *v; /* after index_read(): sorted by id */
	size_t n, room;
	uint32_t *table; /* hash of the id → place in V, plus 1; 0: empty */
	size_t table_size;
};

struct index_filter {
	const char *selector; /* "" or "*": all */
	const char *trigger;  /* NULL: all */
	uint64_t since_ns, until_ns;
	uint64_t newest; /* ids; 0: all */
};

/* Reads the index. Counts messages that cannot be read in F->ignored. Returns 0 or a negative errno. */
int index_read(
	struct fleet *f, const struct index_filter *filter, struct fleet_index *ret, struct fr_diag *d);
void index_deinit(struct fleet_index *i);
