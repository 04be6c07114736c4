// SPDX-License-Identifier: GPL-2.0-or-later
#include "harness.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

static void echo(void *ctx, struct fr_call *call, const cJSON *parameters)
{
	struct harness *h = ctx;

	h->handled++;
	fr_call_reply(call, cJSON_Duplicate(parameters, true));
}

static void wait_for_teardown(void *ctx, struct fr_call *call, const cJSON *parameters)
{
	struct harness *h = ctx;

	h->handled++;
	h->open[h->n_open++] = call;
}

/* A handler of the method Dump and of the methods for triggers. The parameter "reason" or "name" is an errno
   with which the call fails. If the errno is 0, the call succeeds. */
static void dump_or_fail(void *ctx, struct fr_call *call, const cJSON *parameters)
{
	struct harness *h = ctx;
	const char *code = "0";
	struct fr_diag d = {0};
	cJSON *o;

	h->handled++;
	(void)fr_param_string(parameters, "reason", &code);
	(void)fr_param_string(parameters, "name", &code);
	if (atoi(code)) {
		fr_fail(&d, -atoi(code), "a hint", "a reason");
		fr_call_fail(call, &d, d.code);
		return;
	}
	o = cJSON_CreateObject();
	cJSON_AddStringToObject(o, "path", "/x/perf.data.sample.T");
	fr_call_reply(call, o);
}

static void reply_bytes(void *ctx, struct fr_call *call, const cJSON *parameters)
{
	uint64_t bytes = 0;
	char *s;
	cJSON *o = cJSON_CreateObject();

	(void)fr_param_u64(parameters, "bytes", &bytes);
	s = malloc(bytes + 1);
	memset(s, 'x', bytes);
	s[bytes] = '\0';
	cJSON_AddStringToObject(o, "s", s);
	free(s);
	fr_call_reply(call, o);
}

static void reply_numbers(void *ctx, struct fr_call *call, const cJSON *parameters)
{
	for (int i = 0; fr_call_wants_more(call) && i < 3; i++) {
		cJSON *o = cJSON_CreateObject();

		cJSON_AddNumberToObject(o, "i", i);
		fr_call_reply_more(call, o);
	}
	fr_call_reply(call, NULL);
}

static const struct fr_param known[] = {{"this", fr_param_is_u64, false}, {"that", cJSON_IsBool, false}, {0}};

static const struct fr_method methods[] = {
	{FR_INTERFACE ".Echo", FR_ACCESS_ANYONE, echo, NULL},
	{FR_INTERFACE ".Look", FR_ACCESS_GROUP, echo, NULL},
	{FR_INTERFACE ".Change", FR_ACCESS_ROOT, echo, NULL},
	{FR_INTERFACE ".Wait", FR_ACCESS_ANYONE, wait_for_teardown, NULL},
	{FR_METHOD(Dump), FR_ACCESS_GROUP, dump_or_fail, NULL},
	{FR_METHOD(TestTrigger), FR_ACCESS_GROUP, dump_or_fail, NULL},
	{FR_METHOD(SetTrigger), FR_ACCESS_ROOT, dump_or_fail, NULL},
	{FR_INTERFACE ".Big", FR_ACCESS_ANYONE, reply_bytes, NULL},
	{FR_INTERFACE ".Count", FR_ACCESS_ANYONE, reply_numbers, NULL},
	{FR_INTERFACE ".Strict", FR_ACCESS_ANYONE, echo, known},
	{.name = NULL},
};

static const struct fr_method *const tables[] = {methods, NULL};

int harness_setup(void **state)
{
	struct harness *h = calloc(1, sizeof(*h));
	struct fr_diag d = {0};

	h->config = (struct fr_server_config){
		.path = h->path,
		.group = "daemon",
		.methods = tables,
		.description = fr_interface_description,
		.ctx = h,
	};
	strcpy(h->dir, "/tmp/flightrec-control-XXXXXX");
	assert_non_null(mkdtemp(h->dir));
	snprintf(h->path, sizeof(h->path), "%s/control", h->dir);
	assert_true(sd_event_new(&h->event) >= 0);
	if (fr_server_new(h->event, &h->config, &h->server, &d) < 0)
		fail_msg("%s", d.what);
	*state = h;
	return 0;
}

