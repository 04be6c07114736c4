/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The dumps of one id of the fleet, and the clock that they share. They are in the folder that `flightrecctl
 * fleet get` writes (docs/design/93-many-machines.md), or are named one by one. The content of the folder
 * comes from a store, so it can be hostile: sizes and numbers have limits, symbolic links are not followed,
 * and a machine whose files contradict each other is listed as missing, with the reason. Not thread-safe.
 */

#include "fleet/message.h"

#define FR_FLEET_MACHINES_MAX 1000u

struct fr_fleet_machine {
	char name[FR_FLEET_NAME_SIZE];
	char *path;	/* of the dump; NULL: there is none that can be read */
	char state[16]; /* as in fleet.json, or "" */
	char why[400];	/* path is NULL: the reason; no control characters */
	struct fr_fleet_clock clock;
	uint64_t from_ns, to_ns; /* the first and the last sample, in fleet time */
};

struct fr_fleet_folder {
	char id[FR_FLEET_ID_SIZE];	 /* "": not known */
	struct fr_fleet_command command; /* all zeros: not known */
	struct fr_fleet_machine *v;	 /* in the order of their names */
	size_t n, n_dumps;		 /* n_dumps of them have a path */
	uint64_t from_ns, to_ns; /* from the first to the last sample of all machines, in fleet time */
};

/* Reads the folder PATH, and the head of each dump in it. Returns 0; or a negative errno, with a message in
   D: -ENODATA if no dump can be read. The caller calls fr_fleet_folder_deinit() in any case. */
int fr_fleet_folder_read(const char *path, struct fr_fleet_folder *ret, struct fr_diag *d);
/* The same for N dumps. A dump without a manifest beside it is of the machine that its head names, and its
   clock is the wall clock of the machine. */
int fr_fleet_folder_read_dumps(char *const *paths, size_t n, struct fr_fleet_folder *ret, struct fr_diag *d);
void fr_fleet_folder_deinit(struct fr_fleet_folder *f);

/* Returns the machine NAME, or NULL. */
struct fr_fleet_machine *fr_fleet_folder_find(const struct fr_fleet_folder *f, const char *name);
/* Makes M a machine without a dump, because of the error D. */
void fr_fleet_folder_drop(struct fr_fleet_folder *f, struct fr_fleet_machine *m, const struct fr_diag *d);
