// SPDX-License-Identifier: GPL-2.0-or-later
#include "store/transfer.h"

#include "base/clock.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/units.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#define CONNECT_NS (10 * FR_NSEC_PER_SEC)
#define RATE_MIN 1024 /* bytes a second that a store must reach in the long run */
#define BUFFER_MIN 65536
#define BUFFER_MAX (512u << 10)
#define BUFFERS_PER_S 16 /* with a limit of the rate */

__attribute__((format(printf, 3, 4))) static void refuse(
	struct fr_transfer *t, int code, const char *fmt, ...)
{
	va_list ap;

	if (t->code)
		return;
	t->code = code;
	va_start(ap, fmt);
	vsnprintf(t->why, sizeof(t->why), fmt, ap);
	va_end(ap);
}

static bool is_canceled(struct fr_transfer *t)
{
	if (!t->store->cancel || !atomic_load(t->store->cancel))
		return false;
	refuse(t, -ECANCELED, "it was canceled");
	return true;
}

/* The last bytes were read: checks that they are the bytes whose hash was signed. */
static bool has_signed_content(struct fr_transfer *t)
{
	char sha256[FR_SHA256_SIZE];
	int r = fr_hash_final(&t->hash, sha256, t->md5);

	if (r < 0)
		refuse(t, r, "the hash of the content cannot be computed");
	else if (strcmp(sha256, t->sha256) != 0)
		refuse(t, -EBADMSG, "the file changed while it was sent");
	return t->code == 0;
}

static size_t on_read(char *to, size_t size, size_t n, void *data)
{
	struct fr_transfer *t = data;
	const size_t want = FR_MIN(size * n, t->req->n_data - t->sent);

	if (want == 0)
		return 0;
	if (t->req->data) {
		memcpy(to, (const char *)t->req->data + t->sent, want);
	} else {
		const ssize_t got = fr_pread_all(t->req->fd, to, want, (off_t)(t->req->fd_offset + t->sent));

		if (got != (ssize_t)want) {
			refuse(t, got < 0 ? (int)got : -EBADMSG, "the file %s",
				got < 0 ? "cannot be read" : "became shorter while it was sent");
			return CURL_READFUNC_ABORT;
		}
	}
	t->sent += want;
	if (fr_hash_update(&t->hash, to, want) < 0)
		refuse(t, -EIO, "the hash of the content cannot be computed");
	if (t->code || (t->sent == t->req->n_data && !has_signed_content(t)))
		return CURL_READFUNC_ABORT;
	return want;
}

/* libcurl sends the body again from its start, when a kept connection was closed by the store. */
static int on_seek(void *data, curl_off_t offset, int origin)
{
	struct fr_transfer *t = data;

	if (offset != 0 || origin != SEEK_SET)
		return CURL_SEEKFUNC_FAIL;
	fr_hash_deinit(&t->hash);
	if (fr_hash_init(&t->hash) < 0)
		return CURL_SEEKFUNC_FAIL;
	t->sent = 0;
	return CURL_SEEKFUNC_OK;
}

/* Returns the status of the answer whose headers are complete. */
static unsigned status_of(struct fr_transfer *t)
{
	long status = 0;

	curl_easy_getinfo(t->store->curl, CURLINFO_RESPONSE_CODE, &status);
	return (unsigned)status;
}

static bool is_from_offset(struct fr_transfer *t)
{
	const bool part = status_of(t) == 206;

	if (t->req->range_from == 0 && !part)
		return true;
	if (part && t->answer->has_range && t->answer->range_from == t->req->range_from)
		return true;
	refuse(t, -EBADMSG, "the store sends another part of the object than from byte %" PRIu64 " on",
		t->req->range_from);
	return false;
}

static size_t on_write(char *from, size_t size, size_t n, void *data)
{
	struct fr_transfer *t = data;
	const bool is_error = status_of(t) / 100 != 2;
	const bool to_sink = t->req->sink && !is_error;
	const uint64_t max = is_error || (!to_sink && t->req->max == 0) ? FR_STORE_SMALL_MAX : t->req->max;
	int r;

	n *= size;
	if (n > max - t->received) {
		refuse(t, -EBADMSG, "its answer has more than %" PRIu64 " bytes", max);
		return 0;
	}
	if (to_sink && t->received == 0 && !is_from_offset(t))
		return 0;
	r = to_sink ? fr_write_all(*t->req->sink, from, n) : fr_buf_append(&t->answer->body, from, n);
	if (r < 0) {
		refuse(t, r, "its answer cannot be kept: %s", strerrordesc_np(-r));
		return 0;
	}
	t->received += n;
	return n;
}

