// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Requests and their replies. Anybody who may publish to an inbox can write a reply. So each request has an
 * inbox of its own with a random name (that of libnats can be guessed), and all callers compare the reply
 * with their question.
 *
 * A broker that does not permit a request does not reply. It writes an error line with the subject, which
 * libnats passes to an error handler. The handler looks for the request.
 */
#include "bus/bus_private.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

int bus_random_text(char *ret, size_t n)
{
	unsigned char bytes[16];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < n && i < 2 * sizeof(bytes); i++)
		ret[i] = "0123456789abcdef"[(bytes[i / 2] >> (4 * (i % 2))) & 15];
	ret[FR_MIN(n, 2 * sizeof(bytes))] = '\0';
	return 0;
}

void bus_on_reply(natsConnection *nc, natsSubscription *sub, natsMsg *msg, void *arg)
{
	struct fr_bus *b = arg;

	fr_lock(&b->lock);
	for (struct bus_request *q = b->requests; q && msg; q = q->next) {
		if (!q->reply && strcmp(q->inbox, natsMsg_GetSubject(msg)) == 0)
			q->reply = TAKE_PTR(msg);
	}
	fr_cond_broadcast(&b->cond);
	fr_unlock(&b->lock);
	if (msg)
		atomic_fetch_add(&b->refused, 1);
	natsMsg_Destroy(msg);
}

/* Returns whether TEXT, which libnats cuts at 255 bytes, names SUBJECT: for Publish to "SUBJECT". */
static bool is_violation(const char *text, const char *verb, const char *subject)
{
	const char *start = strcasestr(text, verb);
	size_t n = strlen(subject);

	if (!start)
		return false;
	start += strlen(verb);
	start += strspn(start, " \"'");
	return strncasecmp(start, subject, FR_MIN(n, strlen(start))) == 0 &&
	       strlen(start) >= FR_MIN(n, 60u) &&
	       (strlen(start) < n || !start[n] || start[n] == '"' || start[n] == '\'');
}

void bus_on_error(natsConnection *nc, natsSubscription *sub, natsStatus status, void *arg)
{
	struct fr_bus *b = arg;
	const char *text = nats_GetLastError(NULL);
	char shown[300];

	if (status != NATS_NOT_PERMITTED || !text)
		return;
	bus_text(shown, sizeof(shown), text, strnlen(text, sizeof(shown)));
	fr_lock(&b->lock);
	for (struct bus_request *q = b->requests; q; q = q->next)
		q->refused = q->refused || is_violation(shown, "Publish to", q->subject);
	if (strcasestr(shown, "Subscription to") && strcasestr(shown, b->inbox))
		snprintf(b->inbox_refused, sizeof(b->inbox_refused), "%s", shown);
	fr_cond_broadcast(&b->cond);
	fr_unlock(&b->lock);
}

void bus_requests_break(struct fr_bus *b)
{
	for (struct bus_request *q = b->requests; q; q = q->next)
		q->broken = true;
	fr_cond_broadcast(&b->cond);
}

static natsStatus publish(natsConnection *nc, const struct bus_request *q, const struct bus_header *headers,
	const void *data, size_t n)
{
	natsMsg *msg = NULL;
	natsStatus s = natsMsg_Create(&msg, q->subject, q->inbox, data, (int)n);

	for (; s == NATS_OK && headers && headers->name; headers++)
		s = natsMsgHeader_Set(msg, headers->name, headers->value);
	if (s == NATS_OK)
		s = natsConnection_PublishMsg(nc, msg);
	natsMsg_Destroy(msg);
	return s;
}

static int outcome(struct fr_bus *b, struct bus_request *q, natsMsg **ret, struct fr_diag *d)
{
	if (q->reply && bus_status(q->reply) != 503) {
		*ret = TAKE_PTR(q->reply);
		return 0;
	}
	if (q->reply)
		return fr_fail(d, -ENOENT,
			"Create the streams (flightrecctl fleet setup), and enable JetStream in the broker.",
			"nothing listens on %s: the broker has no such stream, or no JetStream for this "
			"account",
			q->subject);
	if (q->refused)
		return fr_fail(d, -EACCES,
			"Look at the permissions of this user in the configuration of the broker.",
			"the broker does not permit this client to publish to %s", q->subject);
	if (*b->inbox_refused)
		return fr_fail(d, -EACCES,
			"Permit the user of this client to subscribe to its inboxes: PREFIX.>",
			"the broker does not permit the inbox of this client: %s", b->inbox_refused);
	if (q->broken)
		return fr_fail(d, -ETIMEDOUT, "The bus makes the link again. Try again.",
			"the link to the broker broke before the reply to %s (%s)", q->subject, b->why);
	return fr_fail(d, -ETIMEDOUT,
		"Look at the broker's log: is JetStream running, and has its cluster a leader?",
		"the broker did not reply to %s in time", q->subject);
}

