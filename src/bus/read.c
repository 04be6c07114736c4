// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads a stream. The end is when the broker says that no message is pending. A message that is replaced
 * during the read comes later, in its new version, so no subject is missed. If others store faster than this
 * reads, the end is a bound on the number of messages.
 */
#include "bus/bus_private.h"

#include <errno.h>
#include <string.h>

#define BATCH_FIRST 256u
#define BATCH_MAX 4096u
#define BATCH_BYTES (8u << 20)
/* After a silence of this time, the number of pending messages is found again: nats-server 2.9 still counts
   some messages that were replaced or removed while they were pending. */
#define PROBE_NS (100 * FR_NSEC_PER_MSEC)
#define READ_MAX 10000000u /* a hostile broker could go on for ever */
#define SURPLUS 10000u	   /* messages that are stored during the read */

struct reading {
	struct fr_bus *bus;
	const struct fr_bus_read *what;
	bool (*on_message)(void *ctx, const struct fr_bus_message *m);
	void *ctx;
	struct bus_consumer consumer;
	uint64_t progress_ns; /* when the last message came */
	uint64_t bytes;
	uint64_t limit;	  /* of messages */
	uint64_t from;	  /* the first sequence; 0: see since_ns */
	uint64_t earlier; /* messages of the consumers before this one */
	unsigned left;	  /* messages that were asked for and did not come yet */
	bool has_ended;	  /* the broker ended a consumer */
	struct fr_diag *d;
};

/* Passes a message on. Returns 0 to go on; 1 at the end; or a negative errno. */
static int pass(struct reading *r, natsMsg *msg)
{
	int n = natsMsg_GetDataLength(msg);
	const char *subject = natsMsg_GetSubject(msg);
	struct fr_bus_message m = {0};
	bool go_on = true;

	if (bus_consumer_accept(&r->consumer, natsMsg_GetReply(msg), &m.sequence, &m.time_ns) < 0) {
		atomic_fetch_add(&r->bus->refused, 1);
		return 0;
	}
	r->progress_ns = fr_monotonic_ns();
	r->left -= r->left > 0;
	r->bytes += (uint64_t)n;
	if (n > (int)FR_BUS_MESSAGE_MAX || !bus_subject_is_valid(subject, false) ||
		!bus_subject_matches(r->what->subject, subject)) {
		atomic_fetch_add(&r->bus->refused, 1);
	} else if (m.time_ns >= r->what->since_ns) {
		snprintf(m.subject, sizeof(m.subject), "%s", subject);
		/* libnats ends the data with NUL. */
		m.data = (char *)(uintptr_t)natsMsg_GetData(msg);
		m.n = (size_t)n;
		go_on = r->on_message(r->ctx, &m);
	}
	return !go_on || !r->consumer.pending || r->earlier + r->consumer.delivered >= r->limit;
}

/* Goes on with a new consumer, whose number of pending messages is right. Returns 0; 1 if there are no more;
   or a negative errno. */
static int begin_again(struct reading *r)
{
	const uint64_t last = r->consumer.last;
	int result;

	r->earlier += r->consumer.delivered;
	if (last)
		r->from = last + 1;
	r->left = 0;
	bus_consumer_close(r->bus, &r->consumer);
	r->consumer = (struct bus_consumer){0};
	result = bus_consumer_open(r->bus, r->what, r->from, &r->consumer, r->d);
	r->consumer.last = last; /* no message comes twice */
	return result == 0 && !r->consumer.pending ? 1 : result;
}

static int late(struct reading *r)
{
	if (bus_consumer_is_refused(r->bus, &r->consumer))
		return fr_fail(r->d, -EACCES,
			"Look at the permissions of this user in the configuration of the broker.",
			"the broker does not permit this client to publish to %s", r->consumer.next);
	if (fr_monotonic_ns() - r->progress_ns < r->what->timeout_ns)
		return begin_again(r);
	return fr_fail(r->d, -ETIMEDOUT, "Try again, and look at the broker's log.",
		"the broker stopped within the read of %s, after %llu messages%s", r->what->stream,
		(unsigned long long)r->earlier + r->consumer.delivered,
		r->has_ended ? ", with status 409" : "");
}

