/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Calls with "more" whose clients get a reply for each event of a kind, while they are connected and read.
   Main thread. */

#include "control/server.h"

#include <stdint.h>

#define FR_SUBSCRIBERS_MAX 16

struct fr_subscribers {
	struct {
		struct fr_call *call; /* NULL: free */
		uint64_t skipped;     /* how many events the client has missed since its last reply */
	} v[FR_SUBSCRIBERS_MAX];
};

/* Adds CALL. Returns 0, and S owns CALL; or -EBUSY if there are FR_SUBSCRIBERS_MAX calls. */
int fr_subscribers_add(struct fr_subscribers *s, struct fr_call *call);
/* Sends NEWS as the member NAME, and the number of missed events as "skipped", to each client that reads. */
void fr_subscribers_send(struct fr_subscribers *s, const char *name, const cJSON *news);
bool fr_subscribers_is_empty(const struct fr_subscribers *s);
/* Ends all calls. Call it after fr_server_free(). */
void fr_subscribers_deinit(struct fr_subscribers *s);