static void take_length(struct fr_store_answer *a, const char *value)
{
	a->has_length = fr_u64_parse(value, &a->length) == 0;
}

static void take_range(struct fr_store_answer *a, const char *value)
{
	char from[24], total[24];

	a->has_range = false;
	if (sscanf(value, "bytes */%20[0-9]", total) == 1)
		a->range_from = UINT64_MAX;
	else if (sscanf(value, "bytes %20[0-9]-%*20[0-9]/%20[0-9]", from, total) != 2 ||
		 fr_u64_parse(from, &a->range_from) < 0)
		return;
	a->has_range = fr_u64_parse(total, &a->range_total) == 0;
}

/* Takes VALUE without quotes, if it fits and has only printable ASCII. */
static void take_text(char *ret, size_t size, const char *value)
{
	size_t n = strlen(value);

	if (n >= 2 && value[0] == '"' && value[n - 1] == '"') {
		value++;
		n -= 2;
	}
	ret[0] = '\0';
	if (n >= size)
		return;
	for (size_t i = 0; i < n; i++)
		if (value[i] <= ' ' || value[i] > '~')
			return;
	memcpy(ret, value, n);
	ret[n] = '\0';
}

static void take_sha256(struct fr_store_answer *a, const char *value)
{
	take_text(a->sha256, sizeof(a->sha256), value);
	if (strlen(a->sha256) != FR_SHA256_SIZE - 1 ||
		strspn(a->sha256, "0123456789abcdef") != FR_SHA256_SIZE - 1)
		a->sha256[0] = '\0';
}

static void take_header(struct fr_store_answer *a, const char *name, const char *value)
{
	if (strcasecmp(name, "etag") == 0)
		take_text(a->etag, sizeof(a->etag), value);
	else if (strcasecmp(name, "content-length") == 0)
		take_length(a, value);
	else if (strcasecmp(name, "transfer-encoding") == 0)
		a->is_chunked = strcasecmp(value, "chunked") == 0;
	else if (strcasecmp(name, "content-range") == 0)
		take_range(a, value);
	else if (strcasecmp(name, "x-amz-meta-sha256") == 0)
		take_sha256(a, value);
	else if (strcasecmp(name, "x-amz-bucket-region") == 0)
		take_text(a->region, sizeof(a->region), value);
	else if (strcasecmp(name, "date") == 0)
		a->date = FR_MAX(curl_getdate(value, NULL), 0);
	else if (strcasecmp(name, "x-amz-server-side-encryption-customer-algorithm") == 0 ||
		 (strcasecmp(name, "x-amz-server-side-encryption") == 0 && strncmp(value, "aws:", 4) == 0))
		a->is_encrypted = true;
}

static size_t on_header(char *line, size_t size, size_t n, void *data)
{
	struct fr_transfer *t = data;
	char text[1024];
	char *value;
	size_t len = n * size;

	t->header_bytes += len;
	if (t->header_bytes > FR_STORE_HEADERS_MAX) {
		refuse(t, -EBADMSG, "its answer has more than %u bytes of headers", FR_STORE_HEADERS_MAX);
		return 0;
	}
	while (len > 0 && strchr(" \t\r\n", line[len - 1]))
		len--;
	if (len >= sizeof(text)) /* none of the headers that count is that long */
		return n * size;
	memcpy(text, line, len);
	text[len] = '\0';
	value = strchr(text, ':');
	if (strncmp(text, "HTTP/", 5) == 0) { /* the headers of 100 Continue are not those of the answer */
		fr_buf_deinit(&t->answer->body);
		*t->answer = (struct fr_store_answer){0};
	} else if (len == 0) {
		t->answer->is_complete = true;
	} else if (value) {
		*value++ = '\0';
		take_header(t->answer, text, value + strspn(value, " \t"));
	}
	return n * size;
}

/* libcurl calls this at least once a second. */
static int on_progress(void *data, curl_off_t down_total, curl_off_t down, curl_off_t up_total, curl_off_t up)
{
	struct fr_transfer *t = data;
	const uint64_t now = fr_monotonic_ns(), moved = (uint64_t)(down + up);

	if (moved != t->moved) {
		t->moved = moved;
		t->moved_ns = now;
	}
	if (moved > t->reported) {
		if (t->store->on_progress)
			t->store->on_progress(t->store->ctx, moved - t->reported);
		t->reported = moved;
	}
	if (is_canceled(t))
		return 1;
	if (now - t->moved_ns > t->stall_ns) {
		refuse(t, -ETIMEDOUT, "nothing moved for %" PRIu64 " s",
			(uint64_t)(t->stall_ns / FR_NSEC_PER_SEC));
		return 1;
	}
	return 0;
}

