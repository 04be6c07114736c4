// SPDX-License-Identifier: GPL-2.0-or-later

/* Starts and ends the server: opens the listening socket, accepts clients, and disconnects them at the
   end. */

#include "control/server_private.h"
#include "base/cleanup.h"
#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <systemd/sd-daemon.h>

#define ACCEPTS_AT_A_TIME 64
#define PAUSE_USEC (100 * 1000ULL)

/* Sends a reply that says why the client is refused, and closes FD. The socket is new, so the reply fits into
   the buffer of the socket. */
static void refuse(int fd)
{
	static const char text[] = "{\"error\":\"" FR_ERROR_FAILED
				   "\",\"parameters\":{\"what\":\"too many connections to flightrecd\","
				   "\"hint\":\"close some connections, or try again later\"}}";

	(void)!send(fd, text, sizeof(text), MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
}

/* Stops accepting clients for PAUSE_USEC. If there is no free descriptor, clients stay in the kernel's queue,
   and the socket stays readable. Without a pause, the loop would call on_accept() all the time. */
static int pause_accepting(struct fr_server *s)
{
	int r = sd_event_source_set_time_relative(s->pause, PAUSE_USEC);

	if (r >= 0)
		r = sd_event_source_set_enabled(s->pause, SD_EVENT_ONESHOT);
	return r < 0 ? r : sd_event_source_set_enabled(s->io, SD_EVENT_OFF);
}

static int on_pause_end(sd_event_source *timer, uint64_t usec, void *userdata)
{
	struct fr_server *s = userdata;

	return sd_event_source_set_enabled(s->io, SD_EVENT_ON);
}

static void add_client(struct fr_server *s, int fd)
{
	struct fr_peer peer;
	struct fr_user *user;

	if (fr_peer_read(fd, &peer) < 0) {
		close(fd);
	} else if (fr_user_add_connection(s, &peer, &user) < 0) {
		refuse(fd);
	} else {
		fr_peer_read_comm(&peer);
		(void)fr_connection_new(s, fd, &peer, user);
	}
}

/* Accepts many clients at a time. All users share the queue of the socket in the kernel, so the server
   empties the queue quickly. Otherwise, one user could keep the queue full. */
static int on_accept(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct fr_server *s = userdata;

	for (int i = 0; i < ACCEPTS_AT_A_TIME; i++) {
		int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (client >= 0)
			add_client(s, client);
		else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
			return pause_accepting(s);
		else
			return 0; /* there are no more clients, or a client has disconnected already */
	}
	return 0;
}

static gid_t find_group(struct fr_server *s)
{
	const char *name = s->config.group;
	const struct group *g;

	if (!name || !*name)
		return (gid_t)-1;
	g = getgrnam(name);
	if (g)
		return g->gr_gid;
	snprintf(s->notice, sizeof(s->notice),
		"there is no group '%s' on this system: only root can use the control socket", name);
	return (gid_t)-1;
}

static int listen_at(struct fr_server *s, struct fr_diag *d)
{
	struct fr_socket_file_config file = {
		.path = s->config.path,
		.type = SOCK_STREAM,
		.what = "control socket",
		.key = "ControlSocket= (--socket)",
	};
	int r;

	s->group = file.gid = find_group(s);
	if (s->config.fd > 0) {
		s->socket.fd = s->config.fd;
		return 0;
	}
	r = fr_socket_file_open(&file, &s->socket, d);
	if (r == 0 && s->socket.is_private)
		snprintf(s->notice, sizeof(s->notice),
			"flightrecd is not permitted to give the control socket to the group '%.64s': only "
			"root and the user of flightrecd can use the socket",
			s->config.group);
	return r;
}

static int prepare_activated(int fd, struct fr_diag *d)
{
	int flags = fcntl(fd, F_GETFL);

	if (sd_is_socket_unix(fd, SOCK_STREAM, 1, NULL, 0) <= 0)
		return fr_fail(d, -EINVAL, "set ListenStream=/run/flightrec/control in flightrecd.socket",
			"the descriptor \"control\" of the service manager is not a listening unix stream "
			"socket");
	/* Without NonBlocking=, the descriptor blocks. */
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
		return fr_fail_errno(d, -errno, NULL, "cannot set up the socket of the service manager");
	return fd;
}

int fr_activated_control(struct fr_diag *d)
{
	char **names = NULL;
	/* With 0, sd_listen_fds_with_names() does not unset LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES:
	   src/handover/ reads these variables later, to find its descriptors of the descriptor store. */
	int n = sd_listen_fds_with_names(0, &names), r = 0;

	for (int i = 0; i < n && r == 0; i++)
		if (strcmp(names[i], "control") == 0)
			r = prepare_activated(SD_LISTEN_FDS_START + i, d);
	for (int i = 0; i < n; i++)
		free(names[i]);
	free(names);
	return r;
}

static int add_sources(struct fr_server *s)
{
	int r = sd_event_add_io(s->event, &s->io, s->socket.fd, EPOLLIN, on_accept, s);

	if (r >= 0)
		r = sd_event_add_time_relative(s->event, &s->pause, CLOCK_MONOTONIC, 0, 1, on_pause_end, s);
	return r < 0 ? r : sd_event_source_set_enabled(s->pause, SD_EVENT_OFF);
}

int fr_server_new(
	sd_event *event, const struct fr_server_config *config, struct fr_server **ret, struct fr_diag *d)
{
	struct fr_server *s = calloc(1, sizeof(*s));
	int r;

	fr_thread_assert(FR_THREAD_MAIN);
	if (!s)
		return -ENOMEM;
	*s = (struct fr_server){.config = *config, .socket.fd = -1, .deadline_usec = FR_SERVER_DEADLINE_USEC};
	s->event = sd_event_ref(event);
	r = listen_at(s, d);
	if (r == 0) {
		r = add_sources(s);
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
	const struct fr_diag d = {.code = -ECONNRESET, .what = "flightrecd stopped before the call ended"};

	fr_call_abandon(c, &d);
	/* Send the unsent bytes now, because the loop does not run any more. */
	if (!fr_connection_all_sent(c))
		(void)!send(
			c->fd, c->out.data + c->n_sent, c->out.len - c->n_sent, MSG_NOSIGNAL | MSG_DONTWAIT);
	fr_connection_free(c);
}

struct fr_server *fr_server_free(struct fr_server *s)
{
	if (!s)
		return NULL;
	fr_thread_assert(FR_THREAD_MAIN);
	while (!LIST_EMPTY(&s->connections))
		disconnect(LIST_FIRST(&s->connections));
	fr_users_free(s);
	sd_event_source_disable_unref(s->io);
	sd_event_source_disable_unref(s->pause);
	fr_socket_file_close(&s->socket);
	sd_event_unref(s->event);
	free(s);
	return NULL;
}

const char *fr_server_notice(const struct fr_server *s)
{
	return s->notice[0] ? s->notice : NULL;
}
