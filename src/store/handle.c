// SPDX-License-Identifier: GPL-2.0-or-later
#include "store/s3.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "store/request.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#define STALL_S 30

static pthread_once_t once = PTHREAD_ONCE_INIT;
static CURLcode global = CURLE_FAILED_INIT;

static void init_global(void)
{
	global = curl_global_init(CURL_GLOBAL_DEFAULT);
}

static void url_freep(CURLU **u)
{
	curl_url_cleanup(*u);
}

static bool has_part(CURLU *u, CURLUPart part)
{
	char *text = NULL;
	const bool has = curl_url_get(u, part, &text, 0) == CURLUE_OK;

	curl_free(text);
	return has;
}

static bool has_path(CURLU *u)
{
	char *text = NULL;
	const bool has = curl_url_get(u, CURLUPART_PATH, &text, 0) == CURLUE_OK && strcmp(text, "/") != 0;

	curl_free(text);
	return has;
}

static int check_endpoint(const char *text, struct fr_diag *d)
{
	static const char hint[] =
		"The address of a store is like https://s3.example.com or http://10.0.0.1:9000.";
	_cleanup_(url_freep) CURLU *u = curl_url();

	if (!u)
		return fr_fail_errno(d, -ENOMEM, NULL, "cannot use the store %s", text);
	if ((strncmp(text, "https://", 8) != 0 && strncmp(text, "http://", 7) != 0) ||
		curl_url_set(u, CURLUPART_URL, text, 0) != CURLUE_OK)
		return fr_fail(d, -EINVAL, hint, "%.200s is not the address of a store", text);
	if (has_part(u, CURLUPART_USER) || has_part(u, CURLUPART_QUERY) || has_part(u, CURLUPART_FRAGMENT) ||
		has_path(u))
		return fr_fail(d, -EINVAL, hint,
			"the address of the store has more than a host and a port: %.200s",
			strchr(text, '@') ? "it has a user" : text);
	return 0;
}

static bool is_name(const char *text, size_t min, size_t max, const char *more)
{
	const size_t n = strlen(text);

	for (const char *p = text; *p; p++)
		if (!((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
			    strchr(more, *p)))
			return false;
	return n >= min && n <= max;
}

/* A header ends at a newline, so a token with one would make headers of its own. */
static bool is_secret(const char *text)
{
	for (const char *p = text; *p; p++)
		if (*p <= ' ' || *p > '~')
			return false;
	return text[0] != '\0' && strlen(text) <= 8192;
}

static int check(const struct fr_store_config *c, struct fr_diag *d)
{
	static const char hint[] = "Name a file of keys in the format of ~/.aws/credentials.";

	if (!c->bucket || !is_name(c->bucket, 1, 255, "-._") || strstr(c->bucket, ".."))
		return fr_fail(d, -EINVAL, "A name of a bucket has letters, digits, '-', '.' and '_'.",
			"'%.200s' is not the name of a bucket", c->bucket ? c->bucket : "");
	if (c->region && !is_name(c->region, 1, 63, "-_"))
		return fr_fail(
			d, -EINVAL, "A region is like us-east-1.", "'%.100s' is not a region", c->region);
	if (!c->access_key || !c->secret_key || !is_secret(c->access_key) || !is_secret(c->secret_key))
		return fr_fail(
			d, -EINVAL, hint, "the keys of the store are missing, or have other characters");
	if (c->session_token && !is_secret(c->session_token))
		return fr_fail(d, -EINVAL, hint, "the session token of the store has other characters");
	return c->endpoint ? check_endpoint(c->endpoint, d) : 0;
}

/* Returns whether the copy of a text that may be NULL worked. */
static bool copy(const char *text, char **ret)
{
	*ret = text ? strdup(text) : NULL;
	return *ret || !text;
}

static bool copy_strings(struct fr_store *s, const struct fr_store_config *c)
{
	char endpoint[96];
	size_t n;

	snprintf(endpoint, sizeof(endpoint), "https://s3.%s.amazonaws.com",
		c->region ? c->region : "us-east-1");
	if (!copy(c->endpoint ? c->endpoint : endpoint, &s->endpoint))
		return false;
	n = strlen(s->endpoint);
	if (n > 0 && s->endpoint[n - 1] == '/')
		s->endpoint[n - 1] = '\0';
	return copy(c->region ? c->region : "us-east-1", &s->region) && copy(c->bucket, &s->bucket) &&
	       copy(c->ca && c->ca[0] ? c->ca : NULL, &s->ca) && copy(c->access_key, &s->access_key) &&
	       copy(c->secret_key, &s->secret_key) && copy(c->session_token, &s->session_token);
}

static int check_ca(const char *ca, struct fr_diag *d)
{
	if (!ca || access(ca, R_OK) == 0)
		return 0;
	return fr_fail_errno(
		d, -errno, "Name a PEM file with the certificate of the CA.", "cannot read %.200s", ca);
}

int fr_store_new(const struct fr_store_config *config, struct fr_store **ret, struct fr_diag *d)
{
	struct fr_store *s;
	int r = check(config, d);

	if (r < 0)
		return r;
	pthread_once(&once, init_global);
	s = calloc(1, sizeof(*s));
	if (!s || global != CURLE_OK || !copy_strings(s, config) || !(s->curl = curl_easy_init())) {
		fr_store_free(s);
		return fr_fail_errno(d, -ENOMEM, NULL, "cannot use the store");
	}
	s->limit_bytes = config->limit_bytes;
	s->stall_ns = (config->stall_s ? config->stall_s : STALL_S) * FR_NSEC_PER_SEC;
	s->cancel = config->cancel;
	s->on_progress = config->on_progress;
	s->ctx = config->ctx;
	r = check_ca(s->ca, d);
	if (r < 0) {
		fr_store_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

static void clear(char *secret)
{
	if (secret)
		explicit_bzero(secret, strlen(secret));
	free(secret);
}

struct fr_store *fr_store_free(struct fr_store *s)
{
	if (!s)
		return NULL;
	if (s->curl)
		curl_easy_cleanup(s->curl);
	free(s->endpoint);
	free(s->region);
	free(s->bucket);
	free(s->ca);
	clear(s->access_key);
	clear(s->secret_key);
	clear(s->session_token);
	free(s);
	return NULL;
}
