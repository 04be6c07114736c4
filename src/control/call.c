// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Handles one call: decodes and checks its message, runs its method, and queues its replies.
 *
 * A handler owns its call until the last reply. The handler can reply even after the client has disconnected,
 * so either the call or its connection can end first. Each of the two has a pointer to the other. When one of
 * them ends, the pointer in the other is set to NULL.
 */

#include "control/server_private.h"
#include "control/interface.h"
#include "base/cleanup.h"
#include "base/thread.h"

#include <errno.h>
#include <string.h>

#define SERVICE "org.varlink.service"

static const char service_description[] =
	"# The methods of every Varlink service.\n"
	"interface " SERVICE "\n"
	"method GetInfo() -> (vendor: string, product: string, version: string, url: string, interfaces: "
	"[]string)\n"
	"method GetInterfaceDescription(interface: string) -> (description: string)\n"
	"error InterfaceNotFound (interface: string)\n"
	"error MethodNotFound (method: string)\n"
	"error InvalidParameter (parameter: string)\n";

const struct fr_peer *fr_call_peer(const struct fr_call *c)
{
	return &c->peer;
}

bool fr_call_is_abandoned(const struct fr_call *c)
{
	return !c->connection || c->connection->is_dead;
}

size_t fr_call_backlog(const struct fr_call *c)
{
	return c->connection ? c->connection->out.len - c->connection->n_sent : 0;
}

bool fr_call_wants_more(const struct fr_call *c)
{
	return c->more;
}

/* Builds and queues one reply. Consumes PARAMETERS (NULL means {}). If there is no memory for the reply, the
   connection is closed. */
static void send_reply(struct fr_call *call, const char *error, cJSON *parameters, bool continues)
{
	struct fr_connection *c = call->connection;
	cJSON *message;

	fr_thread_assert(FR_THREAD_MAIN);
	if (!c || call->oneway) {
		cJSON_Delete(parameters);
		return;
	}
	message = cJSON_CreateObject();
	if (!parameters)
		parameters = cJSON_CreateObject();
	if (!message || !parameters || (error && !cJSON_AddStringToObject(message, "error", error)) ||
		!cJSON_AddItemToObject(message, "parameters", parameters)) {
		cJSON_Delete(parameters);
		c->is_dead = true;
	} else if (continues && !cJSON_AddTrueToObject(message, "continues")) {
		c->is_dead = true;
	} else {
		fr_connection_send(c, message);
	}
	cJSON_Delete(message);
}

static void send_last_reply(struct fr_call *call, const char *error, cJSON *parameters)
{
	send_reply(call, error, parameters, false);
	if (call->connection)
		fr_connection_end_call(call->connection);
	free(call);
}

void fr_call_reply(struct fr_call *c, cJSON *parameters)
{
	send_last_reply(c, NULL, parameters);
}

void fr_call_reply_more(struct fr_call *c, cJSON *parameters)
{
	send_reply(c, NULL, parameters, true);
}

/* Returns {NAME: VALUE}; or NULL if there is no memory. For NULL, send_reply() uses {}. */
static cJSON *make_parameters(const char *name, const char *value)
{
	cJSON *o = cJSON_CreateObject();

	if (o && !cJSON_AddStringToObject(o, name, value)) {
		cJSON_Delete(o);
		return NULL;
	}
	return o;
}

void fr_call_invalid_parameter(struct fr_call *c, const char *name)
{
	send_last_reply(c, SERVICE ".InvalidParameter", make_parameters("parameter", name));
}

static const char *error_name(int code)
{
	switch (code) {
	case -EPERM:
	case -EACCES:
		return FR_ERROR_PERMISSION;
	case -EAGAIN:
		return FR_ERROR_SUPPRESSED;
	case -ENOSPC:
	case -EDQUOT:
		return FR_ERROR_NO_SPACE;
	default:
		return FR_ERROR_FAILED;
	}
}

static cJSON *diag_parameters(const struct fr_diag *d, int code)
{
	cJSON *o = make_parameters("what", d && d->code ? d->what : strerror(-code));

	if (o && d && d->code && d->hint[0])
		cJSON_AddStringToObject(o, "hint", d->hint);
	return o;
}

void fr_call_fail(struct fr_call *c, const struct fr_diag *d, int code)
{
	send_last_reply(c, error_name(code), diag_parameters(d, code));
}

void fr_call_abandon(struct fr_connection *c, const struct fr_diag *d)
{
	if (c->call)
		send_reply(c->call, FR_ERROR_FAILED, diag_parameters(d, d->code), false);
}

/* Refuses CALL with a message. If the user is a member of the group, METHOD is for root alone, and the
   message says so. Otherwise the message says that the user is neither root nor in the group, even if METHOD
   is for root alone. */
