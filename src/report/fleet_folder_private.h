/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* fleet_machine.c: reads the dump of one machine, for fleet_folder.c. */

#include "report/fleet_folder.h"

/* Sets the path, the clock and the window of M, whose name is set, from its sub-folder of FOLDER, whose path
   is PATH. ID is that of the folder; if it is "", it becomes that of the manifest. Returns 0; or a negative
   errno, with a message in D. */
int fr_fleet_machine_read(struct fr_fleet_machine *m, char id[FR_FLEET_ID_SIZE], int folder, const char *path,
	struct fr_diag *d);
/* The same for the dump PATH. Also sets the name. */
int fr_fleet_machine_read_dump(
	struct fr_fleet_machine *m, char id[FR_FLEET_ID_SIZE], const char *path, struct fr_diag *d);
