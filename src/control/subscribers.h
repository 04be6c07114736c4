/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Subscribers are calls with "more". A subscriber gets a reply each time that something happens, as long as
   its client is connected and reads the replies. Only the main thread uses this code. */

#include "control/server.h"

#include <stdint.h>

#define FR_SUBSCRIBERS_MAX 16

struct fr_subscribers {
	struct {
		struct fr_call *call; /* NULL: this place is free */
		uint64_t skipped;     /* how many replies the client has missed since it got its last reply */
	} v[FR_SUBSCRIBERS_MAX];
};

/* Adds CALL. Returns 0 if S now owns CALL. Returns -EBUSY if there are already FR_SUBSCRIBERS_MAX
   subscribers; in this case, the caller still owns CALL. */
int fr_subscribers_add(struct fr_subscribers *s, struct fr_call *call);
/* Sends a reply with NEWS as the member NAME to each subscriber. The reply also has "skipped": how many
   replies the client has missed since the last reply that it got. A client does not get the reply if too many
   bytes of its earlier replies are unsent. */
void fr_subscribers_send(struct fr_subscribers *s, const char *name, const cJSON *news);
bool fr_subscribers_is_empty(const struct fr_subscribers *s);
/* Ends and frees all calls. Call this function after fr_server_free(), so that the clients get the error of
   fr_server_free() and not an empty last reply. */
void fr_subscribers_deinit(struct fr_subscribers *s);
