// SPDX-License-Identifier: GPL-2.0-or-later
#include "store/errors.h"

#include "base/cleanup.h"
#include "base/utf8.h"
#include "store/xml.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SKEW_MAX_S 900 /* S3 accepts requests whose time differs by at most 15 minutes */

#define HINT_KEYS "Check the access key and the secret key, and the policy of the bucket."
#define HINT_LATER "Try again later."
#define HINT_SPACE "Make room in the store, or raise its quota."
#define HINT_CLOCK "Correct the clock of this machine, for example by NTP (timedatectl)."
#define HINT_REGION "Check the region and the address of the store: a redirect is not followed."
#define HINT_MISSING "Check the names of the bucket and of the object."
#define HINT_ABLE "This store does not support the request."
#define HINT_TLS "Check the address of the store, its certificate, and the file of the CA."
#define HINT_ADDRESS "Check the address of the store, and the network."

/* The codes of https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html, of MinIO and of Ceph. */
static const struct {
	const char *code;
	int error;
	const char *hint;
} codes[] = {
	{"AccessDenied", -EACCES, HINT_KEYS},
	{"AccountProblem", -EACCES, HINT_KEYS},
	{"AllAccessDisabled", -EACCES, HINT_KEYS},
	{"InvalidAccessKeyId", -EACCES, HINT_KEYS},
	{"SignatureDoesNotMatch", -EACCES, HINT_KEYS},
	{"ExpiredToken", -EACCES, "The session token has expired: put new keys into the file of keys."},
	{"InvalidToken", -EACCES, "Put new keys into the file of keys."},
	{"TokenRefreshRequired", -EACCES, "Put new keys into the file of keys."},
	{"AuthorizationHeaderMalformed", -EACCES, HINT_REGION},
	{"RequestTimeTooSkewed", -EACCES, HINT_CLOCK},
	{"RequestExpired", -EACCES, HINT_CLOCK},
	{"NoSuchKey", -ENOENT, HINT_MISSING},
	{"NoSuchBucket", -ENOENT, HINT_MISSING},
	{"NoSuchUpload", -ENOENT, "Begin the upload again."},
	{"NoSuchLifecycleConfiguration", -ENOENT, NULL},
	{"QuotaExceeded", -ENOSPC, HINT_SPACE},
	{"InsufficientStorage", -ENOSPC, HINT_SPACE},
	{"InsufficientCapacity", -ENOSPC, HINT_SPACE},
	{"StorageFull", -ENOSPC, HINT_SPACE},
	{"XMinioStorageFull", -ENOSPC, HINT_SPACE},
	{"XMinioAdminBucketQuotaExceeded", -ENOSPC, HINT_SPACE},
	{"SlowDown", -EAGAIN, HINT_LATER},
	{"ServiceUnavailable", -EAGAIN, HINT_LATER},
	{"InternalError", -EAGAIN, HINT_LATER},
	{"RequestTimeout", -EAGAIN, HINT_LATER},
	{"OperationAborted", -EAGAIN, HINT_LATER},
	{"ServerBusy", -EAGAIN, HINT_LATER},
	{"Throttling", -EAGAIN, HINT_LATER},
	{"ThrottlingException", -EAGAIN, HINT_LATER},
	{"RequestLimitExceeded", -EAGAIN, HINT_LATER},
	{"BandwidthLimitExceeded", -EAGAIN, HINT_LATER},
	{"TooManyRequests", -EAGAIN, HINT_LATER},
	{"NotImplemented", -EOPNOTSUPP, HINT_ABLE},
	{"MethodNotAllowed", -EOPNOTSUPP, HINT_ABLE},
	{"PermanentRedirect", -EBADMSG, HINT_REGION},
	{"TemporaryRedirect", -EBADMSG, HINT_REGION},
	{"BadDigest", -EBADMSG, "The content changed on its way, or while it was read: send it again."},
	{"XAmzContentSHA256Mismatch", -EBADMSG,
		"The content changed on its way, or while it was read: send it again."},
};

static int status_error(unsigned status, const char **ret_hint)
{
	if (status == 401 || status == 403)
		return *ret_hint = HINT_KEYS, -EACCES;
	if (status == 404)
		return *ret_hint = HINT_MISSING, -ENOENT;
	if (status == 507)
		return *ret_hint = HINT_SPACE, -ENOSPC;
	if (status == 501 || status == 405)
		return *ret_hint = HINT_ABLE, -EOPNOTSUPP;
	if (status == 408 || status == 425 || status == 429 || status >= 500)
		return *ret_hint = HINT_LATER, -EAGAIN;
	*ret_hint = status / 100 == 3 ? HINT_REGION : "Check the address of the store.";
	return -EBADMSG;
}

