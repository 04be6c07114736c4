// SPDX-License-Identifier: GPL-2.0-or-later
#include "store/s3.h"

#include "base/cleanup.h"
#include "store/request.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

int fr_store_put(struct fr_store *s, const char *key, const void *data, size_t n, const char *sha256,
	struct fr_diag *d)
{
	const struct fr_store_request req = {
		.method = "PUT", .key = key, .data = data ? data : "", .n_data = n, .meta_sha256 = sha256};
	_cleanup_answer_ struct fr_store_answer a = {0};
	int r = fr_store_key_check(key, d);

	if (r == 0)
		r = fr_store_perform(s, &req, &a, d);
	return r == 0 ? fr_store_answer_check_md5(s, &req, &a, d) : r;
}

int fr_store_head(struct fr_store *s, const char *key, struct fr_store_object *ret, struct fr_diag *d)
{
	const struct fr_store_request req = {.method = "HEAD", .key = key};
	_cleanup_answer_ struct fr_store_answer a = {0};
	int r = fr_store_key_check(key, d);

	if (r == 0)
		r = fr_store_perform(s, &req, &a, d);
	if (r < 0)
		return r;
	if (!a.has_length)
		return fr_store_answer_refuse(s, &req, d, "it does not have the size of the object");
	*ret = (struct fr_store_object){.bytes = a.length};
	memcpy(ret->etag, a.etag, sizeof(ret->etag));
	memcpy(ret->sha256, a.sha256, sizeof(ret->sha256));
	return 0;
}

/* Judges status 416, with which a store answers if no byte is left. Not all stores say the size then. */
static int judge_end(struct fr_store *s, const struct fr_store_request *req, const struct fr_store_answer *a,
	struct fr_diag *d)
{
	struct fr_store_object o = {.bytes = a->range_total};
	int r = a->has_range && a->range_from == UINT64_MAX ? 0 : fr_store_head(s, req->key, &o, d);

	if (r < 0 || o.bytes == req->range_from)
		return r;
	if (o.bytes < req->range_from)
		return fr_fail(d, -EBADMSG, "Fetch the object again from its start.",
			"the object %.200s in the store has only %" PRIu64 " bytes, not %" PRIu64, req->key,
			o.bytes, req->range_from);
	return fr_store_answer_error(s, req, a, d);
}

int fr_store_get(
	struct fr_store *s, const char *key, int fd, uint64_t offset, uint64_t max, struct fr_diag *d)
{
	const struct fr_store_request req = {
		.method = "GET", .key = key, .sink = &fd, .range_from = offset, .max = max};
	_cleanup_answer_ struct fr_store_answer a = {0};
	struct fr_diag reason = {0};
	int r = fr_store_key_check(key, d);

	if (r < 0)
		return r;
	r = fr_store_perform(s, &req, &a, &reason);
	if (r < 0 && a.status == 416)
		return judge_end(s, &req, &a, d);
	if (r < 0)
		return fr_fail(d, r, reason.hint, "%s", reason.what);
	if (a.status == 206 && a.has_range && a.received != a.range_total - offset)
		return fr_store_answer_refuse(s, &req, d, "it does not have the end of the object");
	return fr_store_answer_check_end(s, &req, &a, d);
}

int fr_store_get_small(
	struct fr_store *s, const char *key, size_t max, char **ret, size_t *ret_n, struct fr_diag *d)
{
	const struct fr_store_request req = {.method = "GET", .key = key, .max = max};
	_cleanup_answer_ struct fr_store_answer a = {0};
	int r = fr_store_key_check(key, d);

	if (r == 0)
		r = fr_store_perform(s, &req, &a, d);
	if (r == 0)
		r = fr_store_answer_check_end(s, &req, &a, d);
	if (r < 0)
		return r;
	if (a.body.len > max)
		return fr_store_answer_refuse(s, &req, d, "it is too long");
	*ret_n = a.body.len;
	*ret = (char *)TAKE_PTR(a.body.data);
	return 0;
}

int fr_store_remove(struct fr_store *s, const char *key, struct fr_diag *d)
{
	const struct fr_store_request req = {.method = "DELETE", .key = key};
	_cleanup_answer_ struct fr_store_answer a = {0};
	struct fr_diag reason = {0};
	int r = fr_store_key_check(key, d);

	if (r < 0)
		return r;
	r = fr_store_perform(s, &req, &a, &reason);
	if (r == -ENOENT && a.body.len > 0 && memmem(a.body.data, a.body.len, "<Code>NoSuchKey<", 16))
		return 0;
	return r < 0 ? fr_fail(d, r, reason.hint, "%s", reason.what) : 0;
}
