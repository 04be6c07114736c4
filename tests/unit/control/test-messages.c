// SPDX-License-Identifier: GPL-2.0-or-later

/* Tests of the messages of the control socket: which messages the server accepts, and what it replies. */

#include "harness.h"
#include "base/cleanup.h"
#include "control/wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

FIXTURE(harness_setup, harness_teardown)

TEST(calls_may_be_pipelined_and_split)
{
	static const char calls[] = CALL("Echo", "{\"s\":\"a\"}") "\0" CALL(
		"Echo", "{\"s\":\"b\"}") "\0" CALL("Echo", "{\"s\":\"c\"}");
	static const size_t steps[] = {1, 50, sizeof(calls)};
	struct harness *h = *state;

	for (size_t i = 0; i < FR_ARRAY_SIZE(steps); i++) {
		int fd = raw_connect(h);

		for (size_t at = 0; at < sizeof(calls); at += steps[i]) {
			raw_send(fd, calls + at, FR_MIN(steps[i], sizeof(calls) - at));
			harness_pump(h, 0);
		}
		for (const char *want = "a\0b\0c\0"; *want; want += 2)
			assert_true(reply_is(raw_reply(h, fd), "s", want));
		close(fd);
	}
}

TEST(oneway_has_no_reply_and_more_has_several)
{
	static const char count[] = "{\"method\":\"" FR_INTERFACE ".Count\",\"more\":true}";
	struct harness *h = *state;
	int fd = raw_connect(h);

	raw_send(fd, ONEWAY, sizeof(ONEWAY));
	raw_send(fd, count, sizeof(count));
	for (int i = 0; i < 4; i++) { /* Echo gets no reply, so the first reply is of Count */
		cJSON *reply = raw_reply(h, fd);

		assert_non_null(reply);
		assert_int_equal(cJSON_IsTrue(cJSON_GetObjectItem(reply, "continues")), i < 3);
		cJSON_Delete(reply);
	}
	assert_int_equal(h->handled, 1);
	close(fd);
	/* A one-way call runs also if its client disconnects at once. */
	fd = raw_connect(h);
	raw_send(fd, ONEWAY, sizeof(ONEWAY));
	close(fd);
	harness_pump(h, 20);
	assert_int_equal(h->handled, 2);
}

TEST(service_describes_itself)
{
	static const char describe[] =
		"{\"method\":\"org.varlink.service.GetInterfaceDescription\",\"parameters\":{\"interface\":"
		"\"" FR_INTERFACE "\"}}";
	struct harness *h = *state;
	int fd = raw_connect(h);

	assert_true(reply_is(
		raw_call(h, fd, "{\"method\":\"org.varlink.service.GetInfo\"}"), "version", FR_VERSION));
	assert_true(reply_is(raw_call(h, fd, describe), "description", fr_interface_description));
	close(fd);
}

TEST(error_reply_has_its_name)
{
#define SERVICE "org.varlink.service"
	static const char *const cases[][2] = {{CALL("Nope", "{}"), SERVICE ".MethodNotFound"},
		{"{\"method\":\"a.b.c\"}", SERVICE ".InterfaceNotFound"},
		{"{\"method\":\"nodots\"}", SERVICE ".InterfaceNotFound"},
		{"{\"method\":\"" SERVICE ".GetInterfaceDescription\"}", SERVICE ".InvalidParameter"},
		{CALL("Strict", "{\"this\":1,\"those\":1}"), SERVICE ".InvalidParameter"},
		{CALL("Strict", "{\"this\":1,\"that\":1}"), SERVICE ".InvalidParameter"},
		{CALL("Strict", "{\"this\":1,\"that\":true}"), ""}};
	struct harness *h = *state;
	int fd = raw_connect(h);

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++)
		if (!reply_is(raw_call(h, fd, cases[i][0]), NULL, cases[i][1]))
			fail_msg("%s", cases[i][0]);
	close(fd);
}

/* Returns whether the server accepts MESSAGE, which has LEN bytes with its NUL. If the server does not accept
   it, checks that it replies with an error and closes the connection. */