static void refuse_access(struct fr_connection *c, struct fr_call *call, const struct fr_method *method)
{
	const struct fr_server *s = c->server;
	const char *group = s->config.group ? s->config.group : "", *verb = strrchr(method->name, '.') + 1;
	struct fr_diag d = {0};
	char hint[256] = "run this command as root";

	if (s->group != (gid_t)-1 && method->access == FR_ACCESS_GROUP)
		snprintf(hint, sizeof(hint), "run this command as root or as a member of the group '%.128s'",
			group);
	if (c->access >= FR_ACCESS_GROUP)
		fr_fail(&d, -EPERM, hint,
			"%s is for root alone; user %u is a member of the group '%.128s', which may read and "
			"make dumps",
			verb, (unsigned)c->peer.uid, group);
	else
		fr_fail(&d, -EPERM, hint, "user %u is not root and not in the group '%.128s'",
			(unsigned)c->peer.uid, group);
	fr_call_fail(call, &d, -EPERM);
}

static void reply_info(struct fr_call *call)
{
	const char *const interfaces[] = {SERVICE, FR_INTERFACE};
	cJSON *o = make_parameters("vendor", "flightrec"), *list = cJSON_CreateStringArray(interfaces, 2);

	cJSON_AddStringToObject(o, "product", "flightrecd");
	cJSON_AddStringToObject(o, "version", FR_VERSION);
	cJSON_AddStringToObject(o, "url", "");
	if (!cJSON_AddItemToObject(o, "interfaces", list))
		cJSON_Delete(list);
	fr_call_reply(call, o);
}

static void reply_description(const struct fr_server *s, struct fr_call *call, const cJSON *parameters)
{
	const char *name = NULL;

	if (fr_param_string(parameters, "interface", &name) != 1)
		fr_call_invalid_parameter(call, "interface");
	else if (!strcmp(name, SERVICE))
		fr_call_reply(call, make_parameters("description", service_description));
	else if (!strcmp(name, FR_INTERFACE) && s->config.description)
		fr_call_reply(call, make_parameters("description", s->config.description));
	else
		send_last_reply(call, SERVICE ".InterfaceNotFound", make_parameters("interface", name));
}

static const struct fr_method *find_method(const struct fr_server *s, const char *name)
{
	for (const struct fr_method *const *table = s->config.methods; *table; table++)
		for (const struct fr_method *m = *table; m->name; m++)
			if (!strcmp(m->name, name))
				return m;
	return NULL;
}

/* Replies that the server does not have the interface of METHOD; or, if it has the interface, that the
   interface has no such method. */
static void reply_not_found(struct fr_call *call, const char *method)
{
	const char *dot = strrchr(method, '.');
	size_t len = dot ? (size_t)(dot - method) : 0;
	_cleanup_free_ char *interface = strndup(method, len);

	if (interface && strcmp(interface, SERVICE) && strcmp(interface, FR_INTERFACE))
		send_last_reply(call, SERVICE ".InterfaceNotFound", make_parameters("interface", interface));
	else
		send_last_reply(call, SERVICE ".MethodNotFound", make_parameters("method", method));
}

static void run_method(struct fr_connection *c, struct fr_call *call, const struct fr_wire_call *wire)
{
	const struct fr_server *s = c->server;
	const struct fr_method *method = find_method(s, wire->method);
	const cJSON empty = {.type = cJSON_Object};
	const cJSON *parameters = wire->parameters ? wire->parameters : &empty;
	const char *bad =
		method && method->parameters ? fr_param_check(parameters, method->parameters) : NULL;

	if (!strcmp(wire->method, SERVICE ".GetInfo"))
		reply_info(call);
	else if (!strcmp(wire->method, SERVICE ".GetInterfaceDescription"))
		reply_description(s, call, parameters);
	else if (!method)
		reply_not_found(call, wire->method);
	else if (c->access < method->access)
		refuse_access(c, call, method);
	else if (bad)
		fr_call_invalid_parameter(call, bad);
	else if (!s->config.gate || !s->config.gate(s->config.ctx, call, method, parameters))
		method->handle(s->config.ctx, call, parameters);
}

/* Sends the error D for a malformed message, which cannot be run as a call. Nothing more is read from the
   client, so the connection is closed when the error is sent. */
static void reject_message(struct fr_connection *c, const struct fr_diag *d)
{
	struct fr_call call = {.connection = c};

	send_reply(&call, FR_ERROR_FAILED, diag_parameters(d, d->code), false);
	c->eof = true;
	fr_wire_reader_deinit(&c->reader);
}

void fr_call_run(struct fr_connection *c, const char *text, size_t len)
{
	struct fr_wire_call wire;
	struct fr_diag d = {0};
	struct fr_call *call;
	cJSON *message = NULL;
	int r = fr_wire_parse(text, len, &message, &d);

	if (r == 0)
		r = fr_wire_decode_call(message, &wire, &d);
	call = r == 0 ? calloc(1, sizeof(*call)) : NULL;
	if (call) {
		*call = (struct fr_call){
			.connection = c, .peer = c->peer, .more = wire.more, .oneway = wire.oneway};
		c->call = call;
		run_method(c, call, &wire);
	} else if (r < 0) {
		reject_message(c, &d);
	} else {
		c->is_dead = true;
	}
	cJSON_Delete(message);
}
