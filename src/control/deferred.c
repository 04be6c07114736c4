// SPDX-License-Identifier: GPL-2.0-or-later
#include "control/deferred.h"
#include "base/clock.h"

#include <errno.h>

void fr_deferred_add(struct fr_deferred_calls *calls, struct fr_call *call, const struct fr_method *method,
	const cJSON *parameters)
{
	const size_t i = calls->n;

	if (i == FR_DEFERRED_MAX) {
		fr_call_fail(call, NULL, -EBUSY);
		return;
	}
	calls->v[i].call = call;
	calls->v[i].method = method;
	calls->v[i].parameters = cJSON_Duplicate(parameters, true);
	calls->v[i].since_ns = fr_monotonic_ns();
	calls->n++;
}

void fr_deferred_run(struct fr_deferred_calls *calls, void *ctx)
{
	for (size_t i = 0; i < calls->n; i++) {
		if (fr_call_is_abandoned(calls->v[i].call))
			fr_call_reply(calls->v[i].call, NULL);
		else
			calls->v[i].method->handle(ctx, calls->v[i].call, calls->v[i].parameters);
		cJSON_Delete(calls->v[i].parameters);
	}
	calls->n = 0;
}

void fr_deferred_fail(struct fr_deferred_calls *calls, uint64_t before_ns, const struct fr_diag *d)
{
	size_t n = 0;

	for (size_t i = 0; i < calls->n; i++) {
		if (calls->v[i].since_ns >= before_ns) {
			calls->v[n++] = calls->v[i];
			continue;
		}
		fr_call_fail(calls->v[i].call, d, d->code);
		cJSON_Delete(calls->v[i].parameters);
	}
	calls->n = n;
}
