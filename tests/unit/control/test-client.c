// SPDX-License-Identifier: GPL-2.0-or-later

/* Tests of the client of the control socket, with a real server and with servers that send wrong replies. */
#include "harness.h"
#include "base/cleanup.h"
#include "control/client.h"
#include "control/wire.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

static int call(struct harness *h, const char *method, const char *parameters, cJSON **ret, struct fr_diag *d)
{
	struct fr_client *c;
	int r;

	assert_int_equal(fr_client_connect(h->path, &c, d), 0);
	r = fr_client_call(c, method, cJSON_Parse(parameters), HARNESS_LIMIT_NS, ret, d);
	fr_client_free(c);
	return r;
}

/* Checks that the parameter "s" of REPLY has LEN bytes. Deletes REPLY. */
static void expect_length(cJSON *reply, size_t len)
{
	const char *s = "";

	assert_int_equal(fr_param_string(reply, "s", &s), 1);
	assert_int_equal(strlen(s), len);
	cJSON_Delete(reply);
}

FIXTURE(harness_setup, harness_teardown)

TEST(reply_comes_back)
{
	struct harness *h = *state;
	cJSON *reply;

	harness_serve(h);
	assert_int_equal(call(h, FR_INTERFACE ".Echo", "{\"s\":\"x\"}", &reply, NULL), 0);
	expect_length(reply, 1);
	assert_int_equal(call(h, FR_INTERFACE ".Big", "{\"bytes\":3000000}", &reply, NULL), 0);
	expect_length(reply, 3000000);
	assert_int_equal(call(h, FR_INTERFACE ".Echo", NULL, NULL, NULL), 0);
	harness_unserve(h);
}

TEST(call_that_is_too_long_is_not_sent)
{
	static char parameters[FR_WIRE_MAX_CALL] = "{\"s\":\"";
	struct harness *h = *state;
	const size_t n = strlen(parameters);

	memset(parameters + n, 'x', sizeof(parameters) - n - 3);
	strcpy(parameters + sizeof(parameters) - 3, "\"}");
	assert_int_equal(call(h, FR_INTERFACE ".Echo", parameters, NULL, NULL), -EMSGSIZE);
}

TEST(error_reply_becomes_an_errno)
{
	static const struct {
		int code, want;
	} codes[] = {{EPERM, -EPERM}, {EACCES, -EPERM}, {EAGAIN, -EAGAIN}, {ENOSPC, -ENOSPC},
		{EDQUOT, -ENOSPC}, {EIO, -EREMOTEIO}};
	struct harness *h = *state;

	harness_serve(h);
	for (size_t i = 0; i < FR_ARRAY_SIZE(codes); i++) {
		cJSON *reply = (cJSON *)state;
		struct fr_diag d = {0};
		char parameters[64];

		snprintf(parameters, sizeof(parameters), "{\"reason\":\"%d\"}", codes[i].code);
		assert_int_equal(call(h, FR_METHOD(Dump), parameters, &reply, &d), codes[i].want);
		assert_string_equal(d.what, "a reason");
		assert_string_equal(d.hint, "a hint");
		assert_ptr_equal(reply, state); /* the call has not changed this pointer */
	}
	assert_int_equal(call(h, FR_INTERFACE ".Nope", "{}", NULL, NULL), -EREMOTEIO);
	harness_unserve(h);
}

struct counter {
	double sum;
	unsigned n, limit;
};

static bool count_reply(void *ctx, const cJSON *parameters)
{
	struct counter *c = ctx;
	uint64_t i = 0;

	(void)fr_param_u64(parameters, "i", &i);
	c->sum += (double)i;
	return ++c->n < c->limit;
}

static int stream(struct harness *h, const char *method, struct counter *counter)
{
	struct fr_client *c;
	int r;

	assert_int_equal(fr_client_connect(h->path, &c, NULL), 0);
	r = fr_client_stream(c, method, NULL, count_reply, counter, NULL);
	fr_client_free(c);
	return r;
}

TEST(stream_ends_after_the_last_reply)
{
	struct counter all = {.limit = 100}, two = {.limit = 2}, none = {.limit = 100};
	struct harness *h = *state;

	harness_serve(h);
	assert_int_equal(stream(h, FR_INTERFACE ".Count", &all), 0);
	assert_int_equal(all.n, 4); /* three numbers and the last reply */
	assert_true(all.sum == 0 + 1 + 2);
	assert_int_equal(stream(h, FR_INTERFACE ".Count", &two), 0);
	assert_int_equal(two.n, 2);
	assert_int_equal(stream(h, FR_INTERFACE ".Nope", &none), -EREMOTEIO);
	assert_int_equal(none.n, 0);
	harness_unserve(h);
}

static void count_tick(void *ctx)
{
	++*(int *)ctx;
}

TEST(call_times_out)
{
	struct harness *h = *state;
	struct fr_client *c;
	int ticks = 0;

	harness_serve(h);
	assert_int_equal(fr_client_connect(h->path, &c, NULL), 0);
	fr_client_on_wait(c, count_tick, &ticks);
	assert_int_equal(fr_client_call(c, FR_INTERFACE ".Wait", NULL, 1200 * FR_NSEC_PER_MSEC, NULL, NULL),
		-ETIMEDOUT);
	assert_true(ticks >= 1);
	fr_client_free(c);
	harness_unserve(h);
}

/* Calls a server that sends the given bytes and closes the connection. Returns the result of the call. */
static int call_bad_server(const struct harness *h, const void *bytes, size_t len)
{
	_cleanup_close_ int listener = -1, peer = -1;
	struct fr_client *c;
	int r;

	unlink(h->path);
	listener = raw_bind(h->path);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(fr_client_connect(h->path, &c, NULL), 0);
	peer = accept(listener, NULL, NULL);
	assert_int_equal(write(peer, bytes, len), len);
	close(TAKE_FD(peer));
	r = fr_client_call(c, "a.b", NULL, HARNESS_LIMIT_NS, NULL, NULL);
	fr_client_free(c);
	unlink(h->path);
	return r;
}

TEST(malformed_reply_is_an_error)
{
#define BYTES(text, code)                                                                                    \
	{                                                                                                    \
		text, sizeof(text), code                                                                     \
	}
	static const struct {
		const char *bytes;
		size_t len;
		int code;
	} cases[] = {
		BYTES("{}", 0),
		{"", 0, -ECONNRESET},
		{"{\"parameters\":{}", 16, -ECONNRESET},
		BYTES("hello", -EBADMSG),
		BYTES("{\"parameters\":1}", -EBADMSG),
		BYTES("{\"error\":7}", -EBADMSG),
		BYTES("{\"error\":\"x\"}", -EREMOTEIO),
	};
	struct harness *h = *state;

	h->server = fr_server_free(h->server);
	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++)
		assert_int_equal(call_bad_server(h, cases[i].bytes, cases[i].len), cases[i].code);
}