int harness_teardown(void **state)
{
	struct harness *h = *state;

	fr_server_free(h->server);
	for (size_t i = 0; i < h->n_open; i++)
		fr_call_reply(h->open[i], NULL);
	sd_event_unref(h->event);
	assert_int_equal(access(h->path, F_OK), -1);
	assert_int_equal(rmdir(h->dir), 0);
	free(h);
	return 0;
}

void harness_pump(struct harness *h, unsigned quiet_ms)
{
	while (sd_event_run(h->event, quiet_ms * 1000ULL) > 0)
		;
}

static void *serve(void *arg)
{
	struct harness *h = arg;

	while (!h->stop)
		sd_event_run(h->event, 10000);
	return NULL;
}

void harness_serve(struct harness *h)
{
	h->stop = false;
	assert_int_equal(pthread_create(&h->thread, NULL, serve, h), 0);
}

void harness_unserve(struct harness *h)
{
	h->stop = true;
	pthread_join(h->thread, NULL);
}

static int raw_socket(const char *path, bool is_server)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	strcpy(sa.sun_path, path);
	assert_int_equal(is_server ? bind(fd, (struct sockaddr *)&sa, sizeof(sa))
				   : connect(fd, (struct sockaddr *)&sa, sizeof(sa)),
		0);
	return fd;
}

int raw_bind(const char *path)
{
	return raw_socket(path, true);
}

int raw_connect(const struct harness *h)
{
	return raw_socket(h->path, false);
}

void raw_send(int fd, const void *data, size_t len)
{
	assert_int_equal(send(fd, data, len, MSG_NOSIGNAL), (ssize_t)len);
}

cJSON *raw_reply(struct harness *h, int fd)
{
	uint64_t until = fr_monotonic_ns() + HARNESS_LIMIT_NS;
	struct fr_buf b = {0};
	cJSON *json = NULL;

	/* Read one byte at a time, because the next reply may already follow. */
	while (fr_monotonic_ns() < until) {
		char c;
		ssize_t n = recv(fd, &c, 1, 0);

		if (n == 0 || (n < 0 && errno != EAGAIN))
			break;
		if (n < 0) {
			sd_event_run(h->event, 1000);
			continue;
		}
		assert_int_equal(fr_buf_append(&b, &c, 1), 0);
		if (c == '\0') {
			json = cJSON_Parse((char *)b.data);
			assert_non_null(json);
			break;
		}
	}
	fr_buf_deinit(&b);
	return json;
}

cJSON *raw_call(struct harness *h, int fd, const char *call)
{
	raw_send(fd, call, strlen(call) + 1);
	return raw_reply(h, fd);
}

bool raw_is_closed(struct harness *h, int fd)
{
	uint64_t until = fr_monotonic_ns() + HARNESS_LIMIT_NS;

	while (fr_monotonic_ns() < until) {
		char data[4096];
		ssize_t n = recv(fd, data, sizeof(data), 0);

		if (n == 0 || (n < 0 && errno != EAGAIN))
			return true;
		if (n < 0)
			sd_event_run(h->event, 1000);
	}
	return false;
}

bool reply_is(cJSON *reply, const char *name, const char *text)
{
	const cJSON *o = name ? cJSON_GetObjectItemCaseSensitive(reply, "parameters") : reply;
	const char *s = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, name ? name : "error"));
	const bool equal = reply && !strcmp(s ? s : "", text);

	cJSON_Delete(reply);
	return equal;
}

bool raw_works(struct harness *h, int fd)
{
	return reply_is(raw_call(h, fd, CALL("Echo", "{\"s\":\"hello\"}")), "s", "hello");
}

bool new_connection_works(struct harness *h)
{
	int fd = raw_connect(h);
	bool ok = raw_works(h, fd);

	close(fd);
	return ok;
}
