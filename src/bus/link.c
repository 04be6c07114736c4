// SPDX-License-Identifier: GPL-2.0-or-later
/* The link thread: it connects, runs the event loop, destroys the link, and begins again after a pause. */
#include "bus/bus_private.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>

#define PAUSE_FIRST_MS 100u
#define PAUSE_MAX_MS 10000u
#define CONNECT_NS (6 * FR_NSEC_PER_SEC) /* more than the limit of libnats for what it can limit */

void bus_wake(struct fr_bus *b)
{
	eventfd_write(b->wake_fd, 1);
}

natsConnection *bus_link_get(struct fr_bus *b, struct fr_diag *d)
{
	natsConnection *nc = NULL;

	fr_lock(&b->lock);
	if (b->is_up) {
		nc = b->nc;
		b->users++;
	} else {
		fr_fail(d, -ENOTCONN, NULL, "there is no link to the broker: %s", b->why);
	}
	fr_unlock(&b->lock);
	return nc;
}

void bus_link_put(struct fr_bus *b)
{
	fr_lock(&b->lock);
	if (--b->users == 0)
		fr_cond_broadcast(&b->cond);
	fr_unlock(&b->lock);
}

static void on_bell(natsConnection *nc, natsSubscription *sub, natsMsg *msg, void *arg)
{
	struct bus_subscription *s = arg;
	const char *subject = natsMsg_GetSubject(msg);

	if (bus_subject_is_valid(subject, false) && bus_subject_matches(s->subject, subject)) {
		atomic_fetch_add(&s->bus->bells, 1);
		s->on_bell(s->ctx, subject);
	} else {
		atomic_fetch_add(&s->bus->refused, 1);
	}
	natsMsg_Destroy(msg);
}

static void on_complete(void *arg)
{
	struct fr_bus *b = arg;

	fr_lock(&b->lock);
	b->callbacks--;
	fr_cond_broadcast(&b->cond);
	fr_unlock(&b->lock);
}

static void on_closed(natsConnection *nc, void *arg)
{
	on_complete(arg);
}

static int subscribe(struct fr_bus *b, natsSubscription **ret, natsConnection *nc, const char *subject,
	natsMsgHandler handler, void *arg, int limit) FR_REQUIRES(b->lock)
{
	natsStatus s = natsConnection_Subscribe(ret, nc, subject, handler, arg);

	if (s != NATS_OK)
		return bus_errno_of(s);
	s = natsSubscription_SetOnCompleteCB(*ret, on_complete, b);
	if (s == NATS_OK)
		b->callbacks++;
	if (s == NATS_OK)
		s = natsSubscription_SetPendingLimits(*ret, limit, 8 << 20);
	return bus_errno_of(s);
}

int bus_subscribe_now(struct fr_bus *b, struct bus_subscription *s)
{
	/* More bells than that are no use: the reader looks into the stream. */
	return subscribe(b, &s->sub, b->nc, s->subject, on_bell, s, 8192);
}

static int subscribe_all(struct fr_bus *b, natsConnection *nc) FR_REQUIRES(b->lock)
{
	char wildcard[FR_BUS_INBOX_SIZE + 2], text[33];
	int r = bus_random_text(text, 32);

	if (r < 0)
		return r;
	snprintf(b->inbox, sizeof(b->inbox), "%s.%s", b->inbox_prefix, text);
	snprintf(wildcard, sizeof(wildcard), "%s.*", b->inbox);
	r = subscribe(b, &b->mux, nc, wildcard, bus_on_reply, b, 1024);
	for (size_t i = 0; r == 0 && i < b->n_subscriptions; i++)
		r = bus_subscribe_now(b, b->subscriptions[i]);
	return r;
}

static void tell(struct fr_bus *b, bool is_up)
{
	if (b->on_link)
		b->on_link(b->ctx, is_up);
}

static int link_is_up(struct fr_bus *b, natsConnection *nc)
{
	int r;

	fr_lock(&b->lock);
	b->nc = nc;
	b->callbacks++; /* on_closed() */
	b->inbox_refused[0] = '\0';
	r = subscribe_all(b, nc);
	b->is_up = r == 0;
	if (r == 0) {
		b->retry = true;
		b->why[0] = '\0';
		b->why_code = 0;
		atomic_fetch_add(&b->links, 1);
	}
	fr_cond_broadcast(&b->cond);
	fr_unlock(&b->lock);
	if (r == 0)
		tell(b, true);
	return r;
}

static void note_down(struct fr_bus *b, int code, const char *server, const char *why)
{
	char host[256];
	int port = bus_server_address(server, host, sizeof(host)); /* without a password */

	fr_lock(&b->lock);
	b->is_up = false;
	b->why_code = code;
	snprintf(b->why, sizeof(b->why), "%.100s:%d: %.250s", host, port, why);
	fr_unlock(&b->lock);
}

/* Waits until no other thread uses the connection, and destroys it. */
static void link_end(struct fr_bus *b, natsConnection *nc, int code, const char *server, const char *why)
{
	bool was_up;

	fr_lock(&b->lock);
	was_up = b->is_up && !b->stopping; /* fr_bus_free() is no break of the link */
	fr_unlock(&b->lock);
	note_down(b, code, server, why);
	fr_lock(&b->lock);
	bus_requests_break(b);
	fr_unlock(&b->lock);
	natsConnection_Close(nc); /* ends the waits of other threads, e.g. for a PONG */
	fr_lock(&b->lock);
	/* No thread of libnats runs a callback of this link after that. */
	while (b->users || b->callbacks)
		fr_cond_wait(&b->cond, &b->lock);
	natsSubscription_Destroy(TAKE_PTR(b->mux));
	for (size_t i = 0; i < b->n_subscriptions; i++)
		natsSubscription_Destroy(TAKE_PTR(b->subscriptions[i]->sub));
	b->nc = NULL;
	fr_cond_broadcast(&b->cond);
	fr_unlock(&b->lock);
	natsConnection_Destroy(nc);
	b->fd = -1;
	if (was_up)
		tell(b, false);
}

