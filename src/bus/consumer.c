// SPDX-License-Identifier: GPL-2.0-or-later
/* A consumer of JetStream for one read: the broker keeps it in memory, and sends a batch for each request. */
#include "bus/bus_private.h"
#include "base/json.h"

#include <errno.h>
#include <string.h>

#define INACTIVE_NS (30 * FR_NSEC_PER_SEC) /* then the broker forgets it */

static cJSON *consumer_config(const struct fr_bus_read *what, const char *name, uint64_t from)
{
	cJSON *body = cJSON_CreateObject(), *config = cJSON_AddObjectToObject(body, "config");
	const char *policy = from ? "by_start_sequence" : what->since_ns ? "by_start_time" : "all";

	cJSON_AddStringToObject(body, "stream_name", what->stream);
	cJSON_AddStringToObject(config, "name", name);
	cJSON_AddStringToObject(config, "deliver_policy", policy);
	cJSON_AddStringToObject(config, "ack_policy", "none");
	cJSON_AddStringToObject(config, "replay_policy", "instant");
	cJSON_AddStringToObject(config, "filter_subject", what->subject);
	cJSON_AddBoolToObject(config, "mem_storage", true);
	FR_JSON_ADD_NUMBERS(config, {"inactive_threshold", INACTIVE_NS}, {"num_replicas", 1});
	if (from)
		fr_json_add_u64(config, "opt_start_seq", from);
	else if (what->since_ns)
		fr_json_add_time(config, "opt_start_time", what->since_ns);
	return body;
}

static int listen_to(struct fr_bus *b, struct bus_consumer *c, struct fr_diag *d)
{
	natsConnection *nc = bus_link_get(b, d);
	char text[33];
	natsStatus s;

	if (!nc)
		return -ENOTCONN;
	bus_random_text(text, 32);
	snprintf(c->inbox, sizeof(c->inbox), "%s.%s", b->inbox_prefix, text);
	s = natsConnection_SubscribeSync(&c->sub, nc, c->inbox);
	if (s == NATS_OK)
		s = natsSubscription_SetPendingLimits(c->sub, 16384, 32 << 20);
	bus_link_put(b);
	return s == NATS_OK ? 0 : bus_fail_nats(d, s, "cannot subscribe to an inbox");
}

int bus_consumer_open(struct fr_bus *b, const struct fr_bus_read *what, uint64_t from, struct bus_consumer *c,
	struct fr_diag *d)
{
	char subject[FR_BUS_SUBJECT_SIZE + 160];
	bool ok = true;
	cJSON *body, *info;
	int r;

	c->stream = what->stream;
	r = listen_to(b, c, d);
	if (r < 0)
		return r;
	r = bus_random_text(c->name, 16);
	if (r < 0)
		return fr_fail_errno(d, r, NULL, "cannot make a random name");
	/* The subject names the filter, so that a broker can permit it or not. */
	snprintf(subject, sizeof(subject), "$JS.API.CONSUMER.CREATE.%s.%s.%s", what->stream, c->name,
		what->subject);
	body = consumer_config(what, c->name, from);
	info = bus_api(b, subject, body, what->timeout_ns, &r, d);
	cJSON_Delete(body);
	if (!info)
		return r;
	snprintf(c->next, sizeof(c->next), "$JS.API.CONSUMER.MSG.NEXT.%s.%s", c->stream, c->name);
	c->batch.subject = c->next;
	bus_request_add(b, &c->batch);
	c->pending = bus_json_u64(info, "num_pending", &ok);
	if (!ok || strcmp(fr_json_text(info, "stream_name"), what->stream) != 0 ||
		strcmp(fr_json_text(info, "name"), c->name) != 0)
		r = fr_fail(d, -EBADMSG, NULL, "the reply of the broker to %s makes no sense", subject);
	cJSON_Delete(info);
	return r;
}

void bus_consumer_close(struct fr_bus *b, struct bus_consumer *c)
{
	natsConnection *nc = *c->name ? bus_link_get(b, NULL) : NULL;
	char subject[160];

	fr_lock(&b->reading);
	natsSubscription_Destroy(c->sub);
	fr_unlock(&b->reading);
	if (c->batch.subject)
		bus_request_remove(b, &c->batch);
	if (!nc)
		return;
	snprintf(subject, sizeof(subject), "$JS.API.CONSUMER.DELETE.%s.%s", c->stream, c->name);
	natsConnection_PublishString(nc, subject, "");
	bus_link_put(b);
}

bool bus_consumer_is_refused(struct fr_bus *b, struct bus_consumer *c)
{
	bool refused;

	fr_lock(&b->lock);
	refused = c->batch.refused;
	fr_unlock(&b->lock);
	return refused;
}

int bus_consumer_ask(struct fr_bus *b, struct bus_consumer *c, unsigned batch, struct fr_diag *d)
{
	natsConnection *nc = bus_link_get(b, d);
	char body[64];
	natsStatus s;

	if (!nc)
		return -ENOTCONN;
	snprintf(body, sizeof(body), "{\"batch\":%u,\"no_wait\":true}", batch);
	s = natsConnection_PublishRequestString(nc, c->next, c->inbox, body);
	bus_link_put(b);
	return s == NATS_OK ? 0 : bus_fail_nats(d, s, "cannot publish to %s", c->next);
}

/* Returns the token after "." and its end in *AT, or NULL. */
static bool next_token(const char **at, char *ret, size_t size)
{
	size_t n = strcspn(*at, ".");

	if (n == 0 || n >= size)
		return false;
	memcpy(ret, *at, n);
	ret[n] = '\0';
	*at += n + ((*at)[n] == '.');
	return true;
}

int bus_consumer_accept(struct bus_consumer *c, const char *reply, uint64_t *ret_sequence, uint64_t *ret_ns)
{
	char prefix[128], token[24];
	uint64_t numbers[5]; /* deliveries, in the stream, in the consumer, time, pending */
	const char *at;
	int n = snprintf(prefix, sizeof(prefix), "$JS.ACK.%s.%s.", c->stream, c->name);

	if (!reply || strncmp(reply, prefix, (size_t)n) != 0)
		return -EBADMSG;
	at = reply + n;
	for (size_t i = 0; i < FR_ARRAY_SIZE(numbers); i++) {
		if (!next_token(&at, token, sizeof(token)) || bus_parse_number(token, &numbers[i]) < 0)
			return -EBADMSG;
	}
	if (*at || numbers[1] <= c->last || numbers[2] != c->delivered + 1)
		return -EBADMSG;
	c->last = numbers[1];
	c->delivered = numbers[2];
	c->pending = numbers[4];
	*ret_sequence = numbers[1];
	*ret_ns = numbers[3];
	return 0;
}
