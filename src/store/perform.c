// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * libcurl signs the path and the query as they are in the URL, and all headers that it is given. So this file
 * makes a canonical URL: percent-encoded as S3 demands, with a sorted query in which each name has a "=". The
 * only given headers are those that are sent: libcurl 7.88 also signs a header like "Expect:", which only
 * removes a header. So the header Expect: 100-continue of a large body stays. It has a use: a store that
 * refuses a request does not get the body. libcurl adds the date and the host by itself.
 */

#include "store/request.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "store/errors.h"
#include "store/transfer.h"

#include <errno.h>
#include <string.h>

static void slist_freep(struct curl_slist **list)
{
	curl_slist_free_all(*list);
}

static int add_header(struct curl_slist **list, const char *name, const char *value)
{
	_cleanup_free_ char *line = NULL;
	struct curl_slist *longer;

	if (!value)
		return 0;
	if (asprintf(&line, "%s: %s", name, value) < 0) {
		line = NULL;
		return -ENOMEM;
	}
	longer = curl_slist_append(*list, line);
	if (!longer)
		return -ENOMEM;
	*list = longer;
	return 0;
}

static int add_md5(struct curl_slist **list, const struct fr_store_request *req)
{
	uint8_t digest[EVP_MAX_MD_SIZE], text[2 * EVP_MAX_MD_SIZE];
	unsigned n;

	if (!req->has_md5 || EVP_Digest(req->data, req->n_data, digest, &n, EVP_md5(), NULL) != 1)
		return 0;
	EVP_EncodeBlock(text, digest, (int)n);
	return add_header(list, "Content-MD5", (const char *)text);
}

static int make_headers(const struct fr_transfer *t, struct curl_slist **list)
{
	int r = add_header(list, "x-amz-content-sha256", t->sha256);

	if (r == 0)
		r = add_header(list, "x-amz-meta-sha256", t->req->meta_sha256);
	if (r == 0)
		r = add_header(list, "x-amz-security-token", t->store->session_token);
	if (r == 0)
		r = add_header(list, "Content-Type", t->req->content_type);
	return r == 0 ? add_md5(list, t->req) : r;
}

static void set_method(CURL *c, const struct fr_store_request *req)
{
	if (strcmp(req->method, "HEAD") == 0) {
		curl_easy_setopt(c, CURLOPT_NOBODY, 1L);
	} else if (strcmp(req->method, "PUT") == 0 || strcmp(req->method, "POST") == 0) {
		curl_easy_setopt(c, CURLOPT_UPLOAD, 1L);
		curl_easy_setopt(c, CURLOPT_INFILESIZE_LARGE, (curl_off_t)req->n_data);
		curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, req->method);
	} else {
		curl_easy_setopt(c, CURLOPT_HTTPGET, 1L);
		if (strcmp(req->method, "GET") != 0)
			curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, req->method);
	}
}

