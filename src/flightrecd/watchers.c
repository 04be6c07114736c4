// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecd/watchers.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "reporting/trigger_json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* A watcher with so much unread is skipped, and is told later how many decisions it missed. */
#define WATCHER_BACKLOG (32u << 10)

struct fr_watchers {
	struct {
		struct fr_call *call; /* NULL: free */
		uint64_t skipped;
	} v[FR_WATCHERS_MAX];
};

static void add_u64(cJSON *o, const char *name, uint64_t v)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, v);
	cJSON_AddRawToObject(o, name, text);
}

/* Watchers whose client has gone make room. */
static void sweep(struct fr_watchers *w)
{
	for (size_t i = 0; i < FR_WATCHERS_MAX; i++)
		if (w->v[i].call && fr_call_gone(w->v[i].call))
			fr_call_reply(TAKE_PTR(w->v[i].call), NULL);
}

int fr_watchers_add(struct fr_daemon *m, struct fr_call *call)
{
	if (!m->watchers)
		m->watchers = calloc(1, sizeof(*m->watchers));
	if (!m->watchers)
		return -ENOMEM;
	sweep(m->watchers);
	for (size_t i = 0; i < FR_WATCHERS_MAX; i++)
		if (!m->watchers->v[i].call) {
			m->watchers->v[i].call = call;
			m->watchers->v[i].skipped = 0;
			return 0;
		}
	return -EBUSY;
}

void fr_watchers_send(struct fr_daemon *m, const struct fr_decision *decision)
{
	if (!m->watchers)
		return;
	sweep(m->watchers);
	for (size_t i = 0; i < FR_WATCHERS_MAX; i++) {
		struct fr_call *call = m->watchers->v[i].call;
		cJSON *reply;

		if (!call)
			continue;
		if (fr_call_backlog(call) > WATCHER_BACKLOG) {
			m->watchers->v[i].skipped++;
			continue;
		}
		reply = cJSON_CreateObject();
		cJSON_AddItemToObject(reply, "decision", fr_decision_json(decision));
		add_u64(reply, "skipped", m->watchers->v[i].skipped);
		m->watchers->v[i].skipped = 0;
		fr_call_reply_more(call, reply);
	}
}

void fr_watchers_free(struct fr_daemon *m)
{
	for (size_t i = 0; m->watchers && i < FR_WATCHERS_MAX; i++)
		if (m->watchers->v[i].call)
			fr_call_reply(m->watchers->v[i].call, NULL);
	free(TAKE_PTR(m->watchers));
}
