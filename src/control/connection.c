// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One client.
 *
 *   socket ─► reader ─► one message at a time ─► handler ─► out ─► socket
 *
 * The next message waits until the call before it has ended and its reply is out, so a client that sends
 * much and reads nothing costs one message and one reply. The kernel's socket buffer is the queue: while
 * a call is open nothing is read beyond one message. A deadline runs whenever the client owes something: its
 * first message, the rest of one, or reading a reply.
 *
 * Handlers run inside work(), and may end calls there or later; either may find the client gone. So a
 * connection is only marked dead on the way, and freed at the end of the event that found it.
 */
#include "control/server_private.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

static bool drained(const struct fr_connection *c)
{
	return c->sent == c->out.len;
}

/* Arm or disarm a timer, USEC from now. A timer that cannot be set leaves the connection unguarded: give it
 * up. */
static void set_timer(struct fr_connection *c, sd_event_source *timer, uint64_t usec)
{
	int r = usec ? sd_event_source_set_time_relative(timer, usec) : 0;

	if (r >= 0)
		r = sd_event_source_set_enabled(timer, usec ? SD_EVENT_ONESHOT : SD_EVENT_OFF);
	if (r < 0)
		c->dead = true;
}

/* Whether the client owes us something; FRESH: it has just made progress, so its time starts anew. */
static void update_deadline(struct fr_connection *c, bool fresh)
{
	bool owes = !drained(c) || (!c->call && !c->throttled && (!c->greeted || c->reader.in.len > 0));
	int enabled = SD_EVENT_OFF;

	(void)sd_event_source_get_enabled(c->deadline, &enabled);
	if (!owes && enabled != SD_EVENT_OFF)
		set_timer(c, c->deadline, 0);
	else if (owes && (fresh || enabled == SD_EVENT_OFF))
		set_timer(c, c->deadline, c->server->deadline_usec);
}

static void update_io(struct fr_connection *c)
{
	uint32_t events = 0;

	/* A hang-up is always reported, so one that waits for a call learns that its client has gone. */
	if (!c->eof && !c->call && !c->throttled && drained(c))
		events |= EPOLLIN;
	if (!drained(c))
		events |= EPOLLOUT;
	if (sd_event_source_set_io_events(c->io, events) < 0)
		c->dead = true;
}

static void flush(struct fr_connection *c)
{
	while (!c->dead && !drained(c)) {
		ssize_t n =
			send(c->fd, c->out.data + c->sent, c->out.len - c->sent, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			c->dead = true;
			return;
		}
		c->sent += (size_t)n;
		update_deadline(c, true);
	}
	fr_buf_deinit(&c->out);
	c->sent = 0;
}

/* Run the messages that are whole, as far as calls, replies and the rate allow. */
static void run_messages(struct fr_connection *c)
{
	while (!c->dead && !c->call && !c->throttled && drained(c)) {
		_cleanup_free_ char *text = NULL;
		size_t len;
		int r;

		if (c->reader.in.len > 0 && !fr_user_take_token(c->user)) {
			c->throttled = true;
			set_timer(c, c->refill, 1000000 / FR_SERVER_RATE * 4);
			return;
		}
		r = fr_wire_next(&c->reader, &text, &len);
		if (r < 0)
			c->dead = true;
		if (r <= 0)
			return;
		c->greeted = true;
		update_deadline(c, true);
		fr_server_dispatch(c, text, len);
		flush(c);
	}
}

/* At most one message's worth: what is read while a call is open is bounded by it. */
static void receive(struct fr_connection *c)
{
	while (!c->dead && !c->eof && c->reader.in.len <= c->reader.max) {
		char data[16384];
		ssize_t n = recv(c->fd, data, sizeof(data), MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0 || fr_wire_feed(&c->reader, data, (size_t)n) < 0)
			c->dead = true;
		else if (n == 0)
			c->eof = true;
	}
}

/* Everything that can be done now, then wait for what is missing. C may be gone afterwards. */
static void work(struct fr_connection *c)
{
	c->busy = true;
	flush(c);
	run_messages(c);
	c->busy = false;
	if (c->eof && !c->call && !c->throttled && drained(c))
		c->dead = true;
	if (!c->dead) {
		update_deadline(c, false);
		update_io(c);
	}
	if (c->dead)
		fr_connection_free(c);
}

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct fr_connection *c = userdata;

	/* After a hang-up nobody reads replies, but what was sent before it (one-way calls) still counts. */
	if (revents & (EPOLLIN | EPOLLHUP | EPOLLERR))
		receive(c);
	if ((revents & (EPOLLHUP | EPOLLERR)) && (c->call || c->throttled || !drained(c)))
		c->dead = true;
	work(c);
	return 0;
}

static int on_deadline(sd_event_source *timer, uint64_t usec, void *userdata)
{
	struct fr_connection *c = userdata;

	c->dead = true;
	work(c);
	return 0;
}

static int on_refill(sd_event_source *timer, uint64_t usec, void *userdata)
{
	struct fr_connection *c = userdata;

	c->throttled = false;
	work(c);
	return 0;
}

/* Inside work() it goes on by itself. Elsewhere a handler may hold on to the connection: the loop does it. */
static void kick(struct fr_connection *c)
{
	if (!c->busy)
		set_timer(c, c->refill, 1);
}

void fr_connection_send(struct fr_connection *c, const cJSON *message)
{
	if (c->dead)
		return;
	if (c->out.len - c->sent > FR_SERVER_MAX_BACKLOG ||
		fr_wire_encode(message, FR_WIRE_MAX_REPLY, &c->out) < 0)
		c->dead = true;
	kick(c);
}

void fr_connection_call_done(struct fr_connection *c)
{
	c->call = NULL;
	kick(c);
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
		fr_user_put(s, user);
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
	c->access = fr_peer_access(fd, &c->peer, s->listener.group);
	return 0;
}

void fr_connection_free(struct fr_connection *c)
{
	if (c->call)
		c->call->connection = NULL;
	LIST_REMOVE(c, link);
	c->server->n_connections--;
	fr_user_put(c->server, c->user);
	sd_event_source_disable_unref(c->io);
	sd_event_source_disable_unref(c->deadline);
	sd_event_source_disable_unref(c->refill);
	fr_wire_reader_deinit(&c->reader);
	fr_buf_deinit(&c->out);
	close(c->fd);
	free(c);
}
