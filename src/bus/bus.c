// SPDX-License-Identifier: GPL-2.0-or-later
#include "bus/bus_private.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>

static int bus_start(struct fr_bus *b, struct fr_diag *d)
{
	int r;

	if (nats_Open(-1) != NATS_OK)
		return fr_fail(d, -ENOMEM, NULL, "cannot start the NATS library");
	b->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (b->wake_fd < 0)
		return fr_fail_errno(d, -errno, NULL, "cannot make an eventfd");
	r = bus_guard_start(b);
	if (r == 0) {
		r = -pthread_create(&b->thread, NULL, bus_link_main, b);
		b->is_started = r == 0;
	}
	return r < 0 ? fr_fail_errno(d, r, NULL, "cannot start the threads of the bus") : 0;
}

static const char *hint_for_link(int code)
{
	switch (code) {
	case -EACCES:
		return "Look at Credentials= and at the users of the broker.";
	case -ECONNREFUSED:
		return "Is nats-server running there? Look at Servers= and at the name of the host.";
	case -ETIMEDOUT:
		return "Is the broker reachable, and is the port that of NATS clients?";
	case -EPROTO:
		return "Look at the scheme in Servers= (nats or tls), at CACertificate= and at the port.";
	default:
		return NULL;
	}
}

static int wait_for_link(struct fr_bus *b, struct fr_diag *d)
{
	/* The guard ends the connect at until_ns; then the link thread notes the reason. */
	uint64_t until_ns = b->until_ns + FR_NSEC_PER_SEC;
	int r = 0;

	fr_lock(&b->lock);
	while (!b->is_up && !b->has_tried && fr_cond_wait_until(&b->cond, &b->lock, until_ns))
		;
	if (!b->is_up) {
		r = b->why_code ? b->why_code : -ETIMEDOUT;
		r = r == -ENOTCONN ? -EPROTO : r;
		fr_fail(d, r, hint_for_link(r), "cannot connect to the broker %s",
			*b->why ? b->why : "in time");
	}
	fr_unlock(&b->lock);
	return r;
}

int fr_bus_new(const struct fr_bus_config *config, bool retry, uint64_t timeout_ns, struct fr_bus **ret,
	struct fr_diag *d)
{
	struct fr_bus *b = calloc(1, sizeof(*b));
	int r;

	if (!b)
		return fr_fail_errno(d, -ENOMEM, NULL, "cannot make the bus");
	fr_lock_init(&b->reading);
	fr_lock_init(&b->lock);
	fr_cond_init(&b->cond);
	b->wake_fd = -1;
	b->fd = -1;
	b->retry = retry;
	b->until_ns = fr_monotonic_ns() + timeout_ns;
	snprintf(b->why, sizeof(b->why), "the first connect is not yet done");
	r = bus_config_copy(b, config, d);
	if (r == 0)
		r = bus_start(b, d);
	if (r == 0 && !retry)
		r = wait_for_link(b, d);
	if (r < 0) {
		fr_bus_free(b);
		return r;
	}
	*ret = b;
	return 0;
}

struct fr_bus *fr_bus_free(struct fr_bus *b)
{
	if (!b)
		return NULL;
	fr_lock(&b->lock);
	b->stopping = true;
	fr_cond_broadcast(&b->cond);
	fr_unlock(&b->lock);
	if (b->is_started) {
		bus_wake(b);
		pthread_join(b->thread, NULL);
	}
	bus_guard_stop(b);
	if (b->wake_fd >= 0)
		close(b->wake_fd);
	for (size_t i = 0; i < b->n_subscriptions; i++)
		free(b->subscriptions[i]);
	bus_config_deinit(b);
	fr_cond_deinit(&b->cond);
	fr_lock_deinit(&b->lock);
	fr_lock_deinit(&b->reading);
	free(b);
	return NULL;
}

/* The lock is not a part of what callers see as constant. */
static struct fr_bus *mutable(const struct fr_bus *b)
{
	return (struct fr_bus *)b;
}