/* Returns the bytes a second that a store must reach. */
static uint64_t least_rate(const struct fr_transfer *t)
{
	const uint64_t limit = t->store->limit_bytes;

	return limit && limit / 4 < RATE_MIN ? FR_MAX(limit / 4, 1) : RATE_MIN;
}

/* Returns the most time that the whole request may take. */
static uint64_t total_ms(const struct fr_transfer *t)
{
	const struct fr_store_request *req = t->req;
	const uint64_t bytes = req->n_data + (req->sink ? req->max : 0);
	const uint64_t fixed_ms = (req->is_slow ? 20 : 2) * t->stall_ns / FR_NSEC_PER_MSEC;

	return FR_MIN(fixed_ms + FR_MIN(bytes, 1ULL << 44) / least_rate(t) * 1000, (uint64_t)INT32_MAX);
}

/* A large content must also not come drop by drop. */
static void set_least_rate(struct fr_transfer *t)
{
	const struct fr_store_request *req = t->req;

	if (!req->sink && (req->data || req->n_data == 0))
		return;
	curl_easy_setopt(t->store->curl, CURLOPT_LOW_SPEED_LIMIT, (long)least_rate(t));
	curl_easy_setopt(t->store->curl, CURLOPT_LOW_SPEED_TIME,
		(long)FR_MIN(2 * t->stall_ns / FR_NSEC_PER_SEC, (uint64_t)INT32_MAX));
}

/*
 * Returns the size of the pieces in which a body is sent. With large pieces and pauses between them, the
 * sender wakes up less often than with small ones: at 10 MiB/s, 512 KiB instead of 64 KiB save a third of its
 * CPU time, and it disturbs the caches of other programs less. A piece is short beside a second, so that the
 * rate is even.
 */
static uint64_t buffer_bytes(const struct fr_store *s)
{
	if (s->limit_bytes == 0)
		return BUFFER_MAX;
	return FR_MIN(FR_MAX(s->limit_bytes / BUFFERS_PER_S, BUFFER_MIN), BUFFER_MAX);
}

int fr_transfer_init(struct fr_transfer *t, struct fr_store *s, const struct fr_store_request *req,
	struct fr_store_answer *answer)
{
	*t = (struct fr_transfer){.store = s, .req = req, .answer = answer, .moved_ns = fr_monotonic_ns()};
	t->stall_ns = s->stall_ns;
	if (s->limit_bytes) /* libcurl keeps a low limit by long pauses between full buffers */
		t->stall_ns += 4 * buffer_bytes(s) * FR_NSEC_PER_SEC / s->limit_bytes;
	return fr_hash_init(&t->hash);
}

void fr_transfer_set(struct fr_transfer *t)
{
	CURL *c = t->store->curl;

	curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
	curl_easy_setopt(c, CURLOPT_HEADERDATA, t);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_write);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(c, CURLOPT_READFUNCTION, on_read);
	curl_easy_setopt(c, CURLOPT_READDATA, t);
	curl_easy_setopt(c, CURLOPT_SEEKFUNCTION, on_seek);
	curl_easy_setopt(c, CURLOPT_SEEKDATA, t);
	curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, on_progress);
	curl_easy_setopt(c, CURLOPT_XFERINFODATA, t);
	curl_easy_setopt(c, CURLOPT_UPLOAD_BUFFERSIZE, (long)buffer_bytes(t->store));
	curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)total_ms(t));
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS,
		(long)(FR_MIN(CONNECT_NS, t->store->stall_ns) / FR_NSEC_PER_MSEC));
	set_least_rate(t);
	if (t->store->limit_bytes) {
		const curl_off_t limit = (curl_off_t)FR_MIN(t->store->limit_bytes, (uint64_t)INT64_MAX);

		curl_easy_setopt(c, CURLOPT_MAX_SEND_SPEED_LARGE, limit);
		curl_easy_setopt(c, CURLOPT_MAX_RECV_SPEED_LARGE, limit);
	}
}

void fr_transfer_deinit(struct fr_transfer *t)
{
	fr_hash_deinit(&t->hash);
}
