/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A client of the control socket. Its functions block. The size of a reply is limited, and a caller can set a
   time limit for a call. Only one thread may use a client; fr_client_break() is the exception. */

#include "base/diag.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

struct fr_client;

/* Connects to the socket PATH. Returns 0; or, with a message in D: -ECONNREFUSED or -ENOENT if no daemon
   listens; -EACCES if the user of this process is not allowed to use the socket; -EAGAIN if the daemon
   accepts no connections and the queue of the socket stays full for 5 s; or another negative errno. */
int fr_client_connect(const char *path, struct fr_client **ret, struct fr_diag *d);
/* C may be NULL. Returns NULL. */
struct fr_client *fr_client_free(struct fr_client *c);

/* Makes a call that runs on another thread fail with -ECONNRESET, and all later calls, too. Any thread may
   call this function while C lives. */
void fr_client_break(struct fr_client *c);

/* From now on, each call runs TICK (may be NULL) about once a second while it waits for its reply, for
   example to show on a terminal that the program still works. */
void fr_client_on_wait(struct fr_client *c, void (*tick)(void *ctx), void *ctx);

/* Calls METHOD. Consumes PARAMETERS (may be NULL). If TIMEOUT_NS is 0, waits without a limit. Returns 0 and
   sets RET_PARAMETERS (may be NULL) to the parameters of the reply, which the caller owns. Otherwise returns
   a negative errno, with a message in D. If the reply is an error: -EPERM for PermissionDenied, -EAGAIN for
   Suppressed, -ENOSPC for NoSpace, -EREMOTEIO for any other error. If there is no reply: -ETIMEDOUT;
   -ECONNRESET if the server closed the connection; -EBADMSG if the server does not speak the protocol. */
int fr_client_call(struct fr_client *c, const char *method, cJSON *parameters, uint64_t timeout_ns,
	cJSON **ret_parameters, struct fr_diag *d);

/* Calls METHOD with "more", so that the server can send several replies. Consumes PARAMETERS (may be NULL).
   Passes the parameters of each reply to ON_REPLY, which returns whether to go on. The parameters are
   borrowed, and are NULL if the reply has no parameters. Waits without a limit. Returns 0 after the last
   reply, or when ON_REPLY has returned false; otherwise an error of fr_client_call(). After this call, only
   fr_client_free() may be called for C. */
int fr_client_stream(struct fr_client *c, const char *method, cJSON *parameters,
	bool (*on_reply)(void *ctx, const cJSON *parameters), void *ctx, struct fr_diag *d);
