// SPDX-License-Identifier: GPL-2.0-or-later
#include "control/subscribers.h"

#include <errno.h>

/* If more bytes of replies to a client than this are unsent, the client misses the next reply. */
#define BACKLOG_MAX (32u << 10)

static void end_call(struct fr_subscribers *s, size_t i)
{
	if (s->v[i].call)
		fr_call_reply(s->v[i].call, NULL);
	s->v[i].call = NULL;
	s->v[i].skipped = 0;
}

static void end_abandoned(struct fr_subscribers *s)
{
	for (size_t i = 0; i < FR_SUBSCRIBERS_MAX; i++)
		if (s->v[i].call && fr_call_is_abandoned(s->v[i].call))
			end_call(s, i);
}

int fr_subscribers_add(struct fr_subscribers *s, struct fr_call *call)
{
	end_abandoned(s);
	for (size_t i = 0; i < FR_SUBSCRIBERS_MAX; i++)
		if (!s->v[i].call) {
			s->v[i].call = call;
			return 0;
		}
	return -EBUSY;
}

void fr_subscribers_send(struct fr_subscribers *s, const char *name, const cJSON *news)
{
	end_abandoned(s);
	for (size_t i = 0; i < FR_SUBSCRIBERS_MAX; i++) {
		struct fr_call *call = s->v[i].call;
		cJSON *reply;

		if (!call)
			continue;
		if (fr_call_backlog(call) > BACKLOG_MAX) {
			s->v[i].skipped++;
			continue;
		}
		reply = cJSON_CreateObject();
		cJSON_AddItemToObject(reply, name, cJSON_Duplicate(news, true));
		cJSON_AddNumberToObject(reply, "skipped", (double)s->v[i].skipped);
		s->v[i].skipped = 0;
		fr_call_reply_more(call, reply);
	}
}

bool fr_subscribers_is_empty(const struct fr_subscribers *s)
{
	for (size_t i = 0; i < FR_SUBSCRIBERS_MAX; i++)
		if (s->v[i].call)
			return false;
	return true;
}

void fr_subscribers_deinit(struct fr_subscribers *s)
{
	for (size_t i = 0; i < FR_SUBSCRIBERS_MAX; i++)
		end_call(s, i);
}
