// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * The rules of a bucket can only be read and written as a whole. So the rule "flightrec" is replaced in the
 * document that the store has, and all other bytes stay, because they can have elements that this program
 * does not know. Between reading and writing, another writer can change the rules; the last writer wins.
 */

#include "store/s3.h"

#include "base/cleanup.h"
#include "store/request.h"

#include <errno.h>
#include <string.h>

#define OWN_MAX 16
#define UNFINISHED_DAYS 7
#define ROOT "/LifecycleConfiguration"

struct rules {
	struct {
		size_t begin, end;
	} own[OWN_MAX]; /* rules with our name */
	size_t n_own, n_others;
	size_t last; /* where the last element ends: the new rule gets there */
	bool is_own;
	bool has_old_prefix, is_old; /* <Rule><Prefix>: rules of both forms cannot be mixed */
};

static int take_rule(struct rules *r, const struct fr_xml_element *e)
{
	if (r->is_own && r->n_own == OWN_MAX)
		return -EBADMSG;
	if (r->is_own) {
		r->own[r->n_own].begin = e->begin;
		r->own[r->n_own++].end = e->end;
	} else {
		r->n_others++;
		r->is_old |= r->has_old_prefix;
	}
	r->is_own = r->has_old_prefix = false;
	return 0;
}

static int on_element(void *ctx, const struct fr_xml_element *e)
{
	struct rules *r = ctx;

	r->last = e->end;
	if (strcmp(e->path, ROOT "/Rule/ID") == 0)
		r->is_own = strcmp(e->text, "flightrec") == 0;
	else if (strcmp(e->path, ROOT "/Rule/Prefix") == 0)
		r->has_old_prefix = true;
	else if (strcmp(e->path, ROOT "/Rule") == 0)
		return take_rule(r, e);
	return 0;
}

static int append_rule(struct fr_buf *b, const char *prefix, unsigned days, bool is_old)
{
	char text[300];
	int r = fr_xml_append(b, "<Rule><ID>flightrec</ID>");

	if (r == 0)
		r = fr_xml_append(b, is_old ? "<Prefix>" : "<Filter><Prefix>");
	if (r == 0)
		r = fr_xml_escape(b, prefix);
	if (r == 0)
		r = fr_xml_append(b, is_old ? "</Prefix>" : "</Prefix></Filter>");
	snprintf(text, sizeof(text),
		"<Status>Enabled</Status><Expiration><Days>%u</Days></"
		"Expiration><AbortIncompleteMultipartUpload>"
		"<DaysAfterInitiation>%d</DaysAfterInitiation></AbortIncompleteMultipartUpload></Rule>",
		days, UNFINISHED_DAYS);
	return r == 0 ? fr_xml_append(b, text) : r;
}

/* Appends the old document without our rules, up to its last element. */
static int append_others(struct fr_buf *b, const uint8_t *old, const struct rules *rules)
{
	size_t at = 0;
	int r = 0;

	for (size_t i = 0; i < rules->n_own && r == 0; i++) {
		r = fr_buf_append(b, old + at, rules->own[i].begin - at);
		at = rules->own[i].end;
	}
	return r == 0 ? fr_buf_append(b, old + at, rules->last - at) : r;
}

static int make_document(struct fr_buf *b, const struct fr_store_answer *old, const struct rules *rules,
	const char *prefix, unsigned days)
{
	int r;

	if (rules->n_others == 0)
		r = fr_xml_append(
			b, "<LifecycleConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
	else
		r = append_others(b, old->body.data, rules);
	if (r == 0)
		r = append_rule(b, prefix, days, rules->is_old);
	if (r == 0 && rules->n_others == 0)
		return fr_xml_append(b, "</LifecycleConfiguration>");
	return r == 0 ? fr_buf_append(b, old->body.data + rules->last, old->body.len - rules->last) : r;
}

static const struct fr_store_query query[] = {{"lifecycle", ""}};

static int read_rules(struct fr_store *s, struct fr_store_answer *a, struct rules *rules, struct fr_diag *d)
{
	const struct fr_store_request req = {.method = "GET", .query = query, .n_query = 1, .max = 1 << 20};
	struct fr_diag reason = {0};
	int r = fr_store_perform(s, &req, a, &reason);

	if (r == -ENOENT && a->body.len > 0 &&
		memmem(a->body.data, a->body.len, "NoSuchLifecycleConfiguration", 28))
		return 0;
	if (r < 0)
		return fr_fail(d, r, reason.hint, "%s", reason.what);
	return fr_store_answer_read(s, &req, a, "LifecycleConfiguration", on_element, rules, d);
}

int fr_store_expire(struct fr_store *s, const char *prefix, unsigned days, struct fr_diag *d)
{
	struct fr_store_request req = {.method = "PUT",
		.query = query,
		.n_query = 1,
		.content_type = "application/xml",
		.has_md5 = true};
	_cleanup_answer_ struct fr_store_answer old = {0}, answer = {0};
	_cleanup_buf_ struct fr_buf document = {0};
	struct rules rules = {0};
	int r;

	if (days < 1 || days > 36500 || strlen(prefix) > FR_STORE_KEY_MAX)
		return fr_fail(d, -EINVAL, "Keep the dumps for 1 to 36500 days.",
			"the objects '%.200s' cannot be removed after %u days", prefix, days);
	r = read_rules(s, &old, &rules, d);
	if (r < 0)
		return r;
	if (make_document(&document, &old, &rules, prefix, days) < 0)
		return fr_fail_errno(d, -ENOMEM, NULL, "cannot set the rule of the bucket %.100s", s->bucket);
	req.data = document.data;
	req.n_data = document.len;
	return fr_store_perform(s, &req, &answer, d);
}
