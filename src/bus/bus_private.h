/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The inside of the bus.
 *
 * One thread, the link thread, makes the link, reads and writes its socket, and closes it (link.c, events.c).
 * libnats 3.4 can make a link again by itself, but it gives up for ever after some bad greetings, so the bus
 * does not use that. A second thread, the guard, ends waits of libnats that have no limit (guard.c).
 * Callbacks of libnats run on threads of libnats.
 */

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/lock.h"
#include "bus/bus.h"

#include <cjson/cJSON.h>
#include <nats/nats.h>
#include <pthread.h>
#include <stdatomic.h>

#define FR_BUS_SERVERS_MAX 16u
#define FR_BUS_SUBSCRIPTIONS_MAX 64u
#define FR_BUS_INBOX_SIZE 320
#define FR_BUS_WHY_SIZE 384
#define FR_BUS_READ_SIZE (64u << 10)	 /* bytes that libnats reads at once; more than one record of TLS */
#define FR_BUS_UNFINISHED_MAX (4u << 20) /* bytes that a broker can send without finishing a message */
#define FR_BUS_UNSENT_MAX (4u << 20)	 /* bytes that wait for a broker that does not read */

struct bus_subscription {
	char subject[FR_BUS_SUBJECT_SIZE];
	void (*on_bell)(void *ctx, const char *subject);
	void *ctx;
	struct fr_bus *bus;
	natsSubscription *sub; /* of the present link; NULL: none */
};

/* A request that waits for its reply. It is on the stack of the caller, and in the list of the bus. */
struct bus_request {
	struct bus_request *next;
	const char *subject; /* to which it was sent */
	char inbox[FR_BUS_INBOX_SIZE];
	natsMsg *reply;
	bool refused, broken; /* the broker does not permit it; the link broke */
};

/* The files of the process that were open before a connect of libnats, and when to end the connect. */
struct bus_guard {
	pthread_t thread;
	bool is_started;
	uint64_t until_ns;		/* 0: nothing to end */
	bool has_ended;			/* it ended the present wait */
	int fd;				/* the socket of the link; -1: it is not known yet */
	int port;			/* of the server to which libnats connects */
	unsigned char open_before[512]; /* one bit for each descriptor below 4096 */
};

struct fr_bus {
	char *servers[FR_BUS_SERVERS_MAX];
	size_t n_servers;
	char *credentials, *ca, *certificate, *key, *user, *password, *name, *inbox_prefix;
	void (*on_link)(void *ctx, bool is_up);
	void *ctx;
	bool retry;
	uint64_t until_ns; /* of the first connect, if the bus does not try again */

	pthread_t thread;
	bool is_started;
	int wake_fd; /* an eventfd: the link thread looks again */
	atomic_bool wants_write;
	int fd; /* the socket, while libnats is attached to it; link thread only */
	/* The link thread holds it while libnats reads messages. libnats 3.4 uses the subscription of a
	   message also after another thread has destroyed it, so that thread must take this lock. */
	struct fr_lock reading;

	struct fr_lock lock; /* nobody takes "reading" while it holds this one */
	struct fr_cond cond; /* any change below */
	bool stopping;
	natsConnection *nc; /* NULL: no link */
	unsigned users;	    /* threads that use nc */
	unsigned callbacks; /* of libnats that can still come for this link */
	bool is_up;
	bool has_tried;			     /* all servers once */
	int why_code;			     /* why the link is down */
	char why[FR_BUS_WHY_SIZE];	     /* the same, for a person */
	char inbox[FR_BUS_INBOX_SIZE];	     /* of this link: PREFIX.RANDOM */
	char inbox_refused[FR_BUS_WHY_SIZE]; /* the broker does not permit the inbox */
	natsSubscription *mux;		     /* receives all replies: INBOX.* */
	struct bus_request *requests;
	struct bus_subscription *subscriptions[FR_BUS_SUBSCRIPTIONS_MAX];
	size_t n_subscriptions;
	struct bus_guard guard;

	atomic_uint_fast64_t links, stored, bells, refused;
};

/* config.c */
int bus_config_copy(struct fr_bus *b, const struct fr_bus_config *config, struct fr_diag *d);
void bus_config_deinit(struct fr_bus *b);
/* Makes the options for a connect to SERVER. The caller destroys *RET. */
int bus_options(struct fr_bus *b, const char *server, natsOptions **ret, struct fr_diag *d);
/* Writes the host of "tls://user:password@host:port" into RET. Returns the port. */
int bus_server_address(const char *server, char *ret_host, size_t size);

/* link.c */
void *bus_link_main(void *arg);
/* Returns the connection, or NULL with a message in D if the link is down. The caller gives it back with
   bus_link_put(), and does not keep it for longer than one call. */