void bus_request_add(struct fr_bus *b, struct bus_request *q)
{
	fr_lock(&b->lock);
	q->next = b->requests;
	b->requests = q;
	fr_unlock(&b->lock);
}

static void unlink_request(struct fr_bus *b, struct bus_request *q)
{
	struct bus_request **at = &b->requests;

	while (*at != q)
		at = &(*at)->next;
	*at = q->next;
}

void bus_request_remove(struct fr_bus *b, struct bus_request *q)
{
	fr_lock(&b->lock);
	unlink_request(b, q);
	fr_unlock(&b->lock);
}

static int wait_for(struct fr_bus *b, struct bus_request *q, natsConnection *nc,
	const struct bus_header *headers, const void *data, size_t n, uint64_t until_ns, natsMsg **ret,
	struct fr_diag *d)
{
	natsStatus s;
	int r = 0;

	bus_request_add(b, q);
	s = publish(nc, q, headers, data, n);
	fr_lock(&b->lock);
	while (s == NATS_OK && !q->reply && !q->refused && !q->broken && !*b->inbox_refused &&
		fr_cond_wait_until(&b->cond, &b->lock, until_ns))
		;
	unlink_request(b, q);
	if (s == NATS_OK)
		r = outcome(b, q, ret, d);
	fr_unlock(&b->lock);
	natsMsg_Destroy(q->reply);
	return s == NATS_OK ? r : bus_fail_nats(d, s, "cannot publish to %s", q->subject);
}

int bus_request(struct fr_bus *b, const char *subject, const struct bus_header *headers, const void *data,
	size_t n, uint64_t timeout_ns, natsMsg **ret, struct fr_diag *d)
{
	struct bus_request q = {.subject = subject};
	uint64_t until_ns = fr_monotonic_ns() + timeout_ns;
	natsConnection *nc = bus_link_get(b, d);
	char text[33];
	int r;

	if (!nc)
		return -ENOTCONN;
	r = bus_random_text(text, 32);
	if (r < 0)
		fr_fail_errno(d, r, NULL, "cannot make a random name");
	if (r == 0) {
		/* The inbox of the link does not change while this thread has the link. */
		snprintf(q.inbox, sizeof(q.inbox), "%.250s.%s", b->inbox, text);
		r = wait_for(b, &q, nc, headers, data, n, until_ns, ret, d);
	}
	bus_link_put(b);
	return r;
}

static cJSON *parse_reply(natsMsg *msg, const char *subject, int *ret_code, struct fr_diag *d)
{
	int n = natsMsg_GetDataLength(msg);
	cJSON *reply =
		n > 0 && n <= (1 << 20) ? cJSON_ParseWithLength(natsMsg_GetData(msg), (size_t)n) : NULL;
	const cJSON *error;

	if (!cJSON_IsObject(reply)) {
		*ret_code = fr_fail(d, -EBADMSG, "Is this a nats-server with JetStream?",
			"the reply of the broker to %s makes no sense: it is not a JSON object", subject);
		cJSON_Delete(reply);
		return NULL;
	}
	error = cJSON_GetObjectItemCaseSensitive(reply, "error");
	if (error) {
		*ret_code = bus_fail_api(d, error, subject);
		cJSON_Delete(reply);
		return NULL;
	}
	*ret_code = 0;
	return reply;
}

cJSON *bus_api(struct fr_bus *b, const char *subject, cJSON *body, uint64_t timeout_ns, int *ret_code,
	struct fr_diag *d)
{
	char *text = body ? cJSON_PrintUnformatted(body) : NULL;
	natsMsg *msg = NULL;
	cJSON *reply = NULL;

	if (body && !text) {
		*ret_code = fr_fail_errno(d, -ENOMEM, NULL, "cannot make a request to %s", subject);
		return NULL;
	}
	*ret_code = bus_request(b, subject, NULL, text, text ? strlen(text) : 0, timeout_ns, &msg, d);
	if (*ret_code == 0)
		reply = parse_reply(msg, subject, ret_code, d);
	if (*ret_code == -EBADMSG)
		atomic_fetch_add(&b->refused, 1);
	natsMsg_Destroy(msg);
	free(text);
	return reply;
}
