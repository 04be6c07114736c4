/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Declarations that the files of the server share:
 *
 *   server.c      the listening socket: accepts or refuses a client, pauses
 *   peer.c        credentials of a client, and the limits of its user
 *   connection.c  bytes from and to one client, its deadline
 *   call.c        one message: decodes it, checks access, runs its method, replies
 */

#include "control/server.h"
#include "control/wire.h"
#include "base/socket_file.h"

#include <sys/queue.h>

#define FR_SERVER_MAX_CONNECTIONS 64
#define FR_SERVER_RESERVED_FOR_ROOT 8 /* out of FR_SERVER_MAX_CONNECTIONS */
#define FR_SERVER_MAX_PER_USER 16     /* connections of one user; root has no such limit */
#define FR_SERVER_MAX_USERS 256
/* The time limit for a client to send a whole message, and to read the next part of a reply. */
#define FR_SERVER_DEADLINE_USEC (10 * 1000000ULL)
#define FR_SERVER_RATE 200		   /* messages a second of each user; see struct fr_user */
#define FR_SERVER_MAX_BACKLOG (256u << 10) /* limit of unsent bytes: see fr_connection_send() */

/* Reads pid, uid and gid of the client at FD. Returns 0 or a negative errno. */
int fr_peer_read(int fd, struct fr_peer *ret);
/* Reads the name of the client's process into peer->comm. If that fails, the name is empty. */
void fr_peer_read_comm(struct fr_peer *peer);
/* Returns the access of PEER, the client at FD. Root and the user of the server get FR_ACCESS_ROOT. A user
   whose process was a member of GROUP at its connect() gets FR_ACCESS_GROUP. */
enum fr_access fr_peer_access(int fd, const struct fr_peer *peer, gid_t group);

/* The data that all connections of one user share. Each message takes a token. A user gets FR_SERVER_RATE
   tokens a second, and has at most FR_SERVER_RATE tokens. The data is freed only when the user has no
   connection and has FR_SERVER_RATE tokens. Otherwise, a user could close all connections, connect again and
   so get new tokens. */
struct fr_user {
	LIST_ENTRY(fr_user) link;
	uid_t uid;
	size_t n_connections;
	double tokens; /* how many messages of the user can be handled now */
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
	size_t n_sent;	      /* how many bytes of `out` are sent */
	struct fr_call *call; /* the running call, or NULL; the next message waits for the end of this call */
	bool has_called;      /* a whole message has come */
	bool eof;	      /* the client will send nothing more */
	bool is_dead;	      /* work_on() will free it */
	bool is_working;      /* work_on() is running */
	bool is_throttled;    /* the user has no token; the timer `refill` ends this */
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
	sd_event_source *io, *pause; /* the timer `pause` switches `io` on again */
	struct fr_server_config config;
	struct fr_socket_file socket; /* `socket.path` is NULL if `config` has a descriptor */
	gid_t group;		      /* (gid_t)-1: no group */
	char notice[256];
	LIST_HEAD(, fr_connection) connections;
	LIST_HEAD(, fr_user) users;
	size_t n_connections, n_users;
	uint64_t deadline_usec;
};

/* Counts one more connection of the user of PEER. Returns 0 and sets *RET; -EDQUOT if this user, or all users
   together, have too many connections; or -ENOMEM, also if there are already FR_SERVER_MAX_USERS users. */
int fr_user_add_connection(struct fr_server *s, const struct fr_peer *peer, struct fr_user **ret);
void fr_user_remove_connection(struct fr_user *u);
/* Takes a token for one message. Returns whether the user had a token. */
bool fr_user_take_token(struct fr_user *u);
void fr_users_free(struct fr_server *s);

/* Creates a connection for FD, and takes over FD. The caller has added the connection to the count of USER.
   Returns 0 or a negative errno. On failure, closes FD, and subtracts the connection from the count of USER
   again. */
int fr_connection_new(struct fr_server *s, int fd, const struct fr_peer *peer, struct fr_user *user);
/* Frees C. If a call of C still runs, its `connection` becomes NULL. */
void fr_connection_free(struct fr_connection *c);
bool fr_connection_all_sent(const struct fr_connection *c);
/* Queues one message. If more than FR_SERVER_MAX_BACKLOG bytes are unsent, if the message is longer than
   FR_WIRE_MAX_REPLY, or if there is no memory, the connection is closed instead. */
void fr_connection_send(struct fr_connection *c, const cJSON *message);
/* Tells C that its call has ended, so that the loop handles the next message of C. */
void fr_connection_end_call(struct fr_connection *c);

/* Handles one message of C: TEXT has LEN bytes and a NUL. If the message is valid, the function runs its
   call. C->call is this call until the last reply to it. If the message is not valid, the client gets an
   error, and the connection is closed. */
void fr_call_run(struct fr_connection *c, const char *text, size_t len);
/* If C has a call, sends the error "Failed" for it. The handler still owns the call. */
void fr_call_abandon(struct fr_connection *c, const struct fr_diag *d);
