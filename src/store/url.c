// SPDX-License-Identifier: GPL-2.0-or-later
#include "store/request.h"

#include <errno.h>
#include <string.h>

int fr_store_encode(struct fr_buf *b, const char *text, bool keep_slash)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
	char hex[4];
	int r = 0;

	for (; *text && r == 0; text++) {
		if (strchr(plain, *text) || (keep_slash && *text == '/')) {
			r = fr_buf_append(b, text, 1);
		} else {
			snprintf(hex, sizeof(hex), "%%%02X", (uint8_t)*text);
			r = fr_buf_append(b, hex, 3);
		}
	}
	return r;
}

int fr_store_key_check(const char *key, struct fr_diag *d)
{
	static const char hint[] = "A key has 1 to 1024 bytes, and no part that is empty, \".\" or \"..\".";
	const char *part = key;

	if (key[0] == '\0' || strlen(key) > FR_STORE_KEY_MAX)
		return fr_fail(d, -EINVAL, hint, "the key of an object has %zu bytes", strlen(key));
	for (;;) {
		const size_t n = strcspn(part, "/");

		if (n == 0 || (n == 1 && part[0] == '.') || (n == 2 && memcmp(part, "..", 2) == 0))
			return fr_fail(d, -EINVAL, hint, "the key %.200s of an object is not allowed", key);
		if (part[n] == '\0')
			return 0;
		part += n + 1;
	}
}

void fr_store_what(const struct fr_store *s, const struct fr_store_request *req, char *ret, size_t size)
{
	snprintf(ret, size, "%s %s%s%.128s", req->method, s->bucket, req->key ? "/" : "",
		req->key ? req->key : "");
}

static int append_query(struct fr_buf *b, const struct fr_store_request *req)
{
	int r = 0;

	for (size_t i = 0; i < req->n_query && r == 0; i++) {
		r = fr_buf_append(b, i == 0 ? "?" : "&", 1);
		if (r == 0)
			r = fr_store_encode(b, req->query[i].name, false);
		if (r == 0)
			r = fr_buf_append(b, "=", 1);
		if (r == 0)
			r = fr_store_encode(b, req->query[i].value, false);
	}
	return r;
}

/* The bucket is in the path, because not all stores have a host name for each bucket. */
int fr_store_url(const struct fr_store *s, const struct fr_store_request *req, struct fr_buf *b)
{
	int r = fr_buf_append(b, s->endpoint, strlen(s->endpoint));

	if (r == 0)
		r = fr_buf_append(b, "/", 1);
	if (r == 0)
		r = fr_store_encode(b, s->bucket, false);
	if (r == 0 && req->key)
		r = fr_buf_append(b, "/", 1);
	if (r == 0 && req->key)
		r = fr_store_encode(b, req->key, true);
	if (r == 0)
		r = append_query(b, req);
	return r < 0 ? r : fr_buf_append(b, "", 1);
}
