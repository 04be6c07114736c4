// SPDX-License-Identifier: GPL-2.0-or-later
#include "../unit.h"
#include "base/cleanup.h"
#include "store/request.h"

#include <errno.h>
#include <string.h>

static const struct fr_store store = {
	.endpoint = (char *)"https://s3.example:9000", .bucket = (char *)"dumps"};

static void check_url(const struct fr_store_request *req, const char *expected)
{
	_cleanup_buf_ struct fr_buf b = {0};

	assert_int_equal(fr_store_url(&store, req, &b), 0);
	assert_string_equal(b.data, expected);
}

TEST(url_of_an_object)
{
	const struct fr_store_query part[] = {{"partNumber", "3"}, {"uploadId", "a+/=b"}};

	check_url(&(struct fr_store_request){.key = "p/2026-1f/a=2Eb/c d"},
		"https://s3.example:9000/dumps/p/2026-1f/a%3D2Eb/c%20d");
	check_url(&(struct fr_store_request){.key = "\xc3\xbc?#%~._-"},
		"https://s3.example:9000/dumps/%C3%BC%3F%23%25~._-");
	check_url(&(struct fr_store_request){.key = "k", .query = part, .n_query = 2},
		"https://s3.example:9000/dumps/k?partNumber=3&uploadId=a%2B%2F%3Db");
}

/* The signature needs "uploads=", and a name without "=" is another URL. */
TEST(url_of_a_bucket)
{
	const struct fr_store_query lifecycle = {"lifecycle", ""};

	check_url(&(struct fr_store_request){0}, "https://s3.example:9000/dumps");
	check_url(&(struct fr_store_request){.query = &lifecycle, .n_query = 1},
		"https://s3.example:9000/dumps?lifecycle=");
}

TEST(keys_that_can_be_sent)
{
	static const char *const bad[] = {"", "/", "/a", "a/", "a//b", ".", "..", "a/./b", "a/.."};
	static const char *const fine[] = {"a", "a/b", "...", "a/.b/..c", "a=2E/\xc3\xbc"};
	char text[FR_STORE_KEY_MAX + 2];

	for (size_t i = 0; i < FR_ARRAY_SIZE(bad); i++)
		assert_int_equal(fr_store_key_check(bad[i], NULL), -EINVAL);
	for (size_t i = 0; i < FR_ARRAY_SIZE(fine); i++)
		assert_int_equal(fr_store_key_check(fine[i], NULL), 0);
	memset(text, 'x', sizeof(text));
	text[FR_STORE_KEY_MAX + 1] = '\0';
	assert_int_equal(fr_store_key_check(text, NULL), -EINVAL);
	text[FR_STORE_KEY_MAX] = '\0';
	assert_int_equal(fr_store_key_check(text, NULL), 0);
}
