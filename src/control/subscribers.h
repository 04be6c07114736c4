/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Subscribers are calls with "more". A subscriber gets a reply each time that something happens, as long as
   its client is connected and reads the replies. Main thread. */

#include "control/server.h"

#include <stdint.h>

#define FR_SUBSCRIBERS_MAX 16

struct fr_subscribers {
	struct {
		struct fr_call *call; /* NULL: this place is free */
		uint64_t skipped; /* how many replies the client has missed since the last one that it got */
	} v[FR_SUBSCRIBERS_MAX];
};

/* Adds CALL. Returns 0, and then S owns CALL; or -EBUSY if there are already FR_SUBSCRIBERS_MAX subscribers,
   and then the caller still owns CALL. */
int fr_subscribers_add(struct fr_subscribers *s, struct fr_call *call);
/* Sends a reply with NEWS as the member NAME to each subscriber. The reply also has "skipped": how many
   replies the client has missed since the last one that it got. A client misses this reply if too many bytes
   of earlier replies to it are unsent. */
void fr_subscribers_send(struct fr_subscribers *s, const char *name, const cJSON *news);
bool fr_subscribers_is_empty(const struct fr_subscribers *s);
/* Ends and frees all calls. Call it after fr_server_free(), so that the clients get the error of
   fr_server_free() and not an empty last reply. */
void fr_subscribers_deinit(struct fr_subscribers *s);