static int find_error(const char *code, unsigned status, const char **ret_hint)
{
	for (size_t i = 0; i < FR_ARRAY_SIZE(codes); i++)
		if (strcmp(codes[i].code, code) == 0) {
			*ret_hint = codes[i].hint;
			return codes[i].error;
		}
	return status_error(status, ret_hint);
}

/* The document <Error><Code>…</Code><Message>…</Message></Error>. */
struct document {
	char code[64], message[200];
};

static void copy(char *ret, size_t size, const char *text)
{
	snprintf(ret, size, "%s", text);
	fr_utf8_sanitize(ret);
}

static int on_error_element(void *ctx, const struct fr_xml_element *e)
{
	struct document *doc = ctx;

	if (strcmp(e->path, "/Error/Code") == 0)
		copy(doc->code, sizeof(doc->code), e->text);
	else if (strcmp(e->path, "/Error/Message") == 0)
		copy(doc->message, sizeof(doc->message), e->text);
	return 0;
}

/* Writes the difference between the clocks, if it explains a refusal. */
static bool is_clock_wrong(const struct fr_store_error *e, const struct document *doc, char *ret, size_t size)
{
	const long long late = e->date ? (long long)(e->now - e->date) : 0;
	const bool named = strcmp(doc->code, "RequestTimeTooSkewed") == 0;

	ret[0] = '\0';
	if (e->date == 0 || llabs(late) <= SKEW_MAX_S)
		return named;
	if (!named && e->status != 403 && e->status != 400 && e->status != 401)
		return false;
	snprintf(ret, size, "; the clock of this machine is %lld s %s that of the store", llabs(late),
		late > 0 ? "ahead of" : "behind");
	return true;
}

int fr_store_error(const struct fr_store_error *e, struct fr_diag *d)
{
	struct document doc = {0};
	char clock[96], region[96] = "";
	const char *hint = NULL;
	int code;

	if (fr_xml_read(e->body ? e->body : "", e->n, on_error_element, &doc, NULL) < 0)
		doc = (struct document){0};
	code = find_error(doc.code, e->status, &hint);
	if (is_clock_wrong(e, &doc, clock, sizeof(clock)) && code != -ENOENT) {
		code = -EACCES;
		hint = HINT_CLOCK;
	}
	if (e->region[0] && (e->status / 100 == 3 || strcmp(doc.code, "AuthorizationHeaderMalformed") == 0))
		snprintf(region, sizeof(region), "; the bucket is in the region %.64s", e->region);
	return fr_fail(d, code, hint, "the store %.100s answers '%.200s' with %u%s%s%s%s%s%s", e->store,
		e->what, e->status, doc.code[0] ? " " : "", doc.code, doc.message[0] ? ": " : "", doc.message,
		clock, region);
}

static int connect_error(long os_errno)
{
	switch (os_errno) {
	case EHOSTUNREACH:
	case ENETUNREACH:
	case ENETDOWN:
		return -EHOSTUNREACH;
	case ETIMEDOUT:
		return -ETIMEDOUT;
	default:
		return -ECONNREFUSED;
	}
}

static int curl_errno(CURLcode code, long os_errno, const char **ret_hint)
{
	*ret_hint = HINT_ADDRESS;
	switch (code) {
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
		return -EHOSTUNREACH;
	case CURLE_COULDNT_CONNECT:
		return connect_error(os_errno);
	case CURLE_OPERATION_TIMEDOUT:
		return -ETIMEDOUT;
	case CURLE_PARTIAL_FILE:
	case CURLE_GOT_NOTHING:
	case CURLE_SEND_ERROR:
	case CURLE_RECV_ERROR:
		*ret_hint = HINT_LATER;
		return -EAGAIN;
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CIPHER:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_ISSUER_ERROR:
	case CURLE_SSL_INVALIDCERTSTATUS:
		*ret_hint = HINT_TLS;
		return -EKEYREJECTED;
	case CURLE_OUT_OF_MEMORY:
		*ret_hint = NULL;
		return -ENOMEM;
	default:
		return -EBADMSG;
	}
}

int fr_store_curl_error(const char *store, const char *what, CURLcode code, long os_errno, const char *text,
	struct fr_diag *d)
{
	char reason[200];
	const char *hint;
	const int error = curl_errno(code, os_errno, &hint);

	copy(reason, sizeof(reason), text && text[0] ? text : curl_easy_strerror(code));
	return fr_fail(
		d, error, hint, "the request '%.200s' to the store %.100s failed: %s", what, store, reason);
}
