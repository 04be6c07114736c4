/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Opens the directory for the recorder's files, and finds the group for these files. fr_destination_open()
   can wait for a file system. fr_destination_group() can wait for a directory service such as LDAP. */

#include "base/diag.h"

#include <sys/types.h>

/* Opens the directory PATH, and checks that this process may write there. Returns 0; or a negative errno,
   with a message in D. */
int fr_destination_open(const char *path, int *ret, struct fr_diag *d);
/* Returns the id of the group NAME. Returns (gid_t)-1 if NAME is empty or unknown, or if this process may not
   give files to the group. */
gid_t fr_destination_group(const char *name);
