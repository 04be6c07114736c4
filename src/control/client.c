// SPDX-License-Identifier: GPL-2.0-or-later
#include "control/client.h"
#include "control/interface.h"
#include "control/server.h"
#include "control/wire.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define CONNECT_TIMEOUT_S 5

struct fr_client {
	int fd;
	struct fr_wire_reader reader;
	void (*tick)(void *ctx);
	void *tick_ctx;
};

static int explain_no_permission(const char *path, struct fr_diag *d)
{
	const struct group *g = NULL;
	char hint[256] = "run this command as root";
	struct stat st;

	if (stat(path, &st) == 0 && (st.st_mode & 0060) && st.st_gid != 0)
		g = getgrgid(st.st_gid);
	if (g)
		snprintf(hint, sizeof(hint), "run this command as root or as a member of the group '%.128s'",
			g->gr_name);
	return fr_fail(d, -EACCES, hint, "not permitted to talk to flightrecd at %s", path);
}

static int explain_no_connection(const char *path, int code, struct fr_diag *d)
{
	static const char start[] =
		"run 'systemctl start flightrecd', or name the socket of a running flightrecd with --socket";

	switch (code) {
	case -ENOENT:
	case -ENOTDIR:
		return fr_fail(d, -ENOENT, start, "flightrecd is not running (no socket at %s)", path);
	case -ECONNREFUSED:
		return fr_fail(d, code, start, "flightrecd is not running (nobody listens on %s)", path);
	case -EACCES:
		return explain_no_permission(path, d);
	case -EAGAIN:
		return fr_fail(d, code, "try again, then look at its log: journalctl -u flightrecd",
			"flightrecd at %s accepts no more connections", path);
	default:
		return fr_fail_errno(d, code, NULL, "cannot talk to flightrecd at %s", path);
	}
}

int fr_client_connect(const char *path, struct fr_client **ret, struct fr_diag *d)
{
	const struct timeval patience = {.tv_sec = CONNECT_TIMEOUT_S};
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	_cleanup_close_ int fd = -1;
	struct fr_client *c;

	if (strlen(path) >= sizeof(sa.sun_path))
		return fr_fail(d, -ENAMETOOLONG, "give --socket a path of at most 107 bytes",
			"the path of the control socket is too long: %s", path);
	strcpy(sa.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return fr_fail_errno(d, -errno, NULL, "cannot make a socket");
	/* The option limits how long connect() waits for a place in the queue of the socket. */
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		return explain_no_connection(path, -errno, d);
	if (fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK) < 0)
		return fr_fail_errno(d, -errno, NULL, "cannot set up a socket");
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->fd = TAKE_FD(fd);
	c->reader.max = FR_WIRE_MAX_REPLY;
	*ret = c;
	return 0;
}

struct fr_client *fr_client_free(struct fr_client *c)
{
	if (!c)
		return NULL;
	close(c->fd);
	fr_wire_reader_deinit(&c->reader);
	free(c);
	return NULL;
}

void fr_client_break(struct fr_client *c)
{
	(void)shutdown(c->fd, SHUT_RDWR);
}

void fr_client_on_wait(struct fr_client *c, void (*tick)(void *ctx), void *ctx)
{
	c->tick = tick;
	c->tick_ctx = ctx;
}

/* Waits for EVENTS until DEADLINE_NS (0: without a limit). Returns 0; or a negative errno, with a message in
   D. */
static int wait_for(struct fr_client *c, short events, uint64_t deadline_ns, struct fr_diag *d)
{
	for (;;) {
		struct pollfd p = {.fd = c->fd, .events = events};
		uint64_t now = fr_monotonic_ns(), left_ms = 1000;
		int n;

		if (deadline_ns && now >= deadline_ns)
			return fr_fail(d, -ETIMEDOUT, "look at its log: journalctl -u flightrecd",
				"flightrecd did not answer in time");
		if (deadline_ns)
			left_ms = FR_MIN(left_ms, (deadline_ns - now) / FR_NSEC_PER_MSEC + 1);
		n = poll(&p, 1, (int)left_ms);
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return fr_fail_errno(d, -errno, NULL, "cannot wait for flightrecd");
		if (n == 0 && c->tick)
			c->tick(c->tick_ctx);
	}
}

/* Sends all of OUT. Also returns 0 if the server has closed the connection. A server that refuses a client
   sends a reply before it closes the connection, and the client can still read this reply. */
static int send_all(struct fr_client *c, const struct fr_buf *out, uint64_t deadline_ns, struct fr_diag *d)
{
	for (size_t sent = 0; sent < out->len;) {
		ssize_t n = send(c->fd, out->data + sent, out->len - sent, MSG_NOSIGNAL);
		int r;

		if (n >= 0) {
			sent += (size_t)n;
			continue;
		}
		if (errno == EPIPE || errno == ECONNRESET)
			return 0;
		if (errno != EAGAIN && errno != EINTR)
			return fr_fail_errno(d, -errno, NULL, "cannot send to flightrecd");
		r = wait_for(c, POLLOUT, deadline_ns, d);
		if (r < 0)
			return r;
	}
	return 0;
}

