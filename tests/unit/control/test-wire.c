// SPDX-License-Identifier: GPL-2.0-or-later

/* The wire format, with bytes as an attacker would send them. */
#include "control/interface.h"
#include "control/wire.h"
#include "base/cleanup.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static int parse(const char *text)
{
	struct fr_diag d = {0};
	cJSON *json = NULL;
	int r = fr_wire_parse(text, strlen(text), &json, &d);

	assert_true((r == 0) == (json != NULL));
	if (r < 0) {
		assert_int_equal(r, -EBADMSG);
		assert_true(d.what[0]);
	}
	cJSON_Delete(json);
	return r;
}

static void test_messages_come_whole_from_any_pieces(void **state)
{
	static const char stream[] = "{\"method\":\"a.b\"}\0{}\0{\"x\":[1]}";
	static const char *const want[] = {"{\"method\":\"a.b\"}", "{}", "{\"x\":[1]}"};

	for (size_t step = 1; step <= sizeof(stream); step++) {
		struct fr_wire_reader r = {.max = strlen(want[0])};
		size_t n = 0, len;
		char *text = NULL;

		for (size_t at = 0; at < sizeof(stream); at += step) {
			assert_int_equal(fr_wire_feed(&r, stream + at, FR_MIN(step, sizeof(stream) - at)), 0);
			for (; fr_wire_next(&r, &text, &len) == 1; n++) {
				assert_string_equal(text, want[n]);
				assert_int_equal(len, strlen(want[n]));
				free(text);
			}
		}
		assert_int_equal(n, 3);
		fr_wire_reader_deinit(&r);
	}
}

/* A message is too long as soon as more than MAX bytes have come, with or without its end. */
static void test_message_that_is_too_long_is_an_error(void **state)
{
	for (int whole = 0; whole < 2; whole++) {
		struct fr_wire_reader r = {.max = 2};
		char *text;
		size_t len;

		assert_int_equal(fr_wire_feed(&r, "xxx", 2), 0);
		assert_int_equal(fr_wire_next(&r, &text, &len), 0);
		assert_int_equal(fr_wire_feed(&r, "xx", 1 + whole), 0);
		assert_int_equal(fr_wire_next(&r, &text, &len), -EMSGSIZE);
		fr_wire_reader_deinit(&r);
	}
}

static void make_nested(char *s, size_t depth)
{
	strcpy(s, "{\"a\":");
	for (size_t i = 1; i < depth; i++)
		strcat(s, "[");
	strcat(s, "1");
	for (size_t i = 1; i < depth; i++)
		strcat(s, "]");
	strcat(s, "}");
}

static void test_nesting_is_limited(void **state)
{
	char s[8192];

	make_nested(s, FR_WIRE_MAX_DEPTH);
	assert_int_equal(parse(s), 0);
	make_nested(s, FR_WIRE_MAX_DEPTH + 1);
	assert_int_equal(parse(s), -EBADMSG);
	make_nested(s, 2000);
	assert_int_equal(parse(s), -EBADMSG);
	/* Brackets in a string, and brackets side by side, do not nest. */
	assert_int_equal(parse("{\"a\":\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[[[[\"}"), 0);
	assert_int_equal(parse("{\"a\":[[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[]]}"), 0);
}

static void test_malformed_json_is_refused(void **state)
{
	static const char *const bad[] = {"", " ", "null", "[]", "1", "\"x\"", "{", "}", "{]", "{}}", "{} {}",
		"{\"a\":1,}", "{\"a\"}", "{\"a\":\"\\u0000\"}", "{\"a\":\"x\\u0000y\"}", "{\"\\u0000\":1}",
		"{\"a\":\"\n\"}", "{\"a\":\"\x1b[2J\"}", "{\"a\":\"\xff\"}", "{\"a\":\"\xe2\x82\"}",
		"{\"a\":\"x", "{\"a\":\"x\\", "{\"a\":\"x\\\"}", "{\"a\":\xc3\xa4}", "{\"a\":nul}",
		"{\"a\":\"\\ud800\"}"};
	static const char *const good[] = {"{}", " { } ", "{\"a\":\"\\\\u0000\"}",
		"{\"a\":\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x9a\x80\"}", "{\"a\":\"\\\\\",\"b\":\"\\\"\"}",
		"{\"a\":-1.5e3,\"b\":true,\"c\":null}"};

	for (size_t i = 0; i < FR_ARRAY_SIZE(bad); i++)
		if (parse(bad[i]) == 0)
			fail_msg("accepted: %s", bad[i]);
	for (size_t i = 0; i < FR_ARRAY_SIZE(good); i++)
		if (parse(good[i]) != 0)
			fail_msg("refused: %s", good[i]);
}

