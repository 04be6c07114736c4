// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * The connection of one client:
 *
 *   socket ─► reader ─► one message at a time ─► call.c ─► out ─► socket
 *
 * The next message waits until the previous call has ended and its reply is sent. Until this reply is sent,
 * the server reads nothing from the client, and further messages wait in the socket buffer of the kernel. So
 * for a client that sends many calls and reads no replies, the server needs memory only for about one message
 * of the largest size, and for the replies to one call. A deadline runs whenever the client has to act: to
 * send its first message, to send the rest of a message, or to read a reply.
 *
 * Any function can find that the connection has failed, for example when a handler sends a reply. After the
 * failure, the callers of this function still use the connection. So the function only marks the connection
 * as dead. work_on() frees a dead connection when nothing uses it any more.
 */

#include "control/server_private.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

bool fr_connection_all_sent(const struct fr_connection *c)
{
	return c->n_sent == c->out.len;
}

/* Sets a timer to USEC from now; 0 switches the timer off. If the timer cannot be set, marks the connection
   as dead, because without its timers a connection could stay forever. */
static void set_timer(struct fr_connection *c, sd_event_source *timer, uint64_t usec)
{
	int r = usec ? sd_event_source_set_time_relative(timer, usec) : 0;

	if (r >= 0)
		r = sd_event_source_set_enabled(timer, usec ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
	if (r < 0)
		c->is_dead = true;
}

/* Starts the deadline if the client has to act, and stops it if the client does not have to act. If PROGRESS
   is true, the client has just acted, so a running deadline starts again. */
static void update_deadline(struct fr_connection *c, bool progress)
{
	const bool has_to_act = !fr_connection_all_sent(c) ||
				(!c->call && !c->is_throttled && (!c->has_called || c->reader.in.len > 0));
	int enabled = SD_EVENT_OFF;

	(void)sd_event_source_get_enabled(c->deadline, &enabled);
	if (!has_to_act && enabled != SD_EVENT_OFF)
		set_timer(c, c->deadline, 0);
	else if (has_to_act && (progress || enabled == SD_EVENT_OFF))
		set_timer(c, c->deadline, c->server->deadline_usec);
}

static void update_io(struct fr_connection *c)
{
	uint32_t events = 0;

	/* epoll reports a hang-up even if EVENTS is 0. */
	if (!c->eof && !c->call && !c->is_throttled && fr_connection_all_sent(c))
		events |= EPOLLIN;
	if (!fr_connection_all_sent(c))
		events |= EPOLLOUT;
	if (sd_event_source_set_io_events(c->io, events) < 0)
		c->is_dead = true;
}

static void send_replies(struct fr_connection *c)
{
	while (!c->is_dead && !fr_connection_all_sent(c)) {
		ssize_t n = send(
			c->fd, c->out.data + c->n_sent, c->out.len - c->n_sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			c->is_dead = true;
			return;
		}
		c->n_sent += (size_t)n;
		update_deadline(c, true);
	}
	fr_buf_deinit(&c->out);
	c->n_sent = 0;
}

/* Handles the received messages, one after the other. Stops when a call goes on, when a reply cannot be sent
   yet, when the user has no token left, or when no whole message is left. */
static void run_messages(struct fr_connection *c)
{
	while (!c->is_dead && !c->call && !c->is_throttled && fr_connection_all_sent(c)) {
		_cleanup_free_ char *text = NULL;
		size_t len;
		int r;

		if (c->reader.in.len > 0 && !fr_user_take_token(c->user)) {
			c->is_throttled = true;
			set_timer(c, c->refill, 4 * 1000000 / FR_SERVER_RATE);
			return;
		}
		r = fr_wire_next(&c->reader, &text, &len);
		if (r < 0)
			c->is_dead = true;
		if (r <= 0)
			return;
		c->has_called = true;
		update_deadline(c, true);
		fr_call_run(c, text, len);
		send_replies(c);
	}
}

/* Reads until the socket is empty, or until the reader has more bytes than the longest allowed message. */
static void receive(struct fr_connection *c)
{
	while (!c->is_dead && !c->eof && c->reader.in.len <= c->reader.max) {
		char data[16384];
		ssize_t n = recv(c->fd, data, sizeof(data), MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0 || fr_wire_feed(&c->reader, data, (size_t)n) < 0)
			c->is_dead = true;
		else if (n == 0)
			c->eof = true;
	}
}

/* Sends replies and handles messages as far as possible now, and tells the loop what to wait for. May free
   C. */
static void work_on(struct fr_connection *c)
{
	c->is_working = true;
	send_replies(c);
	run_messages(c);
	c->is_working = false;
	if (c->eof && !c->call && !c->is_throttled && fr_connection_all_sent(c))
		c->is_dead = true;
	if (!c->is_dead) {
		update_deadline(c, false);
		update_io(c);
	}
	if (c->is_dead)
		fr_connection_free(c);
}

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct fr_connection *c = userdata;

	/* After a hang-up nobody reads replies. But messages that the client sent before the hang-up can be
	   one-way calls, so they are still handled, if they can be handled at once. */
	if (revents & (EPOLLIN | EPOLLHUP | EPOLLERR))
		receive(c);
	if ((revents & (EPOLLHUP | EPOLLERR)) && (c->call || c->is_throttled || !fr_connection_all_sent(c)))
		c->is_dead = true;
	work_on(c);
	return 0;
}

