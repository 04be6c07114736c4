// SPDX-License-Identifier: GPL-2.0-or-later
#include "../unit.h"
#include "base/cleanup.h"
#include "store/s3.h"

#include <errno.h>
#include <string.h>

static int read_text(
	const char *text, size_t n, const char *profile, struct fr_store_keys *ret, struct fr_diag *d)
{
	char path[] = "/tmp/frtest-keys.XXXXXX";
	int fd = mkstemp(path), r;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, n), n);
	close(fd);
	r = fr_store_keys_read(path, profile, ret, d);
	unlink(path);
	return r;
}

static int read_keys(const char *text, const char *profile, struct fr_store_keys *ret, struct fr_diag *d)
{
	return read_text(text, strlen(text), profile, ret, d);
}

#define TEXT                                                                                                 \
	"# comment\r\n[other]\naws_access_key_id=no\n\n[default]\r\n"                                        \
	"aws_access_key_id = AKIA\r\nregion = x\nAWS_SECRET_ACCESS_KEY=a/+=b ; c\r\n"                        \
	"s3 =\n  max = 1\n; comment\n[ prod ]\naws_access_key_id\t=\tP\naws_secret_access_key = s\n"         \
	"aws_session_token = t==\n"

TEST(keys_of_the_default_profile)
{
	_cleanup_(fr_store_keys_deinit) struct fr_store_keys k = {0};

	assert_int_equal(read_keys(TEXT, NULL, &k, NULL), 0);
	assert_string_equal(k.access_key, "AKIA");
	assert_string_equal(k.secret_key, "a/+=b ; c"); /* ';' begins a comment only at the start of a line */
	assert_null(k.session_token);
}

TEST(keys_of_another_profile)
{
	_cleanup_(fr_store_keys_deinit) struct fr_store_keys k = {0};

	assert_int_equal(read_keys(TEXT, "prod", &k, NULL), 0);
	assert_string_equal(k.access_key, "P");
	assert_string_equal(k.secret_key, "s");
	assert_string_equal(k.session_token, "t==");
}

TEST(a_file_without_the_keys)
{
	struct fr_store_keys k = {0};
	struct fr_diag d = {0};

	assert_int_equal(read_keys(TEXT, "other", &k, &d), -EINVAL); /* has no secret key */
	assert_non_null(strstr(d.what, "no keys of the profile other"));
	assert_non_null(strstr(d.hint, "aws_secret_access_key"));
	assert_int_equal(read_keys(TEXT, "no", &k, NULL), -EINVAL);
	assert_int_equal(read_keys("", NULL, &k, NULL), -EINVAL);
	assert_int_equal(
		read_keys("aws_access_key_id=a\naws_secret_access_key=b\n", NULL, &k, NULL), -EINVAL);
	assert_null(k.access_key);
}

TEST(a_file_that_is_not_one_of_keys)
{
	struct fr_store_keys k = {0};
	struct fr_diag d = {0};
	static char large[70000];

	assert_int_equal(
		read_keys("[default]\naws_access_key_id=a\nnonsense SECRET\n", NULL, &k, &d), -EINVAL);
	assert_non_null(strstr(d.what, "line 3 of "));
	assert_null(strstr(d.what, "SECRET")); /* a message must not show what can be a key */
	assert_int_equal(read_text("[default]\0x", 11, NULL, &k, NULL), -EINVAL);
	memset(large, '#', sizeof(large));
	assert_int_equal(read_text(large, sizeof(large), NULL, &k, NULL), -EFBIG);
	d = (struct fr_diag){0};
	assert_int_equal(fr_store_keys_read("/nonexistent/keys", NULL, &k, &d), -ENOENT);
	assert_non_null(strstr(d.what, "/nonexistent/keys"));
}

/* A handle cannot be made with settings that would get into headers or URLs as they are. */
TEST(settings_are_checked)
{
	const struct fr_store_config good = {
		.endpoint = "http://127.0.0.1:1/", .bucket = "b", .access_key = "a", .secret_key = "s"};
	static const char *const buckets[] = {"", "a/b", "a b", "..", "a?b"};
	struct fr_store_config c = good;
	struct fr_store *s = NULL;

	assert_int_equal(fr_store_new(&c, &s, NULL), 0);
	s = fr_store_free(s);
	for (size_t i = 0; i < FR_ARRAY_SIZE(buckets); i++) {
		c.bucket = buckets[i];
		assert_int_equal(fr_store_new(&c, &s, NULL), -EINVAL);
	}
	c = good;
	c.session_token = "a\r\nX-Evil: 1";
	assert_int_equal(fr_store_new(&c, &s, NULL), -EINVAL);
	c = good;
	c.region = "a:b";
	assert_int_equal(fr_store_new(&c, &s, NULL), -EINVAL);
	c = good;
	c.secret_key = NULL;
	assert_int_equal(fr_store_new(&c, &s, NULL), -EINVAL);
	assert_null(s);
}
