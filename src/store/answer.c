// SPDX-License-Identifier: GPL-2.0-or-later
#include "store/request.h"

#include "store/errors.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

void fr_store_answer_deinit(struct fr_store_answer *a)
{
	fr_buf_deinit(&a->body);
}

int fr_store_answer_error(const struct fr_store *s, const struct fr_store_request *req,
	const struct fr_store_answer *a, struct fr_diag *d)
{
	char what[300];

	fr_store_what(s, req, what, sizeof(what));
	return fr_store_error(&(struct fr_store_error){.store = s->endpoint,
				      .what = what,
				      .region = a->region,
				      .status = a->status,
				      .body = (const char *)a->body.data,
				      .n = a->body.len,
				      .date = a->date,
				      .now = time(NULL)},
		d);
}

int fr_store_answer_refuse(
	const struct fr_store *s, const struct fr_store_request *req, struct fr_diag *d, const char *why)
{
	char what[300];

	fr_store_what(s, req, what, sizeof(what));
	return fr_fail(d, -EBADMSG, "Check the address of the store.",
		"the answer of the store %.100s to '%.200s' makes no sense: %s", s->endpoint, what, why);
}

struct document {
	const char *root;
	int (*on_end)(void *ctx, const struct fr_xml_element *e);
	void *ctx;
	bool is_root, is_error;
};

static int on_element(void *ctx, const struct fr_xml_element *e)
{
	struct document *doc = ctx;

	if (strncmp(e->path, "/Error/", 7) == 0)
		return 0;
	if (strcmp(e->path, "/Error") == 0)
		doc->is_error = true;
	else if (strcmp(e->path + 1, doc->root) == 0)
		doc->is_root = true;
	else if (strchr(e->path + 1, '/'))
		return doc->on_end ? doc->on_end(doc->ctx, e) : 0;
	return 0;
}

int fr_store_answer_read(const struct fr_store *s, const struct fr_store_request *req,
	const struct fr_store_answer *a, const char *root,
	int (*on_end)(void *ctx, const struct fr_xml_element *e), void *ctx, struct fr_diag *d)
{
	struct document doc = {.root = root, .on_end = on_end, .ctx = ctx};
	struct fr_diag reason = {0};
	int r = fr_xml_read(a->body.data, a->body.len, on_element, &doc, &reason);

	if (r == -EBADMSG)
		return fr_store_answer_refuse(
			s, req, d, reason.code ? reason.what : "a value in its document is not possible");
	if (r < 0)
		return fr_fail(
			d, r, NULL, "%s", reason.code ? reason.what : "cannot read the answer of the store");
	if (doc.is_error)
		return fr_store_answer_error(s, req, a, d);
	return doc.is_root ? 0 : fr_store_answer_refuse(s, req, d, "it is another document");
}

static bool is_md5(const char *text)
{
	return strlen(text) == FR_MD5_SIZE - 1 && strspn(text, "0123456789abcdefABCDEF") == FR_MD5_SIZE - 1;
}

int fr_store_answer_check_md5(const struct fr_store *s, const struct fr_store_request *req,
	const struct fr_store_answer *a, struct fr_diag *d)
{
	if (a->is_encrypted || !a->sent_md5[0] || !is_md5(a->etag) || strcasecmp(a->etag, a->sent_md5) == 0)
		return 0;
	return fr_store_answer_refuse(s, req, d, "its ETag is not the MD5 of what was sent");
}

int fr_store_answer_check_end(const struct fr_store *s, const struct fr_store_request *req,
	const struct fr_store_answer *a, struct fr_diag *d)
{
	if (a->has_length || a->is_chunked)
		return 0;
	return fr_store_answer_refuse(s, req, d, "it does not say where it ends");
}
