// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecd/watchers.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "reporting/cause.h"

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

cJSON *fr_decision_json(const struct fr_decision *d)
{
	const struct fr_clock_pair pair = fr_clock_pair_now();
	const uint64_t now_ns = pair.monotonic_ns;
	cJSON *o = cJSON_CreateObject();
	char text[FR_STAMP_SIZE];

	add_u64(o, "id", d->id);
	fr_rfc3339_format(fr_clock_to_realtime(&pair, d->at_ns), text);
	cJSON_AddStringToObject(o, "time", text);
	add_u64(o, "monotonic_ns", d->at_ns);
	add_u64(o, "age_ns", now_ns > d->at_ns ? now_ns - d->at_ns : 0);
	cJSON_AddStringToObject(o, "trigger", d->cause.trigger);
	cJSON_AddStringToObject(o, "verdict", fr_verdict_name(d->verdict));
	cJSON_AddStringToObject(o, "why", d->why);
	if (d->dump_id)
		add_u64(o, "dump_id", d->dump_id);
	if (d->file[0])
		cJSON_AddStringToObject(o, "file", d->file);
	add_u64(o, "repeats", d->repeats);
	add_u64(o, "last_age_ns", now_ns > d->last_ns ? now_ns - d->last_ns : 0);
	cJSON_AddItemToObject(o, "cause", fr_cause_json(&d->cause, (uid_t)-1));
	return o;
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
