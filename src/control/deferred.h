/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Keeps calls that come before the server can handle them. The function gate() of a server (struct
   fr_server_config) adds these calls. Only the main thread uses this code. */

#include "control/server.h"

#include <stddef.h>
#include <stdint.h>

/* A server has at most this number of connections, and each connection has one call at a time. A kept call
   keeps its place after its client has disconnected, and the client can connect again. So more calls can come
   than there are places. */
#define FR_DEFERRED_MAX 64

struct fr_deferred_calls {
	struct {
		struct fr_call *call;
		const struct fr_method *method;
		cJSON *parameters;
		uint64_t since_ns;
	} v[FR_DEFERRED_MAX];
	size_t n;
};

/* Keeps CALL for METHOD, with a copy of PARAMETERS. If FR_DEFERRED_MAX calls are kept already, ends CALL with
   an error. */
void fr_deferred_add(struct fr_deferred_calls *calls, struct fr_call *call, const struct fr_method *method,
	const cJSON *parameters);
/* Handles all kept calls, in the order in which they came. If the client of a call has disconnected, the call
   is only ended. CTX is the context for the handlers. */
void fr_deferred_run(struct fr_deferred_calls *calls, void *ctx);
/* Ends the kept calls that came before BEFORE_NS (monotonic) with the error D. If BEFORE_NS is UINT64_MAX,
   ends all kept calls. */
void fr_deferred_fail(struct fr_deferred_calls *calls, uint64_t before_ns, const struct fr_diag *d);