static int decode(const char *text)
{
	struct fr_wire_call call = {.method = "untouched"};
	cJSON *json;
	int r;

	assert_int_equal(fr_wire_parse(text, strlen(text), &json, NULL), 0);
	r = fr_wire_decode_call(json, &call, NULL);
	if (r < 0)
		assert_string_equal(call.method, "untouched");
	cJSON_Delete(json);
	return r;
}

static void test_call_has_known_members_of_their_type(void **state)
{
	static const char *const good[] = {"{\"method\":\"a.b\"}",
		"{\"method\":\"a.b\",\"parameters\":{},\"more\":true,\"upgrade\":false}"};
	static const char *const bad[] = {"{}", "{\"method\":1}", "{\"method\":null}",
		"{\"method\":\"a\",\"method\":\"b\"}", "{\"method\":\"a\",\"parameters\":[]}",
		"{\"method\":\"a\",\"parameters\":null}", "{\"method\":\"a\",\"more\":1}",
		"{\"method\":\"a\",\"more\":true,\"oneway\":true}", "{\"method\":\"a\",\"upgrade\":true}",
		"{\"method\":\"a\",\"Method\":\"b\"}"};

	for (size_t i = 0; i < FR_ARRAY_SIZE(good); i++)
		assert_int_equal(decode(good[i]), 0);
	for (size_t i = 0; i < FR_ARRAY_SIZE(bad); i++)
		assert_int_equal(decode(bad[i]), -EBADMSG);
}

static void test_message_is_encoded_up_to_the_limit(void **state)
{
	_cleanup_buf_ struct fr_buf out = {0};
	cJSON *json = cJSON_CreateObject();

	assert_int_equal(fr_buf_append(&out, "x", 1), 0);
	cJSON_AddStringToObject(json, "a", "b");
	assert_int_equal(fr_wire_encode(json, 8, &out), -EMSGSIZE);
	assert_int_equal(out.len, 1);
	assert_int_equal(fr_wire_encode(json, 9, &out), 0);
	assert_int_equal(out.len, 1 + 10);
	assert_memory_equal(out.data, "x{\"a\":\"b\"}", 11);
	cJSON_Delete(json);
}

static void test_parameter_is_read_if_its_type_fits(void **state)
{
	static const char text[] =
		"{\"n\":30000000000,\"half\":0.5,\"minus\":-1,\"huge\":1e300,\"inf\":1e999,"
		"\"s\":\"x\",\"b\":true,\"nil\":null}";
	static const char *const no_numbers[] = {"half", "minus", "huge", "inf", "s"};
	static const char *const names[] = {"n", "half", "minus", "huge", "inf", "s", "b", NULL};
	const char *s = "old";
	uint64_t n = 7;
	bool b = false;
	cJSON *p;

	assert_int_equal(fr_wire_parse(text, strlen(text), &p, NULL), 0);
	for (size_t i = 0; i < FR_ARRAY_SIZE(no_numbers); i++)
		assert_int_equal(fr_param_u64(p, no_numbers[i], &n), -EINVAL);
	assert_int_equal(fr_param_u64(p, "nil", &n), 0);
	assert_int_equal(fr_param_u64(p, "absent", &n), 0);
	assert_int_equal(n, 7);
	assert_int_equal(fr_param_u64(p, "n", &n), 1);
	assert_int_equal(n, 30000000000);
	assert_int_equal(fr_param_string(p, "n", &s), -EINVAL);
	assert_string_equal(s, "old");
	assert_int_equal(fr_param_string(p, "s", &s), 1);
	assert_string_equal(s, "x");
	assert_int_equal(fr_param_bool(p, "s", &b), -EINVAL);
	assert_int_equal(fr_param_bool(p, "b", &b), 1);
	assert_true(b);
	assert_string_equal(fr_param_unknown(p, names), "nil");
	assert_null(fr_param_unknown(NULL, names));
	cJSON_Delete(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages_come_whole_from_any_pieces),
		cmocka_unit_test(test_message_that_is_too_long_is_an_error),
		cmocka_unit_test(test_nesting_is_limited),
		cmocka_unit_test(test_malformed_json_is_refused),
		cmocka_unit_test(test_call_has_known_members_of_their_type),
		cmocka_unit_test(test_message_is_encoded_up_to_the_limit),
		cmocka_unit_test(test_parameter_is_read_if_its_type_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
