/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Used in handover/ only: the descriptor store of the service manager (sd_notify(3), FDSTORE=1). Only the
   main thread, and fr-start during a start, call these functions. */

#include "handover/state.h"

#include <stdbool.h>

#define FR_FD_STORE_STATE "flightrec-state"
#define FR_FD_STORE_RING "flightrec-ring-" /* a number follows */

void fr_fd_store_name_ring(char ret[static FR_STATE_NAME_MAX], unsigned number);
/* The same for a ring beside that of [Recorder]. */
void fr_fd_store_name_part(char ret[static FR_STATE_NAME_MAX], unsigned number);

/* Returns a duplicate of the passed descriptor NAME; -ENOENT if no descriptor of this name was passed; or
   another negative errno. */
int fr_fd_store_dup(const char *name);
/* Puts FD into the store. Returns a negative errno on an error. */
int fr_fd_store_put(const char *name, int fd);
void fr_fd_store_remove(const char *name);

/* Returns whether this instance uses the passed descriptor NAME. */
typedef bool (*fr_fd_store_used)(const void *ctx, const char *name);
/* Closes the descriptors that the service manager has passed, except sockets. They stay open until this call,
   because it is possible that this process begins its start again with another configuration. Removes those
   from the store for which IS_USED returns false. Returns the number of removed descriptors. A second call
   does nothing. */
unsigned fr_fd_store_release(fr_fd_store_used is_used, const void *ctx);
bool fr_fd_store_is_released(void);