static int receive(struct fr_client *c, uint64_t deadline_ns, cJSON **ret, struct fr_diag *d)
{
	for (;;) {
		_cleanup_free_ char *text = NULL;
		char data[16384];
		size_t len;
		ssize_t n;
		int r = fr_wire_next(&c->reader, &text, &len);

		if (r < 0)
			return fr_fail(d, -EBADMSG, NULL, "the answer of flightrecd is too long");
		if (r > 0)
			return fr_wire_parse(text, len, ret, d);
		n = recv(c->fd, data, sizeof(data), 0);
		if (n == 0 || (n < 0 && errno == ECONNRESET))
			return fr_fail(d, -ECONNRESET, "look at its log: journalctl -u flightrecd",
				"flightrecd closed the connection without an answer");
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return fr_fail_errno(d, -errno, NULL, "cannot read from flightrecd");
		r = n > 0 ? fr_wire_feed(&c->reader, data, (size_t)n) : wait_for(c, POLLIN, deadline_ns, d);
		if (r < 0)
			return r;
	}
}

/* Sends a call. Consumes PARAMETERS. */
static int send_call(struct fr_client *c, const char *method, cJSON *parameters, bool more,
	uint64_t deadline_ns, struct fr_diag *d)
{
	_cleanup_buf_ struct fr_buf out = {0};
	cJSON *message = cJSON_CreateObject();
	int r = message && cJSON_AddStringToObject(message, "method", method) ? 0 : -ENOMEM;

	if (r == 0 && more && !cJSON_AddTrueToObject(message, "more"))
		r = -ENOMEM;
	if (r == 0 && parameters && !cJSON_AddItemToObject(message, "parameters", parameters))
		r = -ENOMEM;
	if (r < 0)
		cJSON_Delete(parameters);
	else
		r = fr_wire_encode(message, FR_WIRE_MAX_CALL, &out);
	cJSON_Delete(message);
	if (r == -EMSGSIZE)
		return fr_fail(d, r, NULL, "the call is longer than %u bytes", FR_WIRE_MAX_CALL);
	return r < 0 ? r : send_all(c, &out, deadline_ns, d);
}

/* Copies the text of an error reply into D. Returns the negative errno for this error (see
   fr_client_call()). */
static int remote_error(const struct fr_wire_reply *reply, const char *method, struct fr_diag *d)
{
	static const struct {
		const char *name;
		int code;
	} known[] = {
		{FR_ERROR_PERMISSION, -EPERM},
		{FR_ERROR_SUPPRESSED, -EAGAIN},
		{FR_ERROR_NO_SPACE, -ENOSPC},
	};
	const char *what = NULL, *hint = NULL;
	int code = -EREMOTEIO;

	for (size_t i = 0; i < FR_ARRAY_SIZE(known); i++)
		if (!strcmp(reply->error, known[i].name))
			code = known[i].code;
	(void)fr_param_string(reply->parameters, "what", &what);
	(void)fr_param_string(reply->parameters, "hint", &hint);
	if (what)
		return fr_fail(d, code, hint, "%s", what);
	if (!strncmp(reply->error, "org.varlink.service.", strlen("org.varlink.service.")))
		return fr_fail(d, code, "check that this program and flightrecd have the same version",
			"flightrecd refused the call of %s: %s", method, reply->error);
	return fr_fail(d, code, NULL, "flightrecd answered with the error %s", reply->error);
}

/* Receives one reply. RET points into *RET_MESSAGE, which the caller deletes, also on failure. Returns 0. If
   there is no reply, or if the reply is an error, returns a negative errno, with a message in D. */
static int receive_reply(struct fr_client *c, const char *method, uint64_t deadline_ns, cJSON **ret_message,
	struct fr_wire_reply *ret, struct fr_diag *d)
{
	int r = receive(c, deadline_ns, ret_message, d);

	if (r == 0)
		r = fr_wire_decode_reply(*ret_message, ret, d);
	return r == 0 && ret->error ? remote_error(ret, method, d) : r;
}

int fr_client_call(struct fr_client *c, const char *method, cJSON *parameters, uint64_t timeout_ns,
	cJSON **ret_parameters, struct fr_diag *d)
{
	const uint64_t deadline_ns = timeout_ns ? fr_monotonic_ns() + timeout_ns : 0;
	struct fr_wire_reply reply;
	cJSON *message = NULL, *result;
	int r = send_call(c, method, parameters, false, deadline_ns, d);

	if (r == 0)
		r = receive_reply(c, method, deadline_ns, &message, &reply, d);
	if (r == 0 && ret_parameters) {
		result = reply.parameters ? cJSON_DetachItemFromObjectCaseSensitive(message, "parameters")
					  : cJSON_CreateObject();
		if (result)
			*ret_parameters = result;
		else
			r = -ENOMEM;
	}
	cJSON_Delete(message);
	return r;
}

int fr_client_stream(struct fr_client *c, const char *method, cJSON *parameters,
	bool (*on_reply)(void *ctx, const cJSON *parameters), void *ctx, struct fr_diag *d)
{
	int r = send_call(c, method, parameters, true, 0, d);
	bool goes_on = r == 0;

	while (goes_on) {
		struct fr_wire_reply reply;
		cJSON *message = NULL;

		r = receive_reply(c, method, 0, &message, &reply, d);
		goes_on = r == 0 && on_reply(ctx, reply.parameters) && reply.continues;
		cJSON_Delete(message);
	}
	return r;
}
