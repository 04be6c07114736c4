// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecd/verbs.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "control/interface.h"
#include "flightrecd/reload.h"
#include "flightrecd/start.h"
#include "flightrecd/stop.h"
#include "flightrecd/view.h"

#include <errno.h>
#include <string.h>

static void verb_status(void *ctx, struct fr_call *call, const cJSON *parameters)
{
	cJSON *reply = cJSON_CreateObject();

	cJSON_AddItemToObject(reply, "status", fr_daemon_status(ctx));
	fr_call_reply(call, reply);
}

static void verb_metrics(void *ctx, struct fr_call *call, const cJSON *parameters)
{
	_cleanup_buf_ struct fr_buf text = {0};
	cJSON *reply = NULL;
	struct fr_view view;
	int r;

	fr_daemon_view(ctx, &view);
	r = fr_metrics(&view, &text);
	if (r == 0)
		r = fr_buf_append(&text, "", 1);
	if (r == 0)
		reply = cJSON_CreateObject();
	if (reply && cJSON_AddStringToObject(reply, "text", (char *)text.data)) {
		fr_call_reply(call, reply);
		return;
	}
	cJSON_Delete(reply);
	fr_call_fail(call, NULL, -ENOMEM);
}

static void verb_stop(void *ctx, struct fr_call *call, const cJSON *parameters)
{
	bool merge = false;

	(void)fr_param_bool(parameters, "merge", &merge);
	fr_log(LOG_INFO, "stop asked for by pid %d (%s)", (int)fr_call_peer(call)->pid,
		fr_call_peer(call)->comm);
	fr_call_reply(call, NULL);
	fr_daemon_stop(ctx, merge ? FR_STOP_MERGE : FR_STOP_CLEAN);
}

static void verb_reload(void *ctx, struct fr_call *call, const cJSON *parameters)
{
	fr_daemon_reload(ctx, call);
}

/* Members of the group may read everything and make dumps. They may also test a trigger, because a test only
   makes a dump (or, for root, does what Action= says). A method that takes something away from others (files,
   triggers, the recorder) needs root. */
static const struct fr_method methods[] = {
	{FR_METHOD(Status), FR_ACCESS_GROUP, verb_status, FR_PARAMETERS({0})},
	{FR_METHOD(Metrics), FR_ACCESS_GROUP, verb_metrics, FR_PARAMETERS({0})},
	{FR_METHOD(Stop), FR_ACCESS_ROOT, verb_stop, FR_PARAMETERS({"merge", cJSON_IsBool, false})},
	{FR_METHOD(Reload), FR_ACCESS_ROOT, verb_reload, FR_PARAMETERS({0})},
	{.name = NULL},
};

static const struct fr_method *const all[] = {
	methods, fr_verbs_of_dumps, fr_verbs_of_triggers, fr_verbs_of_events, NULL};

int fr_verbs_serve(struct fr_daemon *m, struct fr_diag *d)
{
	struct fr_server_config config = {
		.gate = fr_start_gate,
		.methods = all,
		.description = fr_interface_description,
		.ctx = m,
	};
	int r;

	if (!m->config->socket[0])
		return 0;
	/* The server gets copies, because a reload can replace the strings of the configuration. */
	config.path = m->socket = strdup(m->config->socket);
	config.group = m->group = strdup(m->config->group);
	if (!m->socket || !m->group)
		return -ENOMEM;
	r = fr_activated_control(d);
	if (r < 0)
		return r;
	config.fd = r;
	r = fr_server_new(m->event, &config, &m->server, d);
	if (r >= 0 && fr_server_notice(m->server))
		fr_log(LOG_NOTICE, "%s", fr_server_notice(m->server));
	return r;
}
