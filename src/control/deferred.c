// SPDX-License-Identifier: GPL-2.0-or-later
#include "control/deferred.h"
#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>

/* The number of connections of a server. Each connection has at most one call at a time. */
#define CALLS_MAX 64

struct fr_deferred_call {
	struct fr_call *call;
	const struct fr_method *method;
	cJSON *parameters;
	uint64_t since_ns;
};

void fr_deferred_add(struct fr_deferred_calls *calls, struct fr_call *call, const struct fr_method *method,
	const cJSON *parameters)
{
	if (!calls->v)
		calls->v = calloc(CALLS_MAX, sizeof(*calls->v));
	if (!calls->v || calls->n == CALLS_MAX) {
		fr_call_fail(call, NULL, -EBUSY);
		return;
	}
	calls->v[calls->n++] =
		(struct fr_deferred_call){call, method, cJSON_Duplicate(parameters, true), fr_monotonic_ns()};
}

static void forget(struct fr_deferred_calls *calls)
{
	free(calls->v);
	*calls = (struct fr_deferred_calls){0};
}

void fr_deferred_run(struct fr_deferred_calls *calls, void *ctx)
{
	for (size_t i = 0; i < calls->n; i++) {
		struct fr_deferred_call *c = &calls->v[i];

		if (fr_call_is_abandoned(c->call))
			fr_call_reply(c->call, NULL);
		else
			c->method->handle(ctx, c->call, c->parameters);
		cJSON_Delete(c->parameters);
	}
	forget(calls);
}

void fr_deferred_fail(struct fr_deferred_calls *calls, uint64_t before_ns, const struct fr_diag *d)
{
	size_t n = 0;

	for (size_t i = 0; i < calls->n; i++) {
		struct fr_deferred_call *c = &calls->v[i];

		if (c->since_ns >= before_ns) {
			calls->v[n++] = *c;
			continue;
		}
		fr_call_fail(c->call, d, d->code);
		cJSON_Delete(c->parameters);
	}
	calls->n = n;
	if (n == 0)
		forget(calls);
}
