// SPDX-License-Identifier: GPL-2.0-or-later
/* The wire codec against bytes as an enemy would send them. */
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

static void test_split_bytes(void **state)
{
	static const char stream[] = "{\"method\":\"a.b\"}\0{}\0{\"x\":[1]}";
	static const char *const want[] = {"{\"method\":\"a.b\"}", "{}", "{\"x\":[1]}"};

	for (size_t cut = 1; cut <= sizeof(stream); cut++) {
		struct fr_wire_reader r = {.max = 64};
		size_t n = 0;

		for (size_t at = 0; at < sizeof(stream); at += cut) {
			char *text;
			size_t len;

			assert_int_equal(fr_wire_feed(&r, stream + at, FR_MIN(cut, sizeof(stream) - at)), 0);
			while (fr_wire_next(&r, &text, &len) == 1) {
				assert_true(n < 3);
				assert_string_equal(text, want[n]);
				assert_int_equal(len, strlen(want[n]));
				n++;
				free(text);
			}
		}
		assert_int_equal(n, 3);
		assert_int_equal(r.in.len, 0);
		fr_wire_reader_deinit(&r);
	}
}

static void test_size_bound(void **state)
{
	char *text = NULL;
	size_t len;

	for (size_t n = 14; n <= 18; n++)
		for (int whole = 0; whole < 2; whole++) {
			struct fr_wire_reader r = {.max = 16};
			int want = n > 16 ? -EMSGSIZE : whole;

			assert_int_equal(fr_wire_feed(&r, "xxxxxxxxxxxxxxxxxx", n), 0);
			if (whole)
				assert_int_equal(fr_wire_feed(&r, "", 1), 0);
			assert_int_equal(fr_wire_next(&r, &text, &len), want);
			if (want == 1) {
				assert_int_equal(len, n);
				free(text);
			}
			fr_wire_reader_deinit(&r);
		}
}

static void nested(char *s, size_t depth)
{
	strcpy(s, "{\"a\":");
	for (size_t i = 1; i < depth; i++)
		strcat(s, "[");
	strcat(s, "1");
	for (size_t i = 1; i < depth; i++)
		strcat(s, "]");
	strcat(s, "}");
}

static void test_depth(void **state)
{
	char s[8192];

	nested(s, FR_WIRE_MAX_DEPTH);
	assert_int_equal(parse(s), 0);
	nested(s, FR_WIRE_MAX_DEPTH + 1);
	assert_int_equal(parse(s), -EBADMSG);
	nested(s, 2000);
	assert_int_equal(parse(s), -EBADMSG);
	/* Brackets in strings are text; width is no depth. */
	assert_int_equal(parse("{\"a\":\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[[[[\"}"), 0);
	assert_int_equal(parse("{\"a\":[[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[]]}"), 0);
}

static void test_hostile_text(void **state)
{
	static const char *const bad[] = {
		"",
		" ",
		"null",
		"[]",
		"1",
		"\"x\"",
		"{",
		"}",
		"{]",
		"{}}",
		"{} {}",
		"{\"a\":1,}",
		"{\"a\"}",
		"{\"a\":\"\\u0000\"}",
		"{\"a\":\"x\\u0000y\"}",
		"{\"\\u0000\":1}",
		"{\"a\":\"\n\"}",
		"{\"a\":\"\x1b[2J\"}",
		"{\"a\":\"\xff\"}",
		"{\"a\":\"\xc0\xaf\"}",		/* not the shortest form */
		"{\"a\":\"\xed\xa0\x80\"}",	/* a surrogate */
		"{\"a\":\"\xf4\x90\x80\x80\"}", /* past U+10FFFF */
		"{\"a\":\"\xe2\x82\"}",		/* cut */
		"{\"a\":\"x",
		"{\"a\":\"x\\",
		"{\"a\":\"x\\\"}",
		"{\"a\":\xc3\xa4}",
		"{\"a\":nul}",
		"{\"a\":\"\\ud800\"}",
	};
	static const char *const good[] = {
		"{}",
		" { } ",
		"{\"a\":\"\\\\u0000\"}", /* a backslash, then text */
		"{\"a\":\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x9a\x80\"}",
		"{\"a\":\"\\\\\",\"b\":\"\\\"\"}",
		"{\"a\":-1.5e3,\"b\":true,\"c\":null}",
	};

	for (size_t i = 0; i < FR_ARRAY_SIZE(bad); i++)
		if (parse(bad[i]) == 0)
			fail_msg("taken: %s", bad[i]);
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

static void test_strict_calls(void **state)
{
	assert_int_equal(decode("{\"method\":\"a.b\"}"), 0);
	assert_int_equal(decode("{\"method\":\"a.b\",\"parameters\":{},\"more\":true,\"upgrade\":false}"), 0);
	assert_int_equal(decode("{}"), -EBADMSG);
	assert_int_equal(decode("{\"method\":1}"), -EBADMSG);
	assert_int_equal(decode("{\"method\":null}"), -EBADMSG);
	assert_int_equal(decode("{\"method\":\"a\",\"method\":\"b\"}"), -EBADMSG);
	assert_int_equal(decode("{\"method\":\"a\",\"parameters\":[]}"), -EBADMSG);
	assert_int_equal(decode("{\"method\":\"a\",\"parameters\":null}"), -EBADMSG);
	assert_int_equal(decode("{\"method\":\"a\",\"more\":1}"), -EBADMSG);
	assert_int_equal(decode("{\"method\":\"a\",\"more\":true,\"oneway\":true}"), -EBADMSG);
	assert_int_equal(decode("{\"method\":\"a\",\"upgrade\":true}"), -EBADMSG);
	assert_int_equal(decode("{\"method\":\"a\",\"Method\":\"b\"}"), -EBADMSG);
}

static void test_encode(void **state)
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

static void test_parameters(void **state)
{
	static const char text[] =
		"{\"n\":30000000000,\"half\":0.5,\"minus\":-1,\"huge\":1e300,\"inf\":1e999,"
		"\"s\":\"x\",\"b\":true,\"nil\":null}";
	static const char *const names[] = {"n", "half", "minus", "huge", "inf", "s", "b", NULL};
	const char *s = "old";
	uint64_t n = 7;
	bool b = false;
	cJSON *p;

	assert_int_equal(fr_wire_parse(text, strlen(text), &p, NULL), 0);
	assert_int_equal(fr_param_u64(p, "half", &n), -EINVAL);
	assert_int_equal(fr_param_u64(p, "minus", &n), -EINVAL);
	assert_int_equal(fr_param_u64(p, "huge", &n), -EINVAL);
	assert_int_equal(fr_param_u64(p, "inf", &n), -EINVAL);
	assert_int_equal(fr_param_u64(p, "s", &n), -EINVAL);
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
		cmocka_unit_test(test_split_bytes),
		cmocka_unit_test(test_size_bound),
		cmocka_unit_test(test_depth),
		cmocka_unit_test(test_hostile_text),
		cmocka_unit_test(test_strict_calls),
		cmocka_unit_test(test_encode),
		cmocka_unit_test(test_parameters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
