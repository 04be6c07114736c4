/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Gets object files from the servers of $DEBUGINFOD_URLS. A server can hang, be slow, or send anything. So all
 * requests of this process together have a limit of time, and each file has a limit of size. When the time is over,
 * there are no more requests. Only one thread may use these functions.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct debuginfod_client;

/* A program calls one of these two functions when it starts. The limits are also those of libdw, which itself asks
   for debug files. */
void fr_debuginfod_enable(uint64_t time_max_ns, uint64_t bytes_max);
void fr_debuginfod_disable(void);
/* Gives the limit of time to a client of libdw, which may be NULL. */
void fr_debuginfod_limit(struct debuginfod_client *client);
/* Returns a descriptor of the file with this build-id, or -ENOENT. Can wait for the network. The caller checks that
   the file has the build-id. */
int fr_debuginfod_find(const uint8_t *build_id, size_t len);
/* Returns whether the limit of time has ended a request. */
bool fr_debuginfod_is_slow(void);
