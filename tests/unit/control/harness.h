/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A real control server on a socket in its own directory. It has a method for each way in which a call can
   end. */

#include "../unit.h"
#include "base/clock.h"
#include "control/interface.h"
#include "control/server.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/un.h>

#define ONEWAY "{\"method\":\"" FR_INTERFACE ".Echo\",\"oneway\":true}"

/* The time limit of all waits: longer than a slow machine needs. */
#define HARNESS_LIMIT_NS (60 * FR_NSEC_PER_SEC)

/* The message of a call of METHOD. The NUL of the string ends the message. */
#define CALL(method, parameters) "{\"method\":\"" FR_INTERFACE "." method "\",\"parameters\":" parameters "}"

struct harness {
	char dir[64], path[96];
	sd_event *event;
	struct fr_server_config config;
	struct fr_server *server;
	struct fr_call *open[128]; /* calls of Wait that have no reply yet, the oldest first */
	size_t n_open;
	atomic_uint handled; /* calls that reached a handler */
	pthread_t thread;    /* runs the loop after harness_serve() */
	atomic_bool stop;
};

int harness_setup(void **state);
int harness_teardown(void **state);

/* Runs the event loop until nothing happens for QUIET_MS. */
void harness_pump(struct harness *h, unsigned quiet_ms);
/* Runs the event loop in a thread until harness_unserve(), so that the test can use clients that block. */
void harness_serve(struct harness *h);
void harness_unserve(struct harness *h);

/* Makes a socket that is bound to PATH, or connected to it. */
int raw_bind(const char *path);
int raw_connect(const struct harness *h); /* non-blocking */
void raw_send(int fd, const void *data, size_t len);
/* Runs the event loop until a reply has arrived at FD. Returns the reply, which the caller deletes, or NULL
   at the end of the stream or after HARNESS_LIMIT_NS. */
cJSON *raw_reply(struct harness *h, int fd);
/* Sends CALL and returns its reply. */
cJSON *raw_call(struct harness *h, int fd, const char *call);
/* Returns whether the server closes FD within HARNESS_LIMIT_NS. */
bool raw_is_closed(struct harness *h, int fd);
/* Returns whether the parameter NAME of REPLY is TEXT. If NAME is NULL, returns whether the member "error" of
   REPLY is TEXT. The TEXT "" means that the parameter or member does not exist. Deletes REPLY. */
bool reply_is(cJSON *reply, const char *name, const char *text);
/* Returns whether a call of Echo on the connection FD works. */
bool raw_works(struct harness *h, int fd);
/* Returns whether a new connection works. */
bool new_connection_works(struct harness *h);
