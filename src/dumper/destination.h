/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Where the recorder's files go, and to whom. May wait for a file system, or for a directory service. */

#include "base/diag.h"

#include <sys/types.h>

/* Open the directory PATH, which this process must be able to write to. 0, or a negative errno with D. */
int fr_destination_open(const char *path, int *ret, struct fr_diag *d);
/* The group that files are given to; (gid_t)-1: NAME is empty or unknown, or this process may not give files
   to it. */
gid_t fr_destination_group(const char *name);
