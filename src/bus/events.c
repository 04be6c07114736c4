// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The event loop of libnats, on the link thread. With a loop of its own, libnats would read from a broker
 * without limit: a line that never ends, or a message of 2 GiB, goes to memory. This loop counts the bytes
 * since the last whole message, and ends the link if they are too many. It also finds a broker that is
 * silent.
 */
#include "bus/bus_private.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>

#define SILENCE_NS                                                                                           \
	(10 * FR_NSEC_PER_SEC)	       /* then the bus sends a PING; after twice the time, the link ends     \
					*/
#define STUCK_NS (5 * FR_NSEC_PER_SEC) /* the limit for one call of libnats */

static natsStatus attach(void **user, void *loop, natsConnection *nc, natsSock fd)
{
	struct fr_bus *b = loop;

	*user = b;
	b->fd = fd;
	return NATS_OK;
}

static natsStatus set_read(void *user, bool add)
{
	return NATS_OK;
}

/* Any thread calls this function when it has something to send. */
static natsStatus set_write(void *user, bool add)
{
	struct fr_bus *b = user;

	atomic_store(&b->wants_write, add);
	if (add)
		bus_wake(b);
	return NATS_OK;
}

static natsStatus detach(void *user)
{
	struct fr_bus *b = user;

	b->fd = -1;
	return NATS_OK;
}

natsStatus bus_events_set(struct fr_bus *b, natsOptions *options)
{
	return natsOptions_SetEventLoop(options, b, attach, set_read, set_write, detach);
}

struct watch {
	uint64_t messages;   /* of this link */
	uint64_t unfinished; /* bytes since the last whole message */
	uint64_t heard_ns;   /* when the broker last sent something */
	bool has_pinged;     /* since then */
};

static uint64_t messages_of(natsConnection *nc)
{
	natsStatistics *stats = NULL;
	uint64_t messages = 0;

	if (natsStatistics_Create(&stats) != NATS_OK)
		return 0;
	if (natsConnection_GetStats(nc, stats) == NATS_OK)
		natsStatistics_GetCounts(stats, &messages, NULL, NULL, NULL, NULL);
	natsStatistics_Destroy(stats);
	return messages;
}

static int read_some(struct fr_bus *b, natsConnection *nc, struct watch *w, char *why, size_t size)
{
	uint64_t messages;
	int waiting = 0;

	ioctl(b->fd, FIONREAD, &waiting);
	bus_guard_arm(b, b->fd, 0, fr_monotonic_ns() + STUCK_NS);
	fr_lock(&b->reading);
	natsConnection_ProcessReadEvent(nc);
	fr_unlock(&b->reading);
	if (bus_guard_disarm(b)) {
		snprintf(why, size, "the broker stopped in the middle of a TLS record");
		return -ETIMEDOUT;
	}
	w->heard_ns = fr_monotonic_ns();
	w->has_pinged = false;
	w->unfinished += FR_MIN((uint64_t)FR_MAX(waiting, 0), (uint64_t)FR_BUS_READ_SIZE);
	messages = messages_of(nc);
	if (messages != w->messages)
		w->unfinished = 0;
	w->messages = messages;
	if (w->unfinished > FR_BUS_UNFINISHED_MAX) {
		snprintf(why, size, "the broker sent more than %u MiB that are no message",
			FR_BUS_UNFINISHED_MAX >> 20);
		return -EPROTO;
	}
	return 0;
}

/* Finds a broker that has vanished, or that does not read. */
static int check_silence(natsConnection *nc, struct watch *w, char *why, size_t size)
{
	uint64_t silent_ns = fr_monotonic_ns() - w->heard_ns;

	if (natsConnection_Buffered(nc) > (int)FR_BUS_UNSENT_MAX) {
		snprintf(why, size, "the broker does not read");
		return -ETIMEDOUT;
	}
	if (silent_ns > 2 * SILENCE_NS) {
		snprintf(why, size, "the broker did not answer for %llu s", silent_ns / FR_NSEC_PER_SEC);
		return -ETIMEDOUT;
	}
	if (silent_ns > SILENCE_NS && !w->has_pinged) {
		w->has_pinged = true;
		natsConnection_FlushTimeout(nc, 1); /* sends a PING; read_some() hears the PONG */
	}
	return 0;
}

static bool is_stopping(struct fr_bus *b)
{
	bool stopping;

	fr_lock(&b->lock);
	stopping = b->stopping;
	fr_unlock(&b->lock);
	return stopping;
}

static int turn(struct fr_bus *b, natsConnection *nc, struct watch *w, char *why, size_t size)
{
	short events = POLLIN | (atomic_load(&b->wants_write) ? POLLOUT : 0);
	struct pollfd fds[2] = {{b->fd, events, 0}, {b->wake_fd, POLLIN, 0}};
	eventfd_t woken;
	int r = 0;

	if (poll(fds, 2, 1000) < 0 && errno != EINTR)
		return -errno;
	if (fds[1].revents)
		eventfd_read(b->wake_fd, &woken);
	if (fds[0].revents & POLLOUT) {
		bus_guard_arm(b, b->fd, 0, fr_monotonic_ns() + STUCK_NS);
		natsConnection_ProcessWriteEvent(nc);
		bus_guard_disarm(b);
	}
	if (!natsConnection_IsClosed(nc) && (fds[0].revents & (POLLIN | POLLHUP | POLLERR)))
		r = read_some(b, nc, w, why, size);
	return r < 0 ? r : check_silence(nc, w, why, size);
}

int bus_events_run(struct fr_bus *b, natsConnection *nc, char *why, size_t size)
{
	struct watch w = {.heard_ns = fr_monotonic_ns()};
	const char *text = NULL;
	natsStatus s;

	while (!is_stopping(b)) {
		int r = turn(b, nc, &w, why, size);

		if (r < 0)
			return r;
		if (!natsConnection_IsClosed(nc) && b->fd >= 0)
			continue;
		s = natsConnection_GetLastError(nc, &text);
		if (text && *text)
			bus_text(why, size, text, strnlen(text, size - 1));
		else
			snprintf(why, size, "the broker closed the link (%s)", natsStatus_GetText(s));
		return s == NATS_OK ? -ENOTCONN : bus_errno_of(s);
	}
	snprintf(why, size, "the bus stops");
	return -ENOTCONN;
}
