/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The control socket's client: one call, blocking, with a bound on time and on the size of the answer. */

#include "base/diag.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

struct fr_client;

/* -ECONNREFUSED / -ENOENT: no daemon there; -EACCES: not in the group (D says which); -EAGAIN: it is there
   and does not answer. */
int fr_client_connect(const char *path, struct fr_client **ret, struct fr_diag *d);
struct fr_client *fr_client_free(struct fr_client *c);

/* While a call waits, TICK is run about once a second (a sign of life on a terminal). NULL: none. */
void fr_client_on_wait(struct fr_client *c, void (*tick)(void *ctx), void *ctx);

/* Call METHOD with PARAMETERS (consumed, may be NULL). 0 with RET_PARAMETERS (caller's, may be NULL: not
   wanted); a Varlink error becomes: PermissionDenied -EPERM, Suppressed -EAGAIN, NoSpace -ENOSPC, others
   -EREMOTEIO, with its words in D. -ETIMEDOUT; -ECONNRESET: it went away; -EBADMSG: it does not speak the
   protocol. TIMEOUT_NS 0: none. */
int fr_client_call(struct fr_client *c, const char *method, cJSON *parameters, uint64_t timeout_ns,
	cJSON **ret_parameters, struct fr_diag *d);

/* Call METHOD with `more`: each reply is handed to REPLY (borrowed), which says whether to go on. 0 after the
   last one, or when REPLY has had enough: the connection is of no use then. Errors as of fr_client_call();
   -ECONNRESET also when it went away after some. No bound on time: whoever waits may interrupt it. */
int fr_client_stream(struct fr_client *c, const char *method, cJSON *parameters,
	bool (*reply)(void *ctx, const cJSON *parameters), void *ctx, struct fr_diag *d);
