// SPDX-License-Identifier: GPL-2.0-or-later
#include "store/s3.h"

#include "base/cleanup.h"
#include "base/units.h"
#include "store/request.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* The store chose the id, and it gets into a URL and into files. */
static bool is_id(const char *text, size_t size)
{
	const size_t n = strnlen(text, size);

	for (size_t i = 0; i < n; i++)
		if (text[i] <= ' ' || text[i] > '~')
			return false;
	return n > 0 && n < size;
}

static int check(const char *key, const char *upload, struct fr_diag *d)
{
	int r = fr_store_key_check(key, d);

	if (r == 0 && !is_id(upload, FR_STORE_UPLOAD_SIZE))
		return fr_fail(d, -EINVAL, NULL, "the id of an upload of %.200s is not possible", key);
	return r;
}

static int on_begin_element(void *ctx, const struct fr_xml_element *e)
{
	char *upload = ctx;

	if (strcmp(e->path, "/InitiateMultipartUploadResult/UploadId") != 0)
		return 0;
	if (!is_id(e->text, FR_STORE_UPLOAD_SIZE))
		return -EBADMSG;
	snprintf(upload, FR_STORE_UPLOAD_SIZE, "%s", e->text);
	return 0;
}

int fr_store_upload_begin(struct fr_store *s, const char *key, const char *sha256,
	char ret_upload[FR_STORE_UPLOAD_SIZE], struct fr_diag *d)
{
	static const struct fr_store_query query[] = {{"uploads", ""}};
	const struct fr_store_request req = {.method = "POST",
		.key = key,
		.query = query,
		.n_query = 1,
		.data = "",
		.meta_sha256 = sha256};
	_cleanup_answer_ struct fr_store_answer a = {0};
	char upload[FR_STORE_UPLOAD_SIZE] = "";
	int r = fr_store_key_check(key, d);

	if (r == 0)
		r = fr_store_perform(s, &req, &a, d);
	if (r == 0)
		r = fr_store_answer_read(
			s, &req, &a, "InitiateMultipartUploadResult", on_begin_element, upload, d);
	if (r < 0)
		return r;
	if (!upload[0])
		return fr_store_answer_refuse(s, &req, d, "it does not have the id of the upload");
	memcpy(ret_upload, upload, sizeof(upload));
	return 0;
}

int fr_store_upload_part(struct fr_store *s, const char *key, const char *upload, unsigned number, int fd,
	uint64_t offset, uint64_t n, char ret_etag[FR_STORE_ETAG_SIZE], struct fr_diag *d)
{
	char text[16];
	const struct fr_store_query query[] = {{"partNumber", text}, {"uploadId", upload}};
	const struct fr_store_request req = {.method = "PUT",
		.key = key,
		.query = query,
		.n_query = 2,
		.fd = fd,
		.fd_offset = offset,
		.n_data = n};
	_cleanup_answer_ struct fr_store_answer a = {0};
	int r = check(key, upload, d);

	if (r < 0)
		return r;
	if (number < 1 || number > FR_STORE_PARTS_MAX || offset > INT64_MAX || n > INT64_MAX - offset)
		return fr_fail(d, -EINVAL, "An upload has at most 10000 parts.",
			"the part %u of %.200s is not possible", number, key);
	snprintf(text, sizeof(text), "%u", number);
	r = fr_store_perform(s, &req, &a, d);
	if (r == 0)
		r = fr_store_answer_check_md5(s, &req, &a, d);
	if (r < 0)
		return r;
	if (!a.etag[0])
		return fr_store_answer_refuse(s, &req, d, "it does not have the ETag of the part");
	memcpy(ret_etag, a.etag, sizeof(a.etag));
	return 0;
}

/* One page of the list of parts, and the part that is being read. */
struct parts {
	struct fr_store_part *ret;
	size_t max, n;
	struct fr_store_part part;
	bool has_bytes, is_truncated;
	unsigned next; /* NextPartNumberMarker; 0: none */
};

static int parse_number(const char *text, unsigned *ret)
{
	uint64_t number;

	if (fr_u64_parse(text, &number) < 0 || number > FR_STORE_PARTS_MAX)
		return -EBADMSG;
	*ret = (unsigned)number;
	return 0;
}

static int take_etag(char *ret, const char *text)
{
	size_t n = strlen(text);

	if (n >= 2 && text[0] == '"' && text[n - 1] == '"') {
		text++;
		n -= 2;
	}
	if (n == 0 || n >= FR_STORE_ETAG_SIZE)
		return -EBADMSG;
	memcpy(ret, text, n);
	ret[n] = '\0';
	return is_id(ret, FR_STORE_ETAG_SIZE) ? 0 : -EBADMSG;
}

static int take_part(struct parts *p)
{
	const unsigned last = p->n ? p->ret[p->n - 1].number : 0;

	if (p->part.number <= last || !p->has_bytes || !p->part.etag[0] || p->n == p->max)
		return -EBADMSG;
	p->ret[p->n++] = p->part;
	p->part = (struct fr_store_part){0};
	p->has_bytes = false;
	return 0;
}

