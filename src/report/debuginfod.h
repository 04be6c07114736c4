/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Gets object files and debug files from the servers of $DEBUGINFOD_URLS, and from the cache of former
 * answers
 * ($DEBUGINFOD_CACHE_PATH). A server can hang, be slow, or send anything. So the requests of this process
 * together have a limit of time, and each file has a limit of size. When the time is over, there are no more
 * requests. A file is used only if it has the build-id that was asked for. libdw makes no requests of its
 * own, because it sees no $DEBUGINFOD_URLS. Only one thread may use these functions.
 * docs/design/77-bundles.md says why.
 */

#include "base/diag.h"

#include <stddef.h>
#include <stdint.h>

enum fr_debuginfod_kind {
	FR_DEBUGINFOD_OBJECT, /* the program or library */
	FR_DEBUGINFOD_DEBUG,  /* its debug file */
};

/* A program calls one of these two functions when it starts. */
void fr_debuginfod_enable(uint64_t time_max_ns, uint64_t bytes_max);
void fr_debuginfod_disable(void);
/* Returns a descriptor of the file with this build-id, or -ENOENT. Can wait for the network. */
int fr_debuginfod_find(enum fr_debuginfod_kind kind, const uint8_t *build_id, size_t len);
/* Returns the first problem with a server, whose text is a warning for the user; or NULL if there was none.
   That a server does not have a file is no problem. */
const struct fr_diag *fr_debuginfod_problem(void);
