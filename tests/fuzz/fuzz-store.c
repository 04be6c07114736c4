// SPDX-License-Identifier: GPL-2.0-or-later

/* Uses the input as what a store answers to each request: the first byte says the status, the rest is the
   body. The target has its own fr_store_perform(), so there is no network. What the readers accept keeps the
   promises of s3.h. */

#include "base/cleanup.h"
#include "fuzz.h"
#include "store/errors.h"
#include "store/request.h"

#include <errno.h>

static const uint8_t *body;
static size_t n_body;
static unsigned status, left; /* how many requests are answered */

static int check_well_formed(void *ctx, const struct fr_xml_element *e)
{
	check(e->begin < e->end && e->close >= e->begin && e->close <= e->end);
	if (strcmp(e->path, "/LifecycleConfiguration/Rule/ID") == 0 && strcmp(e->text, "flightrec") == 0)
		*(bool *)ctx = true;
	return 0;
}

static void check_rules(const struct fr_store_request *req)
{
	bool has_own = false;

	check(fr_xml_read(req->data, req->n_data, check_well_formed, &has_own, NULL) == 0 && has_own);
}

int fr_store_perform(
	struct fr_store *s, const struct fr_store_request *req, struct fr_store_answer *a, struct fr_diag *d)
{
	*a = (struct fr_store_answer){.status = status, .has_length = true, .length = n_body};
	if (strcmp(req->method, "PUT") == 0 && req->n_query == 1 &&
		strcmp(req->query[0].name, "lifecycle") == 0) {
		check_rules(req);
		return 0;
	}
	if (left-- == 0)
		return fr_fail(d, -EAGAIN, NULL, "no more answers");
	check(fr_buf_append(&a->body, body, n_body) == 0);
	return status == 200 ? 0 : fr_store_answer_error(s, req, a, d);
}

static bool on_object(void *ctx, const char *key, uint64_t bytes)
{
	const size_t n = strnlen(key, FR_STORE_KEY_MAX + 1);

	check(n <= FR_STORE_KEY_MAX && key[0] == 'p');
	return true;
}

static void check_diag(int r, const struct fr_diag *d)
{
	check(r <= 0);
	if (r < 0) {
		check(d->code == r && d->what[0]);
		check_text(d->hint, sizeof(d->hint));
	}
}

static void try_parts(struct fr_store *s)
{
	struct fr_store_part parts[8];
	struct fr_diag d = {0};
	size_t n = 0;
	int r;

	left = 3;
	r = fr_store_upload_parts(s, "k", "u", parts, FR_ARRAY_SIZE(parts), &n, &d);
	check_diag(r, &d);
	for (size_t i = 0; i < n; i++) {
		check(parts[i].number >= 1 && parts[i].number <= FR_STORE_PARTS_MAX);
		check(i == 0 || parts[i].number > parts[i - 1].number);
		check(strnlen(parts[i].etag, FR_STORE_ETAG_SIZE) < FR_STORE_ETAG_SIZE);
		check_text(parts[i].etag, sizeof(parts[i].etag));
	}
}

static void try_upload(struct fr_store *s)
{
	const struct fr_store_part part = {.number = 1, .etag = "x"};
	char upload[FR_STORE_UPLOAD_SIZE];
	struct fr_diag d = {0};
	int r;

	left = 1;
	r = fr_store_upload_begin(s, "k", NULL, upload, &d);
	check_diag(r, &d);
	if (r == 0)
		check_text(upload, sizeof(upload));
	left = 1;
	d = (struct fr_diag){0};
	check_diag(fr_store_upload_finish(s, "k", "u", &part, 1, &d), &d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fr_store s = {.endpoint = (char[]){"http://x"}, .bucket = (char[]){"b"}};
	static const unsigned all[] = {200, 404, 503, 301};
	struct fr_diag d = {0};

	if (size == 0)
		return 0;
	status = all[data[0] % FR_ARRAY_SIZE(all)];
	body = data + 1;
	n_body = size - 1;
	left = 3;
	check_diag(fr_store_list(&s, "p", on_object, NULL, &d), &d);
	try_parts(&s);
	try_upload(&s);
	left = 1;
	d = (struct fr_diag){0};
	check_diag(fr_store_expire(&s, "a<&b", 3, &d), &d);
	return 0;
}
