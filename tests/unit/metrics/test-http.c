// SPDX-License-Identifier: GPL-2.0-or-later
#include "../unit.h"
#include "metrics/http.h"
#include "base/address.h"
#include "base/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static sd_event *event;
static char numbers[] = "numbers\n";

static int new_event(void **state)
{
	return sd_event_new(&event);
}

static int free_event(void **state)
{
	event = sd_event_unref(event);
	return 0;
}

FIXTURE(new_event, free_event)

static int make_text(void *ctx, struct fr_buf *ret)
{
	return fr_buf_append(ret, ctx, strlen(ctx));
}

/* Listens on a free port of the loopback, whose address RET gets. Another process can take the port between
   the two steps, so this function tries again. */
static struct fr_http *open_somewhere(char ret[32], union fr_address *address)
{
	struct fr_http *h = NULL;

	for (int tries = 0; tries < 20; tries++) {
		_cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		socklen_t len = sizeof(address->in);

		*address = (union fr_address){
			.in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};
		assert_int_equal(bind(fd, &address->sa, len), 0);
		assert_int_equal(getsockname(fd, &address->sa, &len), 0);
		snprintf(ret, 32, "127.0.0.1:%u", ntohs(address->in.sin_port));
		close(TAKE_FD(fd));
		assert_int_equal(fr_http_open(event, ret, NULL, make_text, numbers, &h), 0);
		if (!fr_http_notice(h))
			return h;
		h = fr_http_close(h);
	}
	fail_msg("there is no free port");
	return NULL;
}

/* Sends REQUEST, lets the event loop run, and writes the whole reply into RET. */
static void ask(const union fr_address *address, const char *request, char *ret, size_t size)
{
	_cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t n = 0;
	ssize_t got;

	assert_int_equal(connect(fd, &address->sa, sizeof(address->in)), 0);
	assert_int_equal(send(fd, request, strlen(request), 0), strlen(request));
	do {
		assert_true(sd_event_run(event, 10000) >= 0);
		got = recv(fd, ret + n, size - 1 - n, MSG_DONTWAIT);
		n += got > 0 ? (size_t)got : 0;
	} while (got > 0 || (got < 0 && errno == EAGAIN));
	ret[n] = '\0';
}

TEST(only_the_path_of_the_metrics_is_answered)
{
	char text[32], reply[4096];
	union fr_address address;
	struct fr_http *h = open_somewhere(text, &address);

	ask(&address, "GET /metrics HTTP/1.0\r\n\r\n", reply, sizeof(reply));
	assert_non_null(strstr(reply, " 200 OK\r\n"));
	assert_non_null(strstr(reply, "application/openmetrics-text"));
	assert_string_equal(strstr(reply, "\r\n\r\n"), "\r\n\r\nnumbers\n");
	ask(&address, "GET / HTTP/1.0\r\n\r\n", reply, sizeof(reply));
	assert_non_null(strstr(reply, " 404 "));
	ask(&address, "POST /metrics HTTP/1.0\r\nContent-Length: 0\r\n\r\n", reply, sizeof(reply));
	assert_non_null(strstr(reply, " 405 "));
	fr_http_close(h);
}

TEST(an_address_that_is_taken_is_a_notice)
{
	char text[32];
	union fr_address address;
	struct fr_http *h = open_somewhere(text, &address), *second;

	assert_int_equal(fr_http_open(event, text, "a hint", make_text, numbers, &second), 0);
	assert_non_null(strstr(fr_http_notice(second), text));
	assert_null(strstr(fr_http_notice(second), "a hint")); /* there is a network */
	fr_http_close(second);
	fr_http_close(h);
}