static bool accepts(struct harness *h, const char *message, size_t len)
{
	int fd = raw_connect(h);
	cJSON *reply;
	bool ok;

	while (len > 0) {
		ssize_t n = send(fd, message, len, MSG_NOSIGNAL);

		assert_true(n >= 0 || errno == EAGAIN);
		message += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
		harness_pump(h, 0);
	}
	reply = raw_reply(h, fd);
	assert_non_null(reply);
	ok = reply_is(reply, NULL, "");
	assert_true(ok ? raw_works(h, fd) : raw_is_closed(h, fd));
	close(fd);
	return ok;
}

static bool accepts_parameters(struct harness *h, const char *parameters)
{
	char message[8192];
	int n = snprintf(message, sizeof(message), "{\"method\":\"" FR_INTERFACE ".Echo\",\"parameters\":%s}",
		parameters);

	return accepts(h, message, (size_t)n + 1);
}

TEST(malformed_json_is_refused)
{
	static const char *const good[] = {"{}", " { } ", "{\"a\":\"\\\\u0000\"}",
		"{\"a\":\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x9a\x80\"}", "{\"a\":\"\\\\\",\"b\":\"\\\"\"}",
		"{\"a\":-1.5e3,\"b\":true,\"c\":null}"};
	static const char *const bad[] = {"", " ", "null", "[]", "1", "\"x\"", "{", "}", "{]", "{}}", "{} {}",
		"{\"a\":1,}", "{\"a\"}", "{\"a\":\"\\u0000\"}", "{\"a\":\"x\\u0000y\"}", "{\"\\u0000\":1}",
		"{\"a\":\"\n\"}", "{\"a\":\"\x1b[2J\"}", "{\"a\":\"\xff\"}", "{\"a\":\"\xe2\x82\"}",
		"{\"a\":\"x", "{\"a\":\"x\\", "{\"a\":\"x\\\"}", "{\"a\":\xc3\xa4}", "{\"a\":nul}",
		"{\"a\":\"\\ud800\"}"};
	struct harness *h = *state;

	for (size_t i = 0; i < FR_ARRAY_SIZE(good); i++)
		if (!accepts_parameters(h, good[i]))
			fail_msg("refused: %s", good[i]);
	for (size_t i = 0; i < FR_ARRAY_SIZE(bad); i++)
		if (accepts_parameters(h, bad[i]))
			fail_msg("accepted: %s", bad[i]);
}

/* Returns whether the server accepts DEPTH nested arrays. They are in two objects: the message and its
 * parameters. */
static bool accepts_arrays(struct harness *h, int depth)
{
	char open[2048], close[2048], text[4200];

	memset(open, '[', sizeof(open));
	memset(close, ']', sizeof(close));
	snprintf(text, sizeof(text), "{\"a\":%.*s%.*s}", depth, open, depth, close);
	return accepts_parameters(h, text);
}

TEST(nesting_is_limited)
{
	struct harness *h = *state;

	assert_true(accepts_arrays(h, FR_WIRE_MAX_DEPTH - 2));
	assert_false(accepts_arrays(h, FR_WIRE_MAX_DEPTH - 1));
	assert_false(accepts_arrays(h, 2000));
	/* Brackets in a string, and brackets side by side, do not nest. */
	assert_true(accepts_parameters(h, "{\"a\":\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[[[[\"}"));
	assert_true(accepts_parameters(h, "{\"a\":[[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[]]}"));
}

TEST(call_has_known_members_of_their_type)
{
#define ECHO_CALL "{\"method\":\"" FR_INTERFACE ".Echo\""
	static const char *const bad[] = {"GET / HTTP/1.1\r\n", "", "{}", "{\"method\":1}",
		"{\"method\":null}", ECHO_CALL ",\"method\":\"b\"}", ECHO_CALL ",\"parameters\":[]}",
		ECHO_CALL ",\"parameters\":null}", ECHO_CALL ",\"more\":1}",
		ECHO_CALL ",\"more\":true,\"oneway\":true}", ECHO_CALL ",\"upgrade\":true}",
		ECHO_CALL ",\"Method\":\"b\"}"};
	static const char good[] = ECHO_CALL ",\"parameters\":{},\"more\":true,\"upgrade\":false}";
	struct harness *h = *state;

	assert_true(accepts(h, good, sizeof(good)));
	for (size_t i = 0; i < FR_ARRAY_SIZE(bad); i++)
		if (accepts(h, bad[i], strlen(bad[i]) + 1))
			fail_msg("accepted: %s", bad[i]);
}

