// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecd/verbs.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "control/interface.h"
#include "control/activation.h"
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

	if (fr_param_bool(parameters, "merge", &merge) < 0) {
		fr_call_invalid_parameter(call, "merge");
		return;
	}
	fr_log(LOG_INFO, "stop asked for by pid %d (%s)", (int)fr_call_peer(call)->pid,
		fr_call_peer(call)->comm);
	fr_call_reply(call, NULL);
	fr_daemon_stop(ctx, merge ? FR_STOP_MERGE : FR_STOP_CLEAN);
}

static void verb_reload(void *ctx, struct fr_call *call, const cJSON *parameters)
{
	fr_daemon_reload(ctx, call);
}

static const char *const none[] = {NULL}, *const of_remove[] = {"files", NULL},
			 *const of_stop[] = {"merge", NULL}, *const of_cancel[] = {"ids", "all", NULL},
			 *const of_vacuum[] = {"max_use", "keep_free", "max_files", "max_age_usec", NULL},
			 *const of_name[] = {"name", NULL},
			 *const of_set_trigger[] = {"name", "enabled", NULL},
			 *const of_decisions[] = {"max", NULL},
			 *const of_dump[] = {"last_ns", "post_ns", "from_usec", "to_usec", "reason", "wait",
				 "no_compression", NULL};

/* Members of the group may look and make dumps, and a trigger's test is a dump. A method that takes something
   away from others (files, triggers, the recorder) needs root. */
static const struct fr_method methods[] = {
	{FR_METHOD_DUMP, FR_ACCESS_GROUP, fr_verb_dump, of_dump},
	{FR_METHOD_CANCEL, FR_ACCESS_GROUP, fr_verb_cancel, of_cancel},
	{FR_METHOD_STATUS, FR_ACCESS_GROUP, verb_status, none},
	{FR_METHOD_METRICS, FR_ACCESS_GROUP, verb_metrics, none},
	{FR_METHOD_LIST, FR_ACCESS_GROUP, fr_verb_list, none},
	{FR_METHOD_VACUUM, FR_ACCESS_ROOT, fr_verb_vacuum, of_vacuum},
	{FR_METHOD_REMOVE, FR_ACCESS_ROOT, fr_verb_remove, of_remove},
	{FR_METHOD_STOP, FR_ACCESS_ROOT, verb_stop, of_stop},
	{FR_METHOD_RELOAD, FR_ACCESS_ROOT, verb_reload, none},
	{FR_METHOD_TRIGGERS, FR_ACCESS_GROUP, fr_verb_triggers, none},
	{FR_METHOD_TEST_TRIGGER, FR_ACCESS_GROUP, fr_verb_test_trigger, of_name},
	{FR_METHOD_SET_TRIGGER, FR_ACCESS_ROOT, fr_verb_set_trigger, of_set_trigger},
	{FR_METHOD_DECISIONS, FR_ACCESS_GROUP, fr_verb_decisions, of_decisions},
	{FR_METHOD_WATCH, FR_ACCESS_GROUP, fr_verb_watch, none},
};

int fr_verbs_serve(struct fr_daemon *m, struct fr_diag *d)
{
	struct fr_server_config config = {
		.gate = fr_start_gate,
		.methods = methods,
		.n_methods = FR_ARRAY_SIZE(methods),
		.description = fr_interface_description,
		.ctx = m,
	};
	int r;

	if (!m->config->socket[0])
		return 0;
	/* Copies, because a reload may replace the strings of the configuration. */
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
