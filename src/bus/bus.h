/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The bus of the fleet: NATS with JetStream, by libnats. Messages are stored in streams that keep the last
 * message of each subject (docs/design/85). All functions can wait, but not longer than their time limit, and
 * any thread may call them. The broker can be hostile: sizes are bounded, and a reply that does not fit the
 * question is an error. The link is made again by itself when it breaks.
 */

#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FR_BUS_MESSAGE_MAX (64u << 10)
#define FR_BUS_SUBJECT_SIZE 256
#define FR_BUS_ANY UINT64_MAX /* fr_bus_store(): no condition */

struct fr_bus;

struct fr_bus_config {			    /* all pointers are borrowed during fr_bus_new() */
	const char *servers;		    /* "nats://a:4222,tls://b:4222" */
	const char *credentials;	    /* path of a NATS .creds file (JWT and seed); NULL: none */
	const char *ca, *certificate, *key; /* paths of PEM files for TLS; NULL: none */
	const char *user, *password;	    /* NULL: none */
	const char *name;  /* of this client, for the broker's own list: "flightrec-agent db-1" */
	const char *inbox; /* prefix of the inboxes: "_INBOX.db-1", so that a broker can permit each
			      client only its own; NULL: "_INBOX" */
	/* Called on a thread of the bus when the link breaks (false) or is there (true). It must not wait,
	   and not call the bus, whose work this thread does. May be NULL. */
	void (*on_link)(void *ctx, bool is_up);
	void *ctx;
};

struct fr_bus_message {
	char subject[FR_BUS_SUBJECT_SIZE];
	char *data; /* N bytes and a NUL */
	size_t n;
	uint64_t sequence; /* in the stream; 0: a bell */
	uint64_t time_ns;  /* when the broker stored it, since the epoch; 0: a bell */
};
void fr_bus_message_deinit(struct fr_bus_message *m);

/* Makes the bus, and tries to connect. If RETRY is true, a broker that cannot be reached is no error: the bus
   tries again in the background. If RETRY is false, waits for the link until TIMEOUT_NS. Returns 0; or, with
   a message in D: -EACCES if the broker refuses the credentials, -ECONNREFUSED, -ETIMEDOUT, -EPROTO if the
   server does not speak NATS, -EINVAL for a bad configuration. */
int fr_bus_new(const struct fr_bus_config *config, bool retry, uint64_t timeout_ns, struct fr_bus **ret,
	struct fr_diag *d);
struct fr_bus *fr_bus_free(struct fr_bus *b); /* NULL is allowed; returns NULL */
bool fr_bus_is_up(const struct fr_bus *b);
/* Writes why the link is down, or "" if it is up, into RET. */
void fr_bus_why_down(const struct fr_bus *b, char *ret, size_t size);

/* Subscribes to SUBJECT, which may have wildcards. ON_BELL is called on a thread of the bus, and must not
   wait. Its text is untrusted: read the stored message. The subscription survives a new link. Returns 0 or a
   negative errno with a message in D. */
int fr_bus_subscribe(struct fr_bus *b, const char *subject, void (*on_bell)(void *ctx, const char *subject),
	void *ctx, struct fr_diag *d);

/* Stores N bytes as the last message of SUBJECT in STREAM, and waits for the acknowledgement. If EXPECTED is
   not FR_BUS_ANY, stores only if the last message of the subject has this sequence (0: there is none).
   RET_SEQUENCE may be NULL. Returns 0; 1 if the condition does not hold; or a negative errno with a message
   in D: -ENOTCONN, -ETIMEDOUT (it may be stored nevertheless), -EACCES if the broker does not permit it,
   -ENOENT if there is no such stream, -ENOSPC if the stream is full, -EBADMSG for an acknowledgement that
   makes no sense. */
int fr_bus_store(struct fr_bus *b, const char *stream, const char *subject, const void *data, size_t n,
	uint64_t expected, uint64_t timeout_ns, uint64_t *ret_sequence, struct fr_diag *d);

/* Reads the last stored message of SUBJECT (no wildcards) by a direct get. RET is deinit by the caller.
   Returns 0; 1 if there is none; or a negative errno as above. */
int fr_bus_last(struct fr_bus *b, const char *stream, const char *subject, uint64_t timeout_ns,
	struct fr_bus_message *ret, struct fr_diag *d);

struct fr_bus_read {
	const char *stream, *subject; /* the subject may have wildcards */
	uint64_t since_ns;	      /* messages stored at or after this time; 0: all */
	uint64_t newest;	      /* only this number of newest sequences of the stream; 0: all */
	uint64_t timeout_ns;	      /* the limit without progress */
};
/* Reads stored messages in their order, until none is left. A message that is replaced during the read comes
   later, in its new version, so a subject can come twice, but is not missed. Passes each to ON_MESSAGE
   (borrowed), on the thread of the caller; it returns whether to go on. Returns 0 at the end; or a negative
   errno with a message in D. */
int fr_bus_read(struct fr_bus *b, const struct fr_bus_read *what,
	bool (*on_message)(void *ctx, const struct fr_bus_message *m), void *ctx, struct fr_diag *d);

struct fr_bus_stream {
	const char *name, *subject; /* "FLIGHTREC_INDEX", "flightrec.index.>" */
	const char *description;
	uint64_t max_age_ns; /* 0: for ever */
	uint64_t max_bytes;  /* 0: no limit */
	unsigned replicas;   /* 1, 3, 5 */
};
/* Creates the stream, with one message for each subject and direct gets, or changes its limits. Returns 0
   (*RET_DONE: "created", "changed", "unchanged"); or a negative errno with a message in D. */
int fr_bus_stream_ensure(struct fr_bus *b, const struct fr_bus_stream *s, uint64_t timeout_ns,
	const char **ret_done, struct fr_diag *d);
struct fr_bus_stream_info {
	uint64_t messages, bytes, max_age_ns, max_bytes;
};
/* Returns 0; -ENOENT if there is no such stream; or another negative errno. */
int fr_bus_stream_info(struct fr_bus *b, const char *stream, uint64_t timeout_ns,
	struct fr_bus_stream_info *ret, struct fr_diag *d);
/* Removes all messages of SUBJECT (wildcards are allowed). Returns 0 or a negative errno. */
int fr_bus_purge(
	struct fr_bus *b, const char *stream, const char *subject, uint64_t timeout_ns, struct fr_diag *d);
/* The round trip to the broker: PING and PONG. */
int fr_bus_round_trip(struct fr_bus *b, uint64_t timeout_ns, uint64_t *ret_ns, struct fr_diag *d);

struct fr_bus_stats {
	uint64_t links;			 /* how often a link was made */
	uint64_t stored, bells, refused; /* messages; refused: replies that were not accepted */
};
void fr_bus_stats(const struct fr_bus *b, struct fr_bus_stats *ret);