bool fr_bus_is_up(const struct fr_bus *b)
{
	bool is_up;

	fr_lock(&mutable(b)->lock);
	is_up = b->is_up;
	fr_unlock(&mutable(b)->lock);
	return is_up;
}

void fr_bus_why_down(const struct fr_bus *b, char *ret, size_t size)
{
	fr_lock(&mutable(b)->lock);
	snprintf(ret, size, "%s", b->why);
	fr_unlock(&mutable(b)->lock);
}

/* Asks the broker whether it permits the subscription: its error comes before the PONG. */
static int check_subscription(struct fr_bus *b, natsConnection *nc, const char *subject, struct fr_diag *d)
{
	const char *text = NULL;
	char quoted[FR_BUS_SUBJECT_SIZE + 2];

	natsConnection_FlushTimeout(nc, 2000);
	snprintf(quoted, sizeof(quoted), "\"%s\"", subject);
	if (natsConnection_GetLastError(nc, &text) != NATS_NOT_PERMITTED || !text)
		return 0;
	/* libnats removes the last quote. */
	quoted[strlen(quoted) - 1] = '\0';
	if (!strcasestr(text, "Subscription to") || !strcasestr(text, quoted))
		return 0;
	return fr_fail(d, -EACCES, "Look at the permissions of this user in the configuration of the broker.",
		"the broker does not permit this client to subscribe to %s", subject);
}

int fr_bus_subscribe(struct fr_bus *b, const char *subject, void (*on_bell)(void *ctx, const char *subject),
	void *ctx, struct fr_diag *d)
{
	struct bus_subscription *s;
	natsConnection *nc = NULL;
	int r = 0;

	if (!bus_subject_is_valid(subject, true))
		return fr_fail(d, -EINVAL, NULL, "\"%.100s\" is no subject", subject);
	s = calloc(1, sizeof(*s));
	if (!s)
		return fr_fail_errno(d, -ENOMEM, NULL, "cannot subscribe to %s", subject);
	snprintf(s->subject, sizeof(s->subject), "%s", subject);
	s->on_bell = on_bell;
	s->ctx = ctx;
	s->bus = b;
	fr_lock(&b->lock);
	if (b->n_subscriptions == FR_BUS_SUBSCRIPTIONS_MAX) {
		free(s);
		fr_unlock(&b->lock);
		return fr_fail(
			d, -ENOSPC, NULL, "there are more than %u subscriptions", FR_BUS_SUBSCRIPTIONS_MAX);
	}
	b->subscriptions[b->n_subscriptions++] = s;
	if (b->is_up) {
		nc = b->nc;
		b->users++;
		r = bus_subscribe_now(b, s);
	}
	fr_unlock(&b->lock);
	if (!nc)
		return 0; /* the next link subscribes */
	if (r == 0)
		r = check_subscription(b, nc, subject, d);
	bus_link_put(b);
	return r == -EACCES ? r : 0; /* another error breaks the link, and the next link subscribes */
}

int fr_bus_round_trip(struct fr_bus *b, uint64_t timeout_ns, uint64_t *ret_ns, struct fr_diag *d)
{
	natsConnection *nc = bus_link_get(b, d);
	uint64_t begin_ns = fr_monotonic_ns();
	natsStatus s;

	if (!nc)
		return -ENOTCONN;
	s = natsConnection_FlushTimeout(nc, (int64_t)FR_MAX(timeout_ns / FR_NSEC_PER_MSEC, 1u));
	bus_link_put(b);
	if (s != NATS_OK)
		return bus_fail_nats(d, s, "the broker did not answer a PING");
	*ret_ns = fr_monotonic_ns() - begin_ns;
	return 0;
}

void fr_bus_stats(const struct fr_bus *b, struct fr_bus_stats *ret)
{
	ret->links = atomic_load(&b->links);
	ret->stored = atomic_load(&b->stored);
	ret->bells = atomic_load(&b->bells);
	ret->refused = atomic_load(&b->refused);
}
