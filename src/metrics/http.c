// SPDX-License-Identifier: GPL-2.0-or-later
#include "metrics/http.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/address.h"

#include <errno.h>
#include <microhttpd.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define CONNECTIONS_MAX 8
#define CONNECTION_BYTES (16u << 10) /* memory of a connection: head of the request, and buffer to send */
#define TIMEOUT_S 10		     /* a connection is closed after this time without progress */
#define CONTENT_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

struct fr_http {
	fr_http_text make_text;
	void *ctx;
	struct MHD_Daemon *mhd;
	sd_event_source *io, *timer;
	unsigned n_connections;
	char notice[256];
};

static enum MHD_Result answer(
	struct MHD_Connection *connection, unsigned code, struct MHD_Response *response, const char *type)
{
	enum MHD_Result r;

	if (!response)
		return MHD_NO;
	(void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	if (code == MHD_HTTP_METHOD_NOT_ALLOWED)
		(void)MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	r = MHD_queue_response(connection, code, response);
	MHD_destroy_response(response);
	return r;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned code, const char *text)
{
	return answer(connection, code,
		MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_PERSISTENT),
		"text/plain; charset=utf-8");
}

static enum MHD_Result answer_metrics(struct fr_http *h, struct MHD_Connection *connection)
{
	struct fr_buf text = {0};
	struct MHD_Response *response;

	if (h->make_text(h->ctx, &text) < 0)
		return MHD_NO;
	response = MHD_create_response_from_buffer(text.len, text.data, MHD_RESPMEM_MUST_FREE);
	if (!response)
		fr_buf_deinit(&text);
	return answer(connection, MHD_HTTP_OK, response, CONTENT_TYPE);
}

/* The library calls this function once for the head of a request, then once for each part of the body, and
   once more at the end of the request. */
static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection, const char *url,
	const char *method, const char *version, const char *body, size_t *body_len, void **state)
{
	static int seen;

	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET /metrics\n");
	if (!*state) {
		*state = &seen;
		return MHD_YES;
	}
	if (*body_len) {
		*body_len = 0;
		return MHD_YES;
	}
	if (strcmp(url, "/metrics") != 0)
		return refuse(connection, MHD_HTTP_NOT_FOUND, "not found; see /metrics\n");
	return answer_metrics(ctx, connection);
}

static unsigned count_connections(const struct fr_http *h)
{
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(h->mhd, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);

	return info ? info->num_connections : 0;
}

/* Lets the library work, and sets the timer for the next call of this function. */
static int run_library(struct fr_http *h)
{
	MHD_UNSIGNED_LONG_LONG ms;
	unsigned was;
	int r;

	/* At CONNECTIONS_MAX connections, the library accepts no more. When a connection is closed, there is
	   room for another one, but no event reports this. So call the library again as long as the number of
	   connections falls. */
	do {
		was = h->n_connections;
		if (MHD_run(h->mhd) != MHD_YES)
			return -EIO;
		h->n_connections = count_connections(h);
	} while (h->n_connections < was);
	if (MHD_get_timeout(h->mhd, &ms) != MHD_YES)
		return sd_event_source_set_enabled(h->timer, SD_EVENT_OFF);
	r = sd_event_source_set_time_relative(h->timer, ms * 1000ULL);
	return r < 0 ? r : sd_event_source_set_enabled(h->timer, SD_EVENT_ONESHOT);
}

static int on_io(sd_event_source *source, int fd, uint32_t revents, void *ctx)
{
	return run_library(ctx);
}

static int on_timer(sd_event_source *source, uint64_t usec, void *ctx)
{
	return run_library(ctx);
}

static int listen_at(const union fr_address *a)
{
	_cleanup_close_ int fd =
		socket(a->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);
	const int one = 1;

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, &a->sa, a->sa.sa_family == AF_INET6 ? sizeof(a->in6) : sizeof(a->in)) < 0 ||
		listen(fd, CONNECTIONS_MAX) < 0)
		return -errno;
	return TAKE_FD(fd);
}

static int start(struct fr_http *h, sd_event *event, const char *address)
{
	const union MHD_DaemonInfo *info;
	union fr_address a;
	int fd, r = fr_address_parse(address, &a);

	if (r < 0)
		return r;
	fd = listen_at(&a);
	if (fd < 0)
		return fd;
	h->mhd = MHD_start_daemon(MHD_USE_EPOLL, 0, NULL, NULL, on_request, h, MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX, MHD_OPTION_CONNECTION_TIMEOUT, TIMEOUT_S,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_END);
	if (!h->mhd) {
		close(fd);
		return -ENOMEM;
	}
	info = MHD_get_daemon_info(h->mhd, MHD_DAEMON_INFO_EPOLL_FD);
	if (!info || info->epoll_fd < 0)
		return -ENOTSUP;
	r = sd_event_add_io(event, &h->io, info->epoll_fd, EPOLLIN, on_io, h);
	if (r >= 0)
		r = sd_event_add_time_relative(event, &h->timer, CLOCK_MONOTONIC, 0, 1000, on_timer, h);
	return r < 0 ? r : run_library(h);
}

static void stop(struct fr_http *h)
{
	h->io = sd_event_source_disable_unref(h->io);
	h->timer = sd_event_source_disable_unref(h->timer);
	if (h->mhd)
		MHD_stop_daemon(TAKE_PTR(h->mhd)); /* also closes the listening socket */
}

/* Returns whether a service without a network can get the error R. */
static bool is_no_network(int r)
{
	return r == -EAFNOSUPPORT || r == -EADDRNOTAVAIL || r == -EPERM || r == -EACCES;
}

int fr_http_open(sd_event *event, const char *address, const char *hint, fr_http_text make_text, void *ctx,
	struct fr_http **ret)
{
	struct fr_http *h = calloc(1, sizeof(*h));
	int r;

	if (!h)
		return -ENOMEM;
	h->make_text = make_text;
	h->ctx = ctx;
	*ret = h;
	r = start(h, event, address);
	if (r >= 0) {
		fr_log(LOG_INFO, "metrics are at http://%s/metrics", address);
		return 0;
	}
	stop(h);
	snprintf(h->notice, sizeof(h->notice), "cannot listen on %s (MetricsListen=): %s%s%s", address,
		strerror(-r), hint && is_no_network(r) ? "; " : "", hint && is_no_network(r) ? hint : "");
	fr_log_struct(LOG_WARNING, FR_MSG_DEGRADED, NULL, 0, "%s", h->notice);
	return 0;
}

struct fr_http *fr_http_close(struct fr_http *h)
{
	if (h)
		stop(h);
	free(h);
	return NULL;
}

const char *fr_http_notice(const struct fr_http *h)
{
	return h && h->notice[0] ? h->notice : NULL;
}
