/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Shared by the files of the server:
 *
 *   server.c      the listening socket: accepts a client, turns it away, pauses
 *   peer.c        credentials of a client, and the limits of its user
 *   connection.c  bytes from and to one client, its deadline
 *   call.c        one message: decode, check access, run its method, reply
 */

#include "control/server.h"
#include "control/wire.h"
#include "base/socket_file.h"

#include <sys/queue.h>

#define FR_SERVER_MAX_CONNECTIONS 64
#define FR_SERVER_RESERVED_FOR_ROOT 8 /* of these connections */
#define FR_SERVER_MAX_PER_USER 16     /* of these connections; root has no such limit */
#define FR_SERVER_MAX_USERS 256
/* The time of a client to send a whole message, or to read a part of a reply. */
#define FR_SERVER_DEADLINE_USEC (10 * 1000000ULL)
#define FR_SERVER_RATE 200		   /* messages a second of each user; also the burst */
#define FR_SERVER_MAX_BACKLOG (256u << 10) /* unsent bytes that forbid one more reply */

/* Reads pid, uid and gid of the client at FD. Returns 0 or a negative errno. */
int fr_peer_read(int fd, struct fr_peer *ret);
/* Reads the name of its process. Empty on failure. */
void fr_peer_read_comm(struct fr_peer *peer);
/* Returns the access of PEER: root and the user of the server may call all methods. A member of GROUP, at the
   time of its connect(), may call the methods of the group. */
enum fr_access fr_peer_access(int fd, const struct fr_peer *peer, gid_t group);

/* The data that all connections of one user share. It is freed when the user has no connection and the bucket
   is full, so that a new connection does not get a new burst. */
struct fr_user {
	LIST_ENTRY(fr_user) link;
	uid_t uid;
	size_t n_connections;
	double tokens; /* messages that may come now */
	uint64_t tokens_at_ns;
};

struct fr_connection {
	LIST_ENTRY(fr_connection) link;
	struct fr_server *server;
	int fd;
	struct fr_peer peer;
	struct fr_user *user;
	enum fr_access access;
	struct fr_wire_reader reader;
	struct fr_buf out;
	size_t n_sent;	      /* how many bytes of OUT are sent */
	struct fr_call *call; /* the running call; the next message waits for its end */
	bool has_called;      /* a whole message has come */
	bool eof;	      /* the client sends no more */
	bool is_dead;	      /* to be freed at the end of the event */
	bool is_working;      /* work_on() is running */
	bool is_throttled;    /* the user has no token; the timer REFILL continues */
	sd_event_source *io, *deadline, *refill;
};

/* A call. Its handler owns it until the last reply. */
struct fr_call {
	struct fr_connection *connection; /* NULL: the client has disconnected */
	struct fr_peer peer;
	bool more, oneway;
};

struct fr_server {
	sd_event *event;
	sd_event_source *io, *pause; /* PAUSE switches IO on again */
	struct fr_server_config config;
	struct fr_socket_file socket; /* without a path if CONFIG has a descriptor */
	gid_t group;		      /* (gid_t)-1: no group */
	char notice[256];
	LIST_HEAD(, fr_connection) connections;
	LIST_HEAD(, fr_user) users;
	size_t n_connections, n_users;
	uint64_t deadline_usec;
};

/* Counts one more connection of PEER's user. Returns 0 with *RET; -EDQUOT if the user or all users have too
   many connections; or -ENOMEM. */
int fr_user_add_connection(struct fr_server *s, const struct fr_peer *peer, struct fr_user **ret);
void fr_user_remove_connection(struct fr_user *u);
/* Takes the token for one message. Returns whether there was one. */
bool fr_user_take_token(struct fr_user *u);
void fr_users_free(struct fr_server *s);

/* Takes over FD and a counted connection of USER, also on failure. Returns 0 or a negative errno. */
int fr_connection_new(struct fr_server *s, int fd, const struct fr_peer *peer, struct fr_user *user);
/* Frees C. A call that still runs loses its connection. */
void fr_connection_free(struct fr_connection *c);
bool fr_connection_all_sent(const struct fr_connection *c);
/* Queues one message. Gives up a client that reads too slowly. */
void fr_connection_send(struct fr_connection *c, const cJSON *message);
/* Notes that the call of C has ended. The loop continues with the next message. */
void fr_connection_end_call(struct fr_connection *c);

/* Runs one message of C. Sets C->call until its last reply. */
void fr_call_run(struct fr_connection *c, const char *text, size_t len);
/* Ends the call of C, if any, with the error "Failed". The handler still owns the call. */
void fr_call_abandon(struct fr_connection *c, const struct fr_diag *d);