static int on_deadline(sd_event_source *timer, uint64_t usec, void *userdata)
{
	struct fr_connection *c = userdata;

	c->is_dead = true;
	work_on(c);
	return 0;
}

static int on_refill(sd_event_source *timer, uint64_t usec, void *userdata)
{
	struct fr_connection *c = userdata;

	c->is_throttled = false;
	work_on(c);
	return 0;
}

/* Makes the loop call work_on() later. This function does not call work_on(), because work_on() may free C,
   and the caller may still use C. If work_on() is running already, it will see the change, and needs no
   further call. */
static void schedule_work(struct fr_connection *c)
{
	if (!c->is_working)
		set_timer(c, c->refill, 1);
}

void fr_connection_send(struct fr_connection *c, const cJSON *message)
{
	if (c->is_dead)
		return;
	if (c->out.len - c->n_sent > FR_SERVER_MAX_BACKLOG ||
		fr_wire_encode(message, FR_WIRE_MAX_REPLY, &c->out) < 0)
		c->is_dead = true;
	schedule_work(c);
}

void fr_connection_end_call(struct fr_connection *c)
{
	c->call = NULL;
	schedule_work(c);
}

static int add_sources(struct fr_connection *c)
{
	sd_event *event = c->server->event;
	int r = sd_event_add_io(event, &c->io, c->fd, EPOLLIN, on_io, c);

	if (r >= 0)
		r = sd_event_add_time_relative(event, &c->deadline, CLOCK_MONOTONIC, c->server->deadline_usec,
			c->server->deadline_usec / 100, on_deadline, c);
	if (r >= 0)
		r = sd_event_add_time_relative(event, &c->refill, CLOCK_MONOTONIC, 0, 1, on_refill, c);
	if (r >= 0)
		r = sd_event_source_set_enabled(c->refill, SD_EVENT_OFF);
	return r;
}

int fr_connection_new(struct fr_server *s, int fd, const struct fr_peer *peer, struct fr_user *user)
{
	struct fr_connection *c = calloc(1, sizeof(*c));
	int r;

	if (!c) {
		close(fd);
		fr_user_remove_connection(user);
		return -ENOMEM;
	}
	c->server = s;
	c->fd = fd;
	c->reader.max = FR_WIRE_MAX_CALL;
	c->peer = *peer;
	c->user = user;
	LIST_INSERT_HEAD(&s->connections, c, link);
	s->n_connections++;
	r = add_sources(c);
	if (r < 0) {
		fr_connection_free(c);
		return r;
	}
	c->access = fr_peer_access(fd, &c->peer, s->group);
	return 0;
}

void fr_connection_free(struct fr_connection *c)
{
	if (c->call)
		c->call->connection = NULL;
	LIST_REMOVE(c, link);
	c->server->n_connections--;
	fr_user_remove_connection(c->user);
	sd_event_source_disable_unref(c->io);
	sd_event_source_disable_unref(c->deadline);
	sd_event_source_disable_unref(c->refill);
	fr_wire_reader_deinit(&c->reader);
	fr_buf_deinit(&c->out);
	close(c->fd);
	free(c);
}
