/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Downloads a fleet dump. */

#include "flightrec-fleet/fleet_program.h"

/* Downloads the dumps of the fleet dump ID into DIRECTORY/ID, and writes fleet.json there. DIRECTORY must
   exist. ONLY: the name of one machine; NULL: all. Prints on standard error which machines are missing.
   Returns FR_EXIT_OK; FR_EXIT_PARTLY if machines are missing; or a negative errno with a message in D. */
int get_dump(struct fleet *f, const char *id, const char *directory, const char *only, struct fr_diag *d);
