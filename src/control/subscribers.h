/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Calls with "more" that get a reply for each news, as long as their clients are connected and read. Main
   thread. */

#include "control/server.h"

#include <stdint.h>

#define FR_SUBSCRIBERS_MAX 16

struct fr_subscribers {
	struct {
		struct fr_call *call; /* NULL: free */
		uint64_t skipped;     /* news that it missed since its last reply */
	} v[FR_SUBSCRIBERS_MAX];
};

/* CALL (taken) gets all news from now on. 0; -EBUSY: there are FR_SUBSCRIBERS_MAX. */
int fr_subscribers_add(struct fr_subscribers *s, struct fr_call *call);
/* Send NEWS as the member NAME, and the number of missed news as "skipped", to each client that reads. */
void fr_subscribers_send(struct fr_subscribers *s, const char *name, const cJSON *news);
bool fr_subscribers_is_empty(const struct fr_subscribers *s);
/* End all calls. After the server is closed. */
void fr_subscribers_deinit(struct fr_subscribers *s);
