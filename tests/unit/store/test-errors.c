// SPDX-License-Identifier: GPL-2.0-or-later
#include "../unit.h"
#include "base/cleanup.h"
#include "store/errors.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NOW 1795216297

static int answer(unsigned status, const char *code, time_t date, struct fr_diag *d)
{
	char body[200] = "";

	*d = (struct fr_diag){0};
	if (code)
		snprintf(body, sizeof(body), "<Error><Code>%s</Code><Message>the text</Message></Error>",
			code);
	return fr_store_error(&(struct fr_store_error){.store = "http://s3",
				      .what = "PUT b/k",
				      .region = "eu-x",
				      .status = status,
				      .body = body,
				      .n = strlen(body),
				      .date = date,
				      .now = NOW},
		d);
}

TEST(codes_of_stores)
{
	static const struct {
		unsigned status;
		const char *code;
		int error;
	} cases[] = {{403, "AccessDenied", -EACCES}, {403, "SignatureDoesNotMatch", -EACCES},
		{403, "InvalidAccessKeyId", -EACCES}, {400, "ExpiredToken", -EACCES}, {403, NULL, -EACCES},
		{401, NULL, -EACCES}, {404, "NoSuchKey", -ENOENT}, {404, "NoSuchBucket", -ENOENT},
		{404, "NoSuchUpload", -ENOENT}, {404, NULL, -ENOENT}, {507, NULL, -ENOSPC},
		{403, "QuotaExceeded", -ENOSPC}, {507, "XMinioStorageFull", -ENOSPC},
		{503, "SlowDown", -EAGAIN}, {503, NULL, -EAGAIN}, {429, NULL, -EAGAIN},
		{500, "InternalError", -EAGAIN}, {400, "RequestTimeout", -EAGAIN},
		{501, "NotImplemented", -EOPNOTSUPP}, {405, NULL, -EOPNOTSUPP},
		{301, "PermanentRedirect", -EBADMSG}, {302, NULL, -EBADMSG}, {400, "BadDigest", -EBADMSG},
		{400, "Unheard", -EBADMSG}, {200, "InternalError", -EAGAIN}, {200, "SlowDown", -EAGAIN}};
	struct fr_diag d;

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		const int r = answer(cases[i].status, cases[i].code, 0, &d);

		if (r != cases[i].error || d.code != r || !strstr(d.what, "PUT b/k") ||
			!strstr(d.what, "http://s3"))
			fail_msg("%u %s: %d, %s", cases[i].status, cases[i].code ? cases[i].code : "-", r,
				d.what);
		if (cases[i].code)
			assert_non_null(strstr(d.what, cases[i].code));
	}
}

TEST(a_region_is_named_if_it_explains_the_answer)
{
	struct fr_diag d;

	(void)answer(301, "PermanentRedirect", 0, &d);
	assert_non_null(strstr(d.what, "in the region eu-x"));
	(void)answer(400, "AuthorizationHeaderMalformed", 0, &d);
	assert_non_null(strstr(d.what, "in the region eu-x"));
	(void)answer(403, "AccessDenied", 0, &d);
	assert_null(strstr(d.what, "eu-x"));
}

TEST(a_wrong_clock_is_named)
{
	struct fr_diag d;

	assert_int_equal(answer(403, "RequestTimeTooSkewed", NOW - 1000, &d), -EACCES);
	assert_non_null(strstr(d.what, "1000 s ahead of"));
	assert_non_null(strstr(d.hint, "clock"));
	assert_int_equal(answer(403, NULL, NOW + 901, &d), -EACCES); /* HEAD has no document */
	assert_non_null(strstr(d.what, "901 s behind"));
	(void)answer(403, "RequestTimeTooSkewed", 0, &d);
	assert_non_null(strstr(d.hint, "clock"));
	(void)answer(403, "AccessDenied", NOW - 900, &d);
	assert_null(strstr(d.what, "clock"));
	assert_int_equal(answer(503, "SlowDown", NOW - 9000, &d), -EAGAIN);
	assert_null(strstr(d.what, "clock"));
}

TEST(text_of_a_store_is_made_harmless)
{
	static const char body[] = "<Error><Code>a&#10;b</Code><Message>\xc2\x9b[2J&#9;x</Message></Error>";
	struct fr_diag d = {0};

	(void)fr_store_error(&(struct fr_store_error){.store = "s",
				     .what = "w",
				     .region = "",
				     .status = 400,
				     .body = body,
				     .n = strlen(body)},
		&d);
	for (const char *p = d.what; *p; p++)
		assert_true((uint8_t)*p >= ' ' && (uint8_t)*p != 0x9b);
	assert_non_null(strstr(d.what, "400 a b: "));
}

TEST(errors_of_the_way_to_the_store)
{
	static const struct {
		CURLcode code;
		long os_errno;
		int error;
	} cases[] = {{CURLE_COULDNT_CONNECT, ECONNREFUSED, -ECONNREFUSED},
		{CURLE_COULDNT_CONNECT, EHOSTUNREACH, -EHOSTUNREACH},
		{CURLE_COULDNT_CONNECT, ENETUNREACH, -EHOSTUNREACH},
		{CURLE_COULDNT_CONNECT, ETIMEDOUT, -ETIMEDOUT},
		{CURLE_COULDNT_RESOLVE_HOST, 0, -EHOSTUNREACH}, {CURLE_OPERATION_TIMEDOUT, 0, -ETIMEDOUT},
		{CURLE_PARTIAL_FILE, 0, -EAGAIN}, {CURLE_RECV_ERROR, ECONNRESET, -EAGAIN},
		{CURLE_PEER_FAILED_VERIFICATION, 0, -EKEYREJECTED},
		{CURLE_SSL_CONNECT_ERROR, 0, -EKEYREJECTED}, {CURLE_SSL_CACERT_BADFILE, 0, -EKEYREJECTED},
		{CURLE_WEIRD_SERVER_REPLY, 0, -EBADMSG}};

	for (size_t i = 0; i < FR_ARRAY_SIZE(cases); i++) {
		struct fr_diag d = {0};

		assert_int_equal(
			fr_store_curl_error("http://s3", "GET b", cases[i].code, cases[i].os_errno, "", &d),
			cases[i].error);
		assert_non_null(strstr(d.what, curl_easy_strerror(cases[i].code)));
	}
}