natsConnection *bus_link_get(struct fr_bus *b, struct fr_diag *d);
void bus_link_put(struct fr_bus *b);
void bus_wake(struct fr_bus *b);
int bus_subscribe_now(struct fr_bus *b, struct bus_subscription *s) FR_REQUIRES(b->lock);

/* events.c: the event loop of libnats */
natsStatus bus_events_set(struct fr_bus *b, natsOptions *options);
/* Reads and writes until the link breaks or the bus stops. Writes the reason into WHY. */
int bus_events_run(struct fr_bus *b, natsConnection *nc, char *why, size_t size);

/* guard.c */
int bus_guard_start(struct fr_bus *b);
void bus_guard_stop(struct fr_bus *b);
/* The link thread calls this function before something that may wait for ever. FD is the socket; -1: a new
   socket, which connects to PORT. */
void bus_guard_arm(struct fr_bus *b, int fd, int port, uint64_t until_ns);
/* Returns whether the guard ended the wait. */
bool bus_guard_disarm(struct fr_bus *b);

/* request.c */
struct bus_header {
	const char *name, *value;
};
/* Publishes N bytes to SUBJECT, and waits for the reply, which the caller destroys. HEADERS ends with a name
   of NULL, or is NULL. Returns 0 or a negative errno with a message in D. */
int bus_request(struct fr_bus *b, const char *subject, const struct bus_header *headers, const void *data,
	size_t n, uint64_t timeout_ns, natsMsg **ret, struct fr_diag *d);
void bus_on_reply(natsConnection *nc, natsSubscription *sub, natsMsg *msg, void *arg);
void bus_on_error(natsConnection *nc, natsSubscription *sub, natsStatus status, void *arg);
/* The list of requests. Q stays in it until bus_request_remove(). */
void bus_request_add(struct fr_bus *b, struct bus_request *q);
void bus_request_remove(struct fr_bus *b, struct bus_request *q);
void bus_requests_break(struct fr_bus *b)
	FR_REQUIRES(b->lock); /* the link broke; the caller holds the lock */
int bus_random_text(char *ret, size_t digits);

/* A request to the API of JetStream, with JSON on both sides. Returns the reply, without an error in it;
   or NULL with a message in D. RET_CODE: 0 or a negative errno. */
cJSON *bus_api(struct fr_bus *b, const char *subject, cJSON *body, uint64_t timeout_ns, int *ret_code,
	struct fr_diag *d);

/* errors.c */
int bus_errno_of(natsStatus status);
int bus_fail_nats(struct fr_diag *d, natsStatus status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Fails with the "error" of a reply of JetStream to a request to SUBJECT. */
int bus_fail_api(struct fr_diag *d, const cJSON *error, const char *subject);
int bus_api_error_code(const cJSON *error);
/* Copies untrusted text, with '?' for each byte that is not printable. */
void bus_text(char *ret, size_t size, const char *text, size_t n);

/* reply.c */
int bus_parse_number(const char *text, uint64_t *ret);
int bus_parse_time(const char *text, uint64_t *ret_ns); /* RFC 3339, up to 9 digits of a second */
/* Returns the value of a header; NULL: there is none, or it is there more than once. */
const char *bus_header(natsMsg *msg, const char *name);
int bus_status(natsMsg *msg); /* 0: none */
bool bus_subject_is_valid(const char *subject, bool wildcards);
bool bus_name_is_valid(const char *stream);
bool bus_subject_matches(const char *pattern, const char *subject);
uint64_t bus_json_u64(const cJSON *object, const char *name, bool *ok);

/* consumer.c */
struct bus_consumer {
	const char *stream;
	char name[24], inbox[FR_BUS_INBOX_SIZE];
	natsSubscription *sub;
	char next[128];		  /* the subject that asks for a batch */
	struct bus_request batch; /* in the list of the bus, so that a refusal is seen */
	uint64_t pending, delivered, last;
};
int bus_consumer_open(struct fr_bus *b, const struct fr_bus_read *what, uint64_t from, struct bus_consumer *c,
	struct fr_diag *d);
void bus_consumer_close(struct fr_bus *b, struct bus_consumer *c);
/* Returns whether the broker refused to send a batch. */
bool bus_consumer_is_refused(struct fr_bus *b, struct bus_consumer *c);
int bus_consumer_ask(struct fr_bus *b, struct bus_consumer *c, unsigned batch, struct fr_diag *d);
/* Reads "$JS.ACK.STREAM.NAME.…" of a message of the consumer. Returns 0; or -EBADMSG if the message is not
   the next one of this consumer. */
int bus_consumer_accept(struct bus_consumer *c, const char *reply, uint64_t *ret_sequence, uint64_t *ret_ns);

/* streams.c */
cJSON *bus_stream_get(
	struct fr_bus *b, const char *stream, uint64_t timeout_ns, int *ret_code, struct fr_diag *d);
