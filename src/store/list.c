// SPDX-License-Identifier: GPL-2.0-or-later
#include "store/s3.h"

#include "base/cleanup.h"
#include "base/units.h"
#include "store/request.h"

#include <errno.h>
#include <string.h>

#define TOKEN_SIZE 2048
#define PAGES_MAX 10000u /* of up to 1000 objects each */
#define EMPTY_MAX 100u	 /* pages without objects, one after the other */

struct listing {
	const char *prefix;
	bool (*on_object)(void *ctx, const char *key, uint64_t bytes);
	void *ctx;
	bool is_stopped; /* ON_OBJECT does not want more */

	char key[FR_STORE_KEY_MAX + 1];
	uint64_t bytes;
	bool has_bytes;
	unsigned n_objects; /* of this page */
	bool is_truncated;
	char next[TOKEN_SIZE];
};

/* Copies a text that must fit, and not be empty. */
static int take(char *ret, size_t size, const char *text)
{
	const size_t n = strlen(text);

	if (n == 0 || n >= size)
		return -EBADMSG;
	memcpy(ret, text, n + 1);
	return 0;
}

static int take_object(struct listing *l)
{
	if (!l->has_bytes || !l->key[0] || strncmp(l->key, l->prefix, strlen(l->prefix)) != 0)
		return -EBADMSG;
	l->n_objects++;
	if (!l->is_stopped && !l->on_object(l->ctx, l->key, l->bytes))
		l->is_stopped = true;
	l->key[0] = '\0';
	l->has_bytes = false;
	return 0;
}

static int on_element(void *ctx, const struct fr_xml_element *e)
{
	const char *name = e->path + strlen("/ListBucketResult/");
	struct listing *l = ctx;

	if (strcmp(name, "Contents/Key") == 0)
		return take(l->key, sizeof(l->key), e->text);
	if (strcmp(name, "Contents/Size") == 0) {
		l->has_bytes = fr_u64_parse(e->text, &l->bytes) == 0;
		return l->has_bytes ? 0 : -EBADMSG;
	}
	if (strcmp(name, "Contents") == 0)
		return take_object(l);
	if (strcmp(name, "IsTruncated") == 0)
		l->is_truncated = strcmp(e->text, "true") == 0;
	else if (strcmp(name, "NextContinuationToken") == 0 && e->text[0])
		return take(l->next, sizeof(l->next), e->text);
	return 0;
}

static int read_page(struct fr_store *s, const char *token, struct listing *l, struct fr_diag *d)
{
	const struct fr_store_query query[] = {
		{"continuation-token", token}, {"list-type", "2"}, {"prefix", l->prefix}};
	const struct fr_store_request req = {.method = "GET",
		.query = token[0] ? query : query + 1,
		.n_query = token[0] ? 3 : 2,
		.max = FR_STORE_LIST_MAX};
	_cleanup_answer_ struct fr_store_answer a = {0};
	int r;

	l->n_objects = 0;
	l->is_truncated = false;
	l->next[0] = '\0';
	r = fr_store_perform(s, &req, &a, d);
	if (r == 0)
		r = fr_store_answer_read(s, &req, &a, "ListBucketResult", on_element, l, d);
	if (r == 0 && l->is_truncated && (!l->next[0] || strcmp(l->next, token) == 0))
		return fr_store_answer_refuse(s, &req, d, "the list of objects does not go on");
	return r;
}

int fr_store_list(struct fr_store *s, const char *prefix,
	bool (*on_object)(void *ctx, const char *key, uint64_t bytes), void *ctx, struct fr_diag *d)
{
	_cleanup_free_ struct listing *l = calloc(1, sizeof(*l));
	char token[TOKEN_SIZE] = "", old[TOKEN_SIZE] = "";
	unsigned empty = 0;

	if (!l)
		return fr_fail_errno(d, -ENOMEM, NULL, "cannot list the objects of %.100s", s->bucket);
	*l = (struct listing){.prefix = prefix, .on_object = on_object, .ctx = ctx};
	for (unsigned page = 1; page <= PAGES_MAX && empty < EMPTY_MAX; page++) {
		int r = read_page(s, token, l, d);

		if (r < 0 || l->is_stopped || !l->is_truncated)
			return r;
		empty = l->n_objects ? 0 : empty + 1;
		memcpy(token, l->next, sizeof(token));
		if (strcmp(token, old) == 0)
			break;
		if ((page & (page - 1)) == 0) /* finds a circle of tokens of any length (Brent) */
			memcpy(old, token, sizeof(old));
	}
	return fr_fail(d, -EBADMSG, "Check the store.",
		"the list of the objects '%.200s' of the bucket %.100s does not end", prefix, s->bucket);
}