static int connect_errno(natsStatus s, uint64_t took_ns)
{
	if (s == NATS_NO_SERVER && took_ns > 3 * FR_NSEC_PER_SEC)
		return -ETIMEDOUT;
	if (s == NATS_CONNECTION_CLOSED || s == NATS_IO_ERROR)
		return -EPROTO;
	return bus_errno_of(s);
}

static void explain_connect(natsStatus s, int code, bool has_ended, char *ret, size_t size)
{
	const char *text = nats_GetLastError(NULL);
	char shown[200] = "";

	if (text)
		bus_text(shown, sizeof(shown), text, strnlen(text, sizeof(shown)));
	if (has_ended)
		snprintf(ret, size, "the server accepts the connection, but does not answer as a broker");
	else if (s == NATS_CONNECTION_CLOSED || s == NATS_IO_ERROR)
		snprintf(ret, size, "the server closed the connection before it accepted the client (%s)",
			shown);
	else if (code == -EACCES)
		snprintf(ret, size, "the broker refuses the credentials: %s", shown);
	else if (s == NATS_NO_SERVER)
		snprintf(ret, size, "%s",
			code == -ETIMEDOUT ? "no answer to the connect" : "no broker listens there");
	else if (code == -EPROTO)
		snprintf(ret, size, "the server does not speak NATS as expected: %s", shown);
	else
		snprintf(ret, size, "%s", *shown ? shown : natsStatus_GetText(s));
}

static natsConnection *connect_to(struct fr_bus *b, const char *server)
{
	struct fr_diag d = {0};
	natsOptions *options = NULL;
	natsConnection *nc = NULL;
	uint64_t begin_ns = fr_monotonic_ns(), until_ns = begin_ns + CONNECT_NS;
	char host[256], why[FR_BUS_WHY_SIZE];
	bool has_ended;
	natsStatus s;
	int r = bus_options(b, server, &options, &d);

	if (r < 0) {
		note_down(b, r, server, d.what);
		return NULL;
	}
	if (!b->retry)
		until_ns = FR_MIN(until_ns, b->until_ns);
	atomic_store(&b->wants_write, false);
	bus_guard_arm(b, -1, bus_server_address(server, host, sizeof(host)), until_ns);
	natsOptions_SetClosedCB(options, on_closed, b);
	s = natsConnection_Connect(&nc, options);
	has_ended = bus_guard_disarm(b);
	natsOptions_Destroy(options);
	if (s == NATS_OK)
		return nc;
	r = has_ended ? -ETIMEDOUT : connect_errno(s, fr_monotonic_ns() - begin_ns);
	explain_connect(s, r, has_ended, why, sizeof(why));
	note_down(b, r, server, why);
	return NULL;
}

/* Runs a link to SERVER. Returns whether there was one, for longer than a moment. */
static bool run_link(struct fr_bus *b, const char *server)
{
	natsConnection *nc = connect_to(b, server);
	char why[FR_BUS_WHY_SIZE] = "the broker closed the link";
	uint64_t begin_ns = fr_monotonic_ns();
	int r;

	if (!nc)
		return false;
	r = link_is_up(b, nc);
	if (r == 0)
		r = bus_events_run(b, nc, why, sizeof(why));
	link_end(b, nc, r, server, why);
	return fr_monotonic_ns() - begin_ns > 5 * FR_NSEC_PER_SEC;
}

/* Waits for a random part of a pause that doubles with each failure: a thousand agents must not come back at
   the same moment. Returns false if the bus stops. */
static bool pause_link(struct fr_bus *b, unsigned failures)
{
	unsigned limit_ms = FR_MIN(PAUSE_FIRST_MS << FR_MIN(failures, 7u), PAUSE_MAX_MS), random = 0;
	uint64_t until_ns;
	bool go_on;

	(void)!getrandom(&random, sizeof(random), 0);
	until_ns = fr_monotonic_ns() + (limit_ms / 4 + random % (limit_ms * 3 / 4)) * FR_NSEC_PER_MSEC;
	fr_lock(&b->lock);
	while (!b->stopping && fr_cond_wait_until(&b->cond, &b->lock, until_ns))
		;
	go_on = !b->stopping;
	fr_unlock(&b->lock);
	return go_on;
}

/* Returns whether the bus may try again. */
static bool note_round(struct fr_bus *b)
{
	bool go_on;

	fr_lock(&b->lock);
	b->has_tried = true;
	go_on = !b->stopping && b->retry;
	fr_cond_broadcast(&b->cond);
	fr_unlock(&b->lock);
	return go_on;
}

static bool is_stopping(struct fr_bus *b)
{
	bool stopping;

	fr_lock(&b->lock);
	stopping = b->stopping;
	fr_unlock(&b->lock);
	return stopping;
}

void *bus_link_main(void *arg)
{
	struct fr_bus *b = arg;
	unsigned failures = 0, first = 0;

	(void)!getrandom(&first, sizeof(first), 0);
	do {
		bool had_link = false;

		for (size_t i = 0; i < b->n_servers && !had_link && !is_stopping(b); i++)
			had_link = run_link(b, b->servers[(first + i) % b->n_servers]);
		failures = had_link ? 0 : failures + 1;
		first++;
	} while (note_round(b) && pause_link(b, failures));
	nats_ReleaseThreadMemory();
	return NULL;
}