/* The server closes the connection at a message that is too long, and sends no reply. */
TEST(message_that_is_too_long_closes)
{
	static char message[FR_WIRE_MAX_CALL + 4096];
	struct harness *h = *state;
	size_t sent = 0;
	int fd;

	memset(message, ' ', sizeof(message));
	memcpy(message, ECHO_CALL "}", strlen(ECHO_CALL "}"));
	message[FR_WIRE_MAX_CALL] = '\0';
	assert_true(accepts(h, message, FR_WIRE_MAX_CALL + 1));
	message[FR_WIRE_MAX_CALL] = ' ';
	fd = raw_connect(h);
	while (sent < FR_WIRE_MAX_CALL + 1) {
		ssize_t n = send(fd, message + sent, FR_WIRE_MAX_CALL + 1 - sent, MSG_NOSIGNAL);

		sent += n > 0 ? (size_t)n : 0;
		harness_pump(h, 0);
	}
	assert_null(raw_reply(h, fd));
	assert_true(raw_is_closed(h, fd));
	close(fd);
}

TEST(parameter_is_read_if_its_type_fits)
{
	static const char *const no_numbers[] = {"half", "minus", "huge", "inf", "s"};
	static const struct fr_param known[] = {{"s", cJSON_IsString, true}, {0}},
				     wrong[] = {{"s", fr_param_is_u64, false}, {0}},
				     missing[] = {
					     {"s", cJSON_IsString, false}, {"b", cJSON_IsBool, true}, {0}};
	cJSON *one = cJSON_Parse("{\"s\":\"x\"}");
	cJSON *p = cJSON_Parse("{\"n\":30000000000,\"half\":0.5,\"minus\":-1,\"huge\":1e300,\"inf\":1e999,"
			       "\"s\":\"x\",\"b\":true,\"nil\":null,\"late\":1152921504606846976,"
			       "\"digits\":\"9007199254740993\",\"too_late\":\"4611686018427387905\"}");
	const char *s = "old";
	uint64_t n = 7;
	bool b = false;

	for (size_t i = 0; i < FR_ARRAY_SIZE(no_numbers); i++)
		assert_int_equal(fr_param_u64(p, no_numbers[i], &n), -EINVAL);
	assert_int_equal(fr_param_u64(p, "nil", &n), 0);
	assert_int_equal(fr_param_u64(p, "absent", &n), 0);
	assert_int_equal(n, 7);
	assert_int_equal(fr_param_u64(p, "n", &n), 1);
	assert_int_equal(n, 30000000000);
	assert_int_equal(fr_param_time(p, "n", &n), 1);
	assert_int_equal(n, 30000000000);
	assert_int_equal(fr_param_time(p, "late", &n), 1);
	assert_int_equal(n, 1ULL << 60);
	assert_int_equal(fr_param_time(p, "digits", &n), 1);
	assert_int_equal(n, 9007199254740993);
	assert_int_equal(fr_param_time(p, "nil", &n), 0);
	assert_int_equal(fr_param_time(p, "too_late", &n), -EINVAL);
	for (size_t i = 0; i < FR_ARRAY_SIZE(no_numbers); i++)
		assert_int_equal(fr_param_time(p, no_numbers[i], &n), -EINVAL);
	assert_int_equal(n, 9007199254740993);
	assert_int_equal(fr_param_string(p, "n", &s), -EINVAL);
	assert_string_equal(s, "old");
	assert_int_equal(fr_param_string(p, "s", &s), 1);
	assert_string_equal(s, "x");
	assert_int_equal(fr_param_bool(p, "s", &b), -EINVAL);
	assert_int_equal(fr_param_bool(p, "b", &b), 1);
	assert_true(b);
	assert_null(fr_param_check(one, known));
	assert_string_equal(fr_param_check(one, wrong), "s");
	assert_string_equal(fr_param_check(one, missing), "b");
	assert_string_equal(fr_param_check(p, known), "n");
	assert_string_equal(fr_param_check(NULL, known), "s");
	assert_null(fr_param_check(NULL, wrong));
	cJSON_Delete(one);
	cJSON_Delete(p);
}
