/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A real server on a socket in a directory of its own, with methods that show each way to end a call. */

#include "base/clock.h"
#include "control/server_private.h"

#include <pthread.h>
#include <stdatomic.h>

/* For what must come: no machine is as slow. */
#define HARNESS_LIMIT_NS (60 * FR_NSEC_PER_SEC)

struct harness {
	char dir[64], path[96];
	sd_event *event;
	struct fr_server *server;
	struct fr_call *held[128]; /* by Hold, oldest first */
	size_t n_held;
	atomic_uint handled; /* calls that reached a handler */
	pthread_t thread;    /* of harness_serve() */
	atomic_bool stop;
};

int harness_setup(void **state);
int harness_teardown(void **state);

/* Run the loop until nothing has happened for QUIET_MS. */
void harness_pump(struct harness *h, unsigned quiet_ms);
/* Run the loop in a thread until harness_unserve(): for clients that block. */
void harness_serve(struct harness *h);
void harness_unserve(struct harness *h);

int raw_connect(const struct harness *h); /* non-blocking */
void raw_send(int fd, const void *data, size_t len);
/* One reply (pumping), parsed, or NULL at the end of the stream or after HARNESS_LIMIT_NS. */
cJSON *raw_reply(struct harness *h, int fd);
/* Whether the server has closed FD, within HARNESS_LIMIT_NS. */
bool raw_closed(struct harness *h, int fd);
