/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Subscribers are calls with "more" that get a reply each time that something happens, as long as their
   clients are connected and read. Main thread. */

#include "control/server.h"

#include <stdint.h>

#define FR_SUBSCRIBERS_MAX 16

struct fr_subscribers {
	struct {
		struct fr_call *call; /* NULL: this place is free */
		uint64_t skipped;     /* how many replies the client has missed since its last one */
	} v[FR_SUBSCRIBERS_MAX];
};

/* Adds CALL. Returns 0, and then S owns CALL; or -EBUSY if there are already FR_SUBSCRIBERS_MAX calls. */
int fr_subscribers_add(struct fr_subscribers *s, struct fr_call *call);
/* Sends NEWS as the member NAME to each client. The reply also has "skipped", the number of replies that the
   client has missed. A client with too many unread bytes misses this reply. */
void fr_subscribers_send(struct fr_subscribers *s, const char *name, const cJSON *news);
bool fr_subscribers_is_empty(const struct fr_subscribers *s);
/* Ends and frees all calls. Call it after fr_server_free(). */
void fr_subscribers_deinit(struct fr_subscribers *s);
