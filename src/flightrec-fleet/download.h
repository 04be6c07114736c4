/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Downloads the files of one machine. */

#include "flightrec-fleet/fleet_program.h"

/* Downloads the dump of M and the files beside it into the folder DIRFD, which belongs to one machine and one
   id, and writes the manifest. A file that is already there is only checked. A download that was interrupted
   goes on from its .part file. Returns 0; or a negative errno with a message in D: -EBADMSG if the index or
   the store lies, for example about the hash. */
int download_machine(struct fleet *f, const struct fr_fleet_manifest *m, int dirfd, struct fr_diag *d);
