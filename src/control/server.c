// SPDX-License-Identifier: GPL-2.0-or-later
#include "control/server_private.h"
#include "control/interface.h"
#include "base/cleanup.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define SERVICE "org.varlink.service"

static const char service_description[] =
	"# What every Varlink service offers.\n"
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
	return !c->connection || c->connection->dead;
}

size_t fr_call_backlog(const struct fr_call *c)
{
	return c->connection ? c->connection->out.len - c->connection->sent : 0;
}

bool fr_call_wants_more(const struct fr_call *c)
{
	return c->more;
}

/* Build and queue one reply. PARAMETERS is consumed. */
static void send_reply(struct fr_call *call, const char *error, cJSON *parameters, bool continues)
{
	struct fr_connection *c = call->connection;
	cJSON *message;

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
		c->dead = true; /* no memory for an answer: a closed connection is one, too */
	} else if (continues && !cJSON_AddTrueToObject(message, "continues")) {
		c->dead = true;
	} else {
		fr_connection_send(c, message);
	}
	cJSON_Delete(message);
}

static void end_call(struct fr_call *call)
{
	if (call->connection)
		fr_connection_call_done(call->connection);
	free(call);
}

void fr_call_reply(struct fr_call *c, cJSON *parameters)
{
	send_reply(c, NULL, parameters, false);
	end_call(c);
}

void fr_call_reply_more(struct fr_call *c, cJSON *parameters)
{
	send_reply(c, NULL, parameters, true);
}

void fr_call_error(struct fr_call *c, const char *error, cJSON *parameters)
{
	send_reply(c, error, parameters, false);
	end_call(c);
}

/* {NAME: VALUE}, or NULL without memory: then the error goes out without its parameter. */
static cJSON *one(const char *name, const char *value)
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
	fr_call_error(c, SERVICE ".InvalidParameter", one("parameter", name));
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
	cJSON *o = one("what", d && d->code ? d->what : strerror(-code));

	if (o && d && d->code && d->hint[0])
		cJSON_AddStringToObject(o, "hint", d->hint);
	return o;
}

void fr_call_fail(struct fr_call *c, const struct fr_diag *d, int code)
{
	fr_call_error(c, error_name(code), diag_parameters(d, code));
}

/* Who is not in the group hears of it, whatever was asked for: it is the first thing to mend. */
static void refuse(struct fr_connection *c, struct fr_call *call, const struct fr_method *method)
{
	const struct fr_server_config *config = &c->server->config;
	const char *group = config->group ? config->group : "", *verb = strrchr(method->name, '.') + 1;
	struct fr_diag d = {0};
	char hint[256] = "run it as root";

	if (c->access >= FR_ACCESS_GROUP)
		fr_fail(&d, -EPERM, hint,
			"%s is for root alone; the group '%.128s' may look and make dumps, and user %u is "
			"no more than its member",
			verb, group, (unsigned)c->peer.uid);
	if (c->server->listener.group != (gid_t)-1 && method->access == FR_ACCESS_GROUP)
		snprintf(hint, sizeof(hint), "run it as root or as a member of the group '%.128s'", group);
	fr_fail(&d, -EPERM, hint, "user %u is not root and not in the group '%.128s'", (unsigned)c->peer.uid,
		group);
	fr_call_fail(call, &d, -EPERM);
}

static void get_info(struct fr_call *call)
{
	const char *const interfaces[] = {SERVICE, FR_INTERFACE};
	cJSON *o = one("vendor", "flightrec"), *list = cJSON_CreateStringArray(interfaces, 2);

	cJSON_AddStringToObject(o, "product", "flightrecd");
	cJSON_AddStringToObject(o, "version", FR_VERSION);
	cJSON_AddStringToObject(o, "url", "");
	if (!cJSON_AddItemToObject(o, "interfaces", list))
		cJSON_Delete(list);
	fr_call_reply(call, o);
}

static void get_description(struct fr_server *s, struct fr_call *call, const cJSON *parameters)
{
	const char *name = NULL;

	if (fr_param_string(parameters, "interface", &name) != 1)
		fr_call_invalid_parameter(call, "interface");
	else if (!strcmp(name, SERVICE))
		fr_call_reply(call, one("description", service_description));
	else if (!strcmp(name, FR_INTERFACE) && s->config.description)
		fr_call_reply(call, one("description", s->config.description));
	else
		fr_call_error(call, SERVICE ".InterfaceNotFound", one("interface", name));
}

static const struct fr_method *find_method(const struct fr_server *s, const char *name)
{
	for (size_t i = 0; i < s->config.n_methods; i++)
		if (!strcmp(s->config.methods[i].name, name))
			return &s->config.methods[i];
	return NULL;
}

/* An unknown method of an interface that we do have, or an unknown interface. */
static void not_found(struct fr_call *call, const char *method)
{
	const char *dot = strrchr(method, '.');
	size_t len = dot ? (size_t)(dot - method) : 0;
	_cleanup_free_ char *interface = strndup(method, len);

	if (interface && strcmp(interface, SERVICE) && strcmp(interface, FR_INTERFACE))
		fr_call_error(call, SERVICE ".InterfaceNotFound", one("interface", interface));
	else
		fr_call_error(call, SERVICE ".MethodNotFound", one("method", method));
}

