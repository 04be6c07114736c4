/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The parts of the server among themselves: listen.c, peer.c, users.c, connection.c, server.c. */

#include "control/server.h"
#include "control/wire.h"
#include "base/socket_file.h"

#include <sys/queue.h>

#define FR_SERVER_MAX_CONNECTIONS 64
#define FR_SERVER_KEPT_FOR_ROOT 8 /* of them */
#define FR_SERVER_MAX_PER_USER 16 /* of them; root's are not counted */
#define FR_SERVER_MAX_USERS 256
#define FR_SERVER_DEADLINE_USEC (10 * 1000000ULL) /* to send a whole message, to read some of a reply */
#define FR_SERVER_RATE 200			  /* messages a second and user, and the burst */
#define FR_SERVER_ACCEPTS 64			  /* at a time: who is turned away costs little */
#define FR_SERVER_PAUSE_USEC (100 * 1000ULL)	  /* no accept for so long, where no descriptor was left */
#define FR_SERVER_MAX_BACKLOG (256u << 10)	  /* bytes that wait when one more reply is to be added */

/* The listening socket and who made it. */
struct fr_listener {
	struct fr_socket_file file; /* no path: it was handed to us, and its file is not ours to remove */
	gid_t group;		    /* (gid_t)-1: there is no such group here */
	char notice[256];
};

/* Make CONFIG's socket, or take its fd. 0 or a negative errno with D. */
int fr_listener_open(const struct fr_server_config *config, struct fr_listener *ret, struct fr_diag *d);
void fr_listener_close(struct fr_listener *l); /* removes the socket where it is still the one we made */

/* Who is at the other end of FD, but for its name. 0 or a negative errno. */
int fr_peer_read(int fd, struct fr_peer *ret);
void fr_peer_read_comm(struct fr_peer *peer);
/* What it may: root and the server's own user all, members of GROUP as of the peer's connect() what is for
 * the group. */
enum fr_access fr_peer_access(int fd, const struct fr_peer *peer, gid_t group);

/* What all connections of one user share. It outlives the last of them for as long as its bucket is not full,
   so that a new connection is no new burst. */
struct fr_user {
	LIST_ENTRY(fr_user) link;
	uid_t uid;
	size_t n_connections;
	double tokens; /* of the rate limit */
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
	size_t sent;	      /* of out */
	struct fr_call *call; /* runs now; the next message waits for its end */
	bool greeted;	      /* one whole message has come */
	bool eof;	      /* the peer sends no more */
	bool dead;	      /* to be freed by who holds the loop, not under a handler's feet */
	bool busy;	      /* inside fr_connection_work() */
	bool throttled;	      /* out of tokens until the timer says so */
	sd_event_source *io, *deadline, *refill;
};

/* Owned by who handles it, until its last reply; knows its connection as long as that lives. */
struct fr_call {
	struct fr_connection *connection; /* NULL: the client has gone */
	struct fr_peer peer;
	bool more, oneway;
};

struct fr_server {
	sd_event *event;
	sd_event_source *io;
	struct fr_server_config config; /* strings borrowed by the caller's promise, see server.h */
	struct fr_listener listener;
	LIST_HEAD(, fr_connection) connections;
	LIST_HEAD(, fr_user) users;
	size_t n_connections, n_users;
	sd_event_source *pause; /* ends a pause of io */
	uint64_t deadline_usec;
};

/* users.c. The user of PEER, with one connection more. 0 with *RET; -EDQUOT: that would be too many of this
   user, or of all; -ENOMEM. */
int fr_user_take(struct fr_server *s, const struct fr_peer *peer, struct fr_user **ret);
void fr_user_put(struct fr_server *s, struct fr_user *u); /* one less */
bool fr_user_take_token(struct fr_user *u);		  /* for one message */
void fr_users_free(struct fr_server *s);

/* Take over FD and what fr_user_take() gave. On failure both are given back, and an errno is returned. */
int fr_connection_new(struct fr_server *s, int fd, const struct fr_peer *peer, struct fr_user *user);
/* Detaches a call that is open. */
void fr_connection_free(struct fr_connection *c);
/* Queue one message; a client that does not read is given up. */
void fr_connection_send(struct fr_connection *c, const cJSON *message);
/* A call has ended: go on with the next message, from the loop. */
void fr_connection_call_done(struct fr_connection *c);

/* Run one message of C; in server.c. Sets C->call until it is replied to. */
void fr_server_dispatch(struct fr_connection *c, const char *text, size_t len);