static void set_connection(const struct fr_store *s)
{
	CURL *c = s->curl;

	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(
		c, CURLOPT_QUICK_EXIT, 1L); /* does not wait for a name server after a cancellation */
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(c, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(c, CURLOPT_HTTP_CONTENT_DECODING, 0L);
	curl_easy_setopt(c, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(c, CURLOPT_USERAGENT, "flightrec/" FR_VERSION);
	curl_easy_setopt(c, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (s->ca)
		curl_easy_setopt(c, CURLOPT_CAINFO, s->ca);
}

static int set_signature(const struct fr_store *s)
{
	char provider[128];

	snprintf(provider, sizeof(provider), "aws:amz:%s:s3", s->region);
	if (curl_easy_setopt(s->curl, CURLOPT_AWS_SIGV4, provider) != CURLE_OK ||
		curl_easy_setopt(s->curl, CURLOPT_USERNAME, s->access_key) != CURLE_OK ||
		curl_easy_setopt(s->curl, CURLOPT_PASSWORD, s->secret_key) != CURLE_OK)
		return -ENOMEM;
	return 0;
}

/* Computes the hash of the body, which is signed, before the body is sent. */
static int hash_body(struct fr_transfer *t, struct fr_diag *d)
{
	const struct fr_store_request *req = t->req;
	char md5[FR_MD5_SIZE];

	if (!req->data && req->n_data > 0)
		return fr_hash_range(req->fd, req->fd_offset, req->n_data, t->store->cancel, t->sha256, d);
	return fr_hash_data(req->data ? req->data : "", req->n_data, t->sha256, md5, d);
}

/* Returns whether a byte of the answer, but not all headers, has come. */
static bool has_begun(const struct fr_transfer *t)
{
	curl_off_t us = 0;

	curl_easy_getinfo(t->store->curl, CURLINFO_STARTTRANSFER_TIME_T, &us);
	return us > 0 && !t->answer->is_complete;
}

/* Judges the end of the transfer. */
static int finish(struct fr_transfer *t, CURLcode code, const char *text, struct fr_diag *d)
{
	char what[300];
	long status = 0, os_errno = 0;

	curl_easy_getinfo(t->store->curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(t->store->curl, CURLINFO_OS_ERRNO, &os_errno);
	t->answer->status = (unsigned)status;
	t->answer->received = t->received;
	memcpy(t->answer->sent_md5, t->md5, sizeof(t->md5));
	fr_store_what(t->store, t->req, what, sizeof(what));
	if (code == CURLE_OUT_OF_MEMORY &&
		has_begun(t)) { /* as libcurl calls a header of more than 100 KiB */
		code = CURLE_WEIRD_SERVER_REPLY;
		text = "a header of its answer is too long";
	}
	if (t->code < 0)
		return fr_fail(d, t->code, NULL, "the request '%.200s' to the store %.100s failed: %s", what,
			t->store->endpoint, t->why);
	/* A store can refuse a body, answer, and close the connection before it has read the body. */
	if (code != CURLE_OK && !(status >= 400 && (code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR)))
		return fr_store_curl_error(t->store->endpoint, what, code, os_errno, text, d);
	if (!t->answer->is_complete) /* libcurl takes a connection that ends in the headers for an answer */
		return fr_store_curl_error(t->store->endpoint, what, CURLE_GOT_NOTHING, 0,
			"the connection was closed in the headers", d);
	if (status / 100 != 2)
		return fr_store_answer_error(t->store, t->req, t->answer, d);
	if (fr_buf_append(&t->answer->body, "", 1) < 0)
		return fr_fail_errno(d, -ENOMEM, NULL, "cannot keep the answer of the store");
	t->answer->body.len--;
	return 0;
}

static int perform(struct fr_transfer *t, struct fr_diag *d)
{
	_cleanup_(slist_freep) struct curl_slist *headers = NULL;
	_cleanup_buf_ struct fr_buf url = {0};
	char text[CURL_ERROR_SIZE] = "", range[32];
	CURL *c = t->store->curl;
	CURLcode code;

	curl_easy_reset(c); /* keeps the connections */
	if (fr_store_url(t->store, t->req, &url) < 0 || make_headers(t, &headers) < 0 ||
		set_signature(t->store) < 0)
		return fr_fail_errno(d, -ENOMEM, NULL, "cannot make a request to the store");
	set_connection(t->store);
	set_method(c, t->req);
	fr_transfer_set(t);
	curl_easy_setopt(c, CURLOPT_URL, url.data);
	curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, text);
	snprintf(range, sizeof(range), "%llu-", (unsigned long long)t->req->range_from);
	if (t->req->range_from > 0)
		curl_easy_setopt(c, CURLOPT_RANGE, range);
	code = curl_easy_perform(c);
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, NULL);
	curl_easy_setopt(c, CURLOPT_HTTPHEADER, NULL);
	return finish(t, code, text, d);
}

int fr_store_perform(
	struct fr_store *s, const struct fr_store_request *req, struct fr_store_answer *a, struct fr_diag *d)
{
	struct fr_transfer t;
	int r;

	*a = (struct fr_store_answer){0};
	if (fr_transfer_init(&t, s, req, a) < 0)
		return fr_fail_errno(d, -ENOMEM, NULL, "cannot make a request to the store");
	r = hash_body(&t, d);
	if (r == 0)
		r = perform(&t, d);
	fr_transfer_deinit(&t);
	return r;
}