static void run(struct fr_connection *c, struct fr_call *call, const struct fr_wire_call *wire)
{
	struct fr_server *s = c->server;
	const struct fr_method *method = find_method(s, wire->method);
	const cJSON empty = {.type = cJSON_Object};
	const cJSON *parameters = wire->parameters ? wire->parameters : &empty;
	const char *unknown =
		method && method->parameters ? fr_param_unknown(parameters, method->parameters) : NULL;

	if (!strcmp(wire->method, SERVICE ".GetInfo"))
		get_info(call);
	else if (!strcmp(wire->method, SERVICE ".GetInterfaceDescription"))
		get_description(s, call, parameters);
	else if (!method)
		not_found(call, wire->method);
	else if (c->access < method->access)
		refuse(c, call, method);
	else if (unknown)
		fr_call_invalid_parameter(call, unknown);
	else if (!s->config.gate || !s->config.gate(s->config.ctx, call, method, parameters))
		method->handle(s->config.ctx, call, parameters);
}

/* What is no call cannot be answered as one: say why, and close. */
static void reject(struct fr_connection *c, const struct fr_diag *d)
{
	struct fr_call call = {.connection = c};

	send_reply(&call, FR_ERROR_FAILED, diag_parameters(d, d->code), false);
	c->eof = true;
	fr_wire_reader_deinit(&c->reader);
}

void fr_server_dispatch(struct fr_connection *c, const char *text, size_t len)
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
		run(c, call, &wire);
	} else if (r < 0) {
		reject(c, &d);
	} else {
		c->dead = true;
	}
	cJSON_Delete(message);
}

/* One too many: a word, and good-bye. The socket is new, so the word fits its buffer. */
static void turn_away(int fd)
{
	static const char text[] = "{\"error\":\"" FR_ERROR_FAILED
				   "\",\"parameters\":{\"what\":\"too many connections to flightrecd\","
				   "\"hint\":\"close some, or try again later\"}}";

	(void)!send(fd, text, sizeof(text), MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
}

static bool is_shortage(int code)
{
	return code == EMFILE || code == ENFILE || code == ENOBUFS || code == ENOMEM;
}

/* Who waits stays in the queue, and the socket stays readable: without a pause the loop would spin. */
static int pause_accepting(struct fr_server *s)
{
	int r = sd_event_source_set_time_relative(s->pause, FR_SERVER_PAUSE_USEC);

	if (r >= 0)
		r = sd_event_source_set_enabled(s->pause, SD_EVENT_ONESHOT);
	return r < 0 ? r : sd_event_source_set_enabled(s->io, SD_EVENT_OFF);
}

static int on_pause_end(sd_event_source *timer, uint64_t usec, void *userdata)
{
	struct fr_server *s = userdata;

	return sd_event_source_set_enabled(s->io, SD_EVENT_ON);
}

static void take_client(struct fr_server *s, int client)
{
	struct fr_peer peer;
	struct fr_user *user;

	if (fr_peer_read(client, &peer) < 0) {
		close(client);
	} else if (fr_user_take(s, &peer, &user) < 0) {
		turn_away(client);
	} else {
		fr_peer_read_comm(&peer);
		(void)fr_connection_new(s, client, &peer, user);
	}
}

/* A crowd is got out of the way of who comes behind it: the kernel's queue is one for all. */
static int on_accept(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct fr_server *s = userdata;

	for (int i = 0; i < FR_SERVER_ACCEPTS; i++) {
		int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (client < 0)
			return is_shortage(errno) ? pause_accepting(s)
						  : 0; /* else it has gone again, or was the last */
		take_client(s, client);
	}
	return 0;
}

int fr_server_new(
	sd_event *event, const struct fr_server_config *config, struct fr_server **ret, struct fr_diag *d)
{
	struct fr_server *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->config = *config;
	s->listener.file.fd = -1;
	s->deadline_usec = FR_SERVER_DEADLINE_USEC;
	LIST_INIT(&s->connections);
	LIST_INIT(&s->users);
	s->event = sd_event_ref(event);
	r = fr_listener_open(config, &s->listener, d);
	if (r >= 0) {
		r = sd_event_add_io(event, &s->io, s->listener.file.fd, EPOLLIN, on_accept, s);
		if (r >= 0)
			r = sd_event_add_time_relative(
				event, &s->pause, CLOCK_MONOTONIC, 0, 1, on_pause_end, s);
		if (r >= 0)
			r = sd_event_source_set_enabled(s->pause, SD_EVENT_OFF);
		if (r < 0)
			fr_fail_errno(d, r, NULL, "cannot watch the control socket");
	}
	if (r < 0) {
		fr_server_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

static void disconnect(struct fr_connection *c)
{
	const struct fr_diag d = {.code = -ECONNRESET, .what = "flightrecd stopped before the call was done"};

	if (c->call)
		send_reply(c->call, FR_ERROR_FAILED, diag_parameters(&d, d.code), false);
	/* Also what the loop had no time to send any more. */
	if (c->out.len > c->sent)
		(void)!send(c->fd, c->out.data + c->sent, c->out.len - c->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
	fr_connection_free(c);
}

struct fr_server *fr_server_free(struct fr_server *s)
{
	if (!s)
		return NULL;
	while (!LIST_EMPTY(&s->connections))
		disconnect(LIST_FIRST(&s->connections));
	fr_users_free(s);
	sd_event_source_disable_unref(s->io);
	sd_event_source_disable_unref(s->pause);
	fr_listener_close(&s->listener);
	sd_event_unref(s->event);
	free(s);
	return NULL;
}

const char *fr_server_notice(const struct fr_server *s)
{
	return s->listener.notice[0] ? s->listener.notice : NULL;
}
