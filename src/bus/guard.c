// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * libnats 3.4 waits without limit, or reads in a loop for ever, if a broker greets and never answers the
 * first PING, if it stops within a TLS handshake, or if it stops within a record of TLS. Only the end of the
 * socket stops these waits. The guard shuts the socket down when the wait takes too long.
 *
 * During a connect, libnats does not tell its socket. It is a TCP socket that was not open before, and whose
 * peer has the port of the server. If another thread connects to the same port at the same time, the guard
 * can end that connection, too; this thread then sees a broken connection, which it must expect anyway.
 */
#include "bus/bus_private.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

static void note_open_files(struct bus_guard *g)
{
	_cleanup_closedir_ DIR *dir = opendir("/proc/self/fd");
	struct dirent *e;

	memset(g->open_before, 0, sizeof(g->open_before));
	while (dir && (e = readdir(dir))) {
		unsigned fd = (unsigned)atoi(e->d_name);

		if (fd < 8 * sizeof(g->open_before) &&
			(int)fd != dirfd(dir)) /* which is closed before the connect */
			g->open_before[fd / 8] |= (unsigned char)(1u << (fd % 8));
	}
}

static bool is_connection_to(int fd, int port)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} peer = {0};
	socklen_t size = sizeof(peer);

	if (getpeername(fd, &peer.any, &size) < 0)
		return false;
	return (peer.any.sa_family == AF_INET && ntohs(peer.v4.sin_port) == port) ||
	       (peer.any.sa_family == AF_INET6 && ntohs(peer.v6.sin6_port) == port);
}

static void end_new_connections(struct bus_guard *g)
{
	_cleanup_closedir_ DIR *dir = opendir("/proc/self/fd");
	struct dirent *e;

	while (dir && (e = readdir(dir))) {
		unsigned fd = (unsigned)atoi(e->d_name);
		bool is_old = fd < 8 * sizeof(g->open_before) && (g->open_before[fd / 8] & (1u << (fd % 8)));

		if (!is_old && fd > 2 && is_connection_to((int)fd, g->port))
			shutdown((int)fd, SHUT_RDWR);
	}
}

static void *guard_main(void *arg)
{
	struct fr_bus *b = arg;
	struct bus_guard *g = &b->guard;

	fr_lock(&b->lock);
	while (!b->stopping || g->until_ns) {
		if (!g->until_ns) {
			fr_cond_wait(&b->cond, &b->lock);
			continue;
		}
		if (!b->stopping && fr_cond_wait_until(&b->cond, &b->lock, g->until_ns))
			continue;
		if (!g->until_ns || (!b->stopping && fr_monotonic_ns() < g->until_ns))
			continue;
		g->has_ended = true;
		if (g->fd >= 0)
			shutdown(g->fd, SHUT_RDWR);
		else
			end_new_connections(g);
		/* The connect may open a further socket, for another address of the server. */
		g->until_ns = fr_monotonic_ns() + 100 * FR_NSEC_PER_MSEC;
		fr_cond_wait_until(&b->cond, &b->lock, g->until_ns);
	}
	fr_unlock(&b->lock);
	return NULL;
}

int bus_guard_start(struct fr_bus *b)
{
	int r;

	b->guard.fd = -1;
	r = pthread_create(&b->guard.thread, NULL, guard_main, b);
	b->guard.is_started = r == 0;
	return -r;
}

void bus_guard_stop(struct fr_bus *b)
{
	if (b->guard.is_started)
		pthread_join(b->guard.thread, NULL);
	b->guard.is_started = false;
}

void bus_guard_arm(struct fr_bus *b, int fd, int port, uint64_t until_ns)
{
	struct bus_guard *g = &b->guard;

	fr_lock(&b->lock);
	if (fd < 0)
		note_open_files(g);
	g->fd = fd;
	g->port = port;
	g->has_ended = false;
	g->until_ns = until_ns;
	fr_cond_broadcast(&b->cond);
	fr_unlock(&b->lock);
}

bool bus_guard_disarm(struct fr_bus *b)
{
	bool has_ended;

	fr_lock(&b->lock);
	b->guard.until_ns = 0;
	has_ended = b->guard.has_ended;
	fr_unlock(&b->lock);
	return has_ended;
}
