/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Calls that the gate of a server keeps until they can be handled. Main thread. */

#include "control/server.h"

#include <stddef.h>
#include <stdint.h>

/* Each connection has one call at a time, and a server has fewer connections. */
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

/* Keeps CALL for METHOD, with a copy of PARAMETERS. If there are too many calls, it fails CALL. */
void fr_deferred_add(struct fr_deferred_calls *calls, struct fr_call *call, const struct fr_method *method,
	const cJSON *parameters);
/* Runs all calls in their order. CTX is the context of the server. */
void fr_deferred_run(struct fr_deferred_calls *calls, void *ctx);
/* Fails the calls that came before BEFORE_NS (monotonic) with D. UINT64_MAX: all. */
void fr_deferred_fail(struct fr_deferred_calls *calls, uint64_t before_ns, const struct fr_diag *d);
