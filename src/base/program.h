/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Starts another program of the project. */

#include "base/diag.h"

/* Replaces this process by PROGRAM, which is beside this program, or else in $PATH. The new program has the
   default for SIGPIPE. Returns only on failure: a negative errno, with a message in D, which has HINT. */
int fr_program_exec(const char *program, char *const argv[], const char *hint, struct fr_diag *d);
