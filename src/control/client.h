/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A client of the control socket. Its calls block. The time and the size of a reply are limited. One thread.
 */

#include "base/diag.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

struct fr_client;

/* Connects to the socket PATH. Returns 0, or with D: -ECONNREFUSED or -ENOENT if no daemon listens, -EACCES
   if the caller is not in its group, -EAGAIN if the daemon does not accept, or another negative errno. */
int fr_client_connect(const char *path, struct fr_client **ret, struct fr_diag *d);
/* Accepts NULL; returns NULL. */
struct fr_client *fr_client_free(struct fr_client *c);

/* Has a waiting call run TICK (may be NULL) about once a second, as a sign of life on a terminal. */
void fr_client_on_wait(struct fr_client *c, void (*tick)(void *ctx), void *ctx);

/* Calls METHOD. Consumes PARAMETERS (may be NULL). TIMEOUT_NS 0 waits without a limit. Returns 0, and
   *RET_PARAMETERS (may be NULL) are the parameters of the reply, which the caller owns. Otherwise returns a
   negative errno with D: for an error reply -EPERM (PermissionDenied), -EAGAIN (Suppressed), -ENOSPC
   (NoSpace) or -EREMOTEIO; -ETIMEDOUT; -ECONNRESET if the server hung up; -EBADMSG if it does not speak the
   protocol. */
int fr_client_call(struct fr_client *c, const char *method, cJSON *parameters, uint64_t timeout_ns,
	cJSON **ret_parameters, struct fr_diag *d);

/* Calls METHOD with "more". Passes the parameters of each reply (borrowed) to ON_REPLY, which returns whether
   to go on. Waits without a limit. Returns 0 after the last reply, or when ON_REPLY has returned false. After
   that, only fr_client_free() may follow. Errors are those of fr_client_call(). */
int fr_client_stream(struct fr_client *c, const char *method, cJSON *parameters,
	bool (*on_reply)(void *ctx, const cJSON *parameters), void *ctx, struct fr_diag *d);
