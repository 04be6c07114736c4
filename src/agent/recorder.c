// SPDX-License-Identifier: GPL-2.0-or-later
#include "agent/agent_private.h"

#include <errno.h>

int fr_recorder_connect(struct fr_agent *a, struct fr_client **ret, struct fr_diag *d)
{
	struct fr_client *c;
	bool kept = false;
	int r = fr_client_connect(a->socket, &c, d);

	if (r < 0)
		return r;
	fr_lock(&a->lock);
	for (unsigned i = 0; i < AGENT_CLIENTS && !kept && !atomic_load(&a->stop); i++)
		if (!a->clients[i]) {
			a->clients[i] = c;
			kept = true;
		}
	fr_unlock(&a->lock);
	if (!kept) {
		fr_client_free(c);
		return fr_fail(d, -ECANCELED, NULL, "the agent stops");
	}
	*ret = c;
	return 0;
}

struct fr_client *fr_recorder_disconnect(struct fr_agent *a, struct fr_client *c)
{
	fr_lock(&a->lock);
	for (unsigned i = 0; i < AGENT_CLIENTS; i++)
		if (a->clients[i] == c)
			a->clients[i] = NULL;
	fr_unlock(&a->lock);
	return fr_client_free(c);
}

void fr_recorder_break(struct fr_agent *a)
{
	for (unsigned i = 0; i < AGENT_CLIENTS; i++)
		if (a->clients[i])
			fr_client_break(a->clients[i]);
}

int fr_recorder_call(struct fr_agent *a, const char *method, cJSON *parameters, uint64_t timeout_ns,
	cJSON **ret, struct fr_diag *d)
{
	struct fr_client *c = NULL;
	int r = fr_recorder_connect(a, &c, d);

	if (r < 0) {
		cJSON_Delete(parameters);
		return r;
	}
	r = fr_client_call(c, method, parameters, timeout_ns, ret, d);
	fr_recorder_disconnect(a, c);
	return r < 0 && atomic_load(&a->stop) ? -ECANCELED : r;
}

bool fr_recorder_is_away(int code)
{
	return code == -ENOENT || code == -ECONNREFUSED || code == -ECONNRESET || code == -ETIMEDOUT ||
	       code == -ENOTDIR || code == -EACCES;
}