static int on_part_element(void *ctx, const struct fr_xml_element *e)
{
	const char *name = e->path + strlen("/ListPartsResult/");
	struct parts *p = ctx;

	if (strcmp(name, "Part/PartNumber") == 0)
		return parse_number(e->text, &p->part.number);
	if (strcmp(name, "Part/ETag") == 0)
		return take_etag(p->part.etag, e->text);
	if (strcmp(name, "Part/Size") == 0) {
		p->has_bytes = fr_u64_parse(e->text, &p->part.bytes) == 0;
		return p->has_bytes ? 0 : -EBADMSG;
	}
	if (strcmp(name, "Part") == 0)
		return take_part(p);
	if (strcmp(name, "IsTruncated") == 0)
		p->is_truncated = strcmp(e->text, "true") == 0;
	else if (strcmp(name, "NextPartNumberMarker") == 0 && e->text[0])
		return parse_number(e->text, &p->next);
	return 0;
}

static int read_page(struct fr_store *s, const char *key, const char *upload, unsigned marker,
	struct parts *p, struct fr_diag *d)
{
	char text[16];
	const struct fr_store_query query[] = {{"part-number-marker", text}, {"uploadId", upload}};
	const struct fr_store_request req = {.method = "GET",
		.key = key,
		.query = marker ? query : query + 1,
		.n_query = marker ? 2 : 1,
		.max = FR_STORE_LIST_MAX};
	_cleanup_answer_ struct fr_store_answer a = {0};
	int r;

	snprintf(text, sizeof(text), "%u", marker);
	p->is_truncated = false;
	p->next = 0;
	r = fr_store_perform(s, &req, &a, d);
	if (r == 0)
		r = fr_store_answer_read(s, &req, &a, "ListPartsResult", on_part_element, p, d);
	if (r == 0 && p->is_truncated && p->next <= marker)
		return fr_store_answer_refuse(s, &req, d, "the list of parts does not go on");
	return r;
}

int fr_store_upload_parts(struct fr_store *s, const char *key, const char *upload, struct fr_store_part *ret,
	size_t max, size_t *ret_n, struct fr_diag *d)
{
	_cleanup_free_ struct fr_store_part *parts = calloc(max ? max : 1, sizeof(*parts));
	struct parts p = {.ret = parts, .max = max};
	int r = check(key, upload, d);

	if (!parts)
		return fr_fail_errno(d, -ENOMEM, NULL, "cannot list the parts of %.200s", key);
	do /* ends, because the marker grows up to FR_STORE_PARTS_MAX */
		r = r == 0 ? read_page(s, key, upload, p.next, &p, d) : r;
	while (r == 0 && p.is_truncated);
	if (r < 0)
		return r;
	memcpy(ret, parts, p.n * sizeof(*parts));
	*ret_n = p.n;
	return 0;
}

static int make_list(const struct fr_store_part *parts, size_t n, struct fr_buf *b)
{
	int r = fr_xml_append(
		b, "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
	char text[64];

	for (size_t i = 0; i < n && r == 0; i++) {
		snprintf(
			text, sizeof(text), "<Part><PartNumber>%u</PartNumber><ETag>&quot;", parts[i].number);
		r = fr_xml_append(b, text);
		if (r == 0)
			r = fr_xml_escape(b, parts[i].etag);
		if (r == 0)
			r = fr_xml_append(b, "&quot;</ETag></Part>");
	}
	return r == 0 ? fr_xml_append(b, "</CompleteMultipartUpload>") : r;
}

int fr_store_upload_finish(struct fr_store *s, const char *key, const char *upload,
	const struct fr_store_part *parts, size_t n, struct fr_diag *d)
{
	const struct fr_store_query query[] = {{"uploadId", upload}};
	struct fr_store_request req = {.method = "POST",
		.key = key,
		.query = query,
		.n_query = 1,
		.content_type = "application/xml",
		.is_slow = true};
	_cleanup_answer_ struct fr_store_answer a = {0};
	_cleanup_buf_ struct fr_buf list = {0};
	int r = check(key, upload, d);

	if (r < 0)
		return r;
	if (n < 1 || n > FR_STORE_PARTS_MAX)
		return fr_fail(d, -EINVAL, "An upload has 1 to 10000 parts.",
			"the upload of %.200s has %zu parts", key, n);
	if (make_list(parts, n, &list) < 0)
		return fr_fail_errno(d, -ENOMEM, NULL, "cannot finish the upload of %.200s", key);
	req.data = list.data;
	req.n_data = list.len;
	r = fr_store_perform(s, &req, &a, d);
	/* The store begins its answer before it knows whether the upload succeeds. */
	return r == 0 ? fr_store_answer_read(s, &req, &a, "CompleteMultipartUploadResult", NULL, NULL, d) : r;
}

int fr_store_upload_abort(struct fr_store *s, const char *key, const char *upload, struct fr_diag *d)
{
	const struct fr_store_query query[] = {{"uploadId", upload}};
	const struct fr_store_request req = {.method = "DELETE", .key = key, .query = query, .n_query = 1};
	_cleanup_answer_ struct fr_store_answer a = {0};
	int r = check(key, upload, d);

	return r == 0 ? fr_store_perform(s, &req, &a, d) : r;
}