/* The broker ended the consumer: it stops, or its cluster has a new leader. */
static int ended(struct reading *r)
{
	const struct timespec pause = {0, PROBE_NS};

	r->has_ended = true;
	nanosleep(&pause, NULL);
	return late(r);
}

/* The broker ends a request with a status. */
static int take_status(struct reading *r, natsMsg *msg)
{
	switch (bus_status(msg)) {
	case 404:
		return 1; /* no message is pending */
	case 409:
		return ended(r);
	case 408:
	case 100:
		return 0;
	default:
		return fr_fail(r->d, -EREMOTEIO, "Try again.",
			"the broker ended the read of %s with status %d", r->what->stream, bus_status(msg));
	}
}

static unsigned batch_size(const struct reading *r)
{
	uint64_t average =
		r->consumer.delivered ? r->bytes / r->consumer.delivered + 512 : BATCH_BYTES / BATCH_FIRST;

	return (unsigned)FR_MIN(FR_MAX(BATCH_BYTES / average, 64u), BATCH_MAX);
}

static int ask(struct reading *r)
{
	unsigned batch = batch_size(r);

	r->left += batch;
	return bus_consumer_ask(r->bus, &r->consumer, batch, r->d);
}

static int step(struct reading *r)
{
	uint64_t wait_ns = FR_MIN(PROBE_NS, r->what->timeout_ns);
	natsMsg *msg = NULL;
	natsStatus s;
	int result = r->left <= batch_size(r) / 4 ? ask(r) : 0;

	if (result < 0)
		return result;
	s = natsSubscription_NextMsg(&msg, r->consumer.sub, (int64_t)FR_MAX(wait_ns / FR_NSEC_PER_MSEC, 1u));
	if (s == NATS_TIMEOUT)
		return late(r);
	if (s != NATS_OK)
		return bus_fail_nats(r->d, s, "the link broke within the read of %s", r->what->stream);
	result = bus_header(msg, "Status") ? take_status(r, msg) : pass(r, msg);
	natsMsg_Destroy(msg);
	/* Messages that are not accepted are no progress. */
	if (result == 0 && fr_monotonic_ns() - r->progress_ns > r->what->timeout_ns)
		result = late(r);
	return result;
}

/* Returns the first of the newest sequences; 0: all. */
static int find_start(struct reading *r, uint64_t *ret)
{
	const cJSON *state;
	bool ok = true;
	uint64_t last;
	cJSON *info;
	int result;

	*ret = 0;
	if (!r->what->newest)
		return 0;
	info = bus_stream_get(r->bus, r->what->stream, r->what->timeout_ns, &result, r->d);
	if (!info)
		return result;
	state = cJSON_GetObjectItemCaseSensitive(info, "state");
	last = bus_json_u64(state, "last_seq", &ok);
	cJSON_Delete(info);
	if (!ok)
		return fr_fail(
			r->d, -EBADMSG, NULL, "the broker's state of %s makes no sense", r->what->stream);
	*ret = last > r->what->newest ? last - r->what->newest + 1 : 0;
	return 0;
}

int fr_bus_read(struct fr_bus *b, const struct fr_bus_read *what,
	bool (*on_message)(void *ctx, const struct fr_bus_message *m), void *ctx, struct fr_diag *d)
{
	struct reading r = {.bus = b, .what = what, .on_message = on_message, .ctx = ctx, .d = d};
	int result;

	if (!bus_name_is_valid(what->stream) || !bus_subject_is_valid(what->subject, true))
		return fr_fail(d, -EINVAL, NULL, "\"%.60s\" is no stream, or \"%.100s\" is no subject",
			what->stream, what->subject);
	result = find_start(&r, &r.from);
	if (result == 0)
		result = bus_consumer_open(b, what, r.from, &r.consumer, d);
	r.limit = FR_MIN(2 * r.consumer.pending + SURPLUS, READ_MAX);
	r.progress_ns = fr_monotonic_ns();
	if (result == 0 && !r.consumer.pending)
		result = 1;
	while (result == 0)
		result = step(&r);
	bus_consumer_close(b, &r.consumer);
	return FR_MIN(result, 0);
}
