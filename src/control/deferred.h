/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Calls that the gate of a server keeps until they can be handled. Main thread. */

#include "control/server.h"

#include <stddef.h>
#include <stdint.h>

struct fr_deferred_call;

struct fr_deferred_calls {
	struct fr_deferred_call *v;
	size_t n;
};

/* Keep CALL, and a copy of PARAMETERS, for METHOD. A call too many is answered with an error. */
void fr_deferred_add(struct fr_deferred_calls *calls, struct fr_call *call, const struct fr_method *method,
	const cJSON *parameters);
/* Handle all of them in their order. CTX is that of the server. */
void fr_deferred_run(struct fr_deferred_calls *calls, void *ctx);
/* Answer those that came before BEFORE_NS (monotonic) with D. UINT64_MAX: all. */
void fr_deferred_fail(struct fr_deferred_calls *calls, uint64_t before_ns, const struct fr_diag *d);
