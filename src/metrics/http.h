/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * MetricsListen=: answers GET /metrics over HTTP, and nothing else. The library libmicrohttpd runs on the
 * event loop of the main thread, and has no threads of its own.
 */

#include "base/buf.h"

#include <systemd/sd-event.h>

struct fr_http;

/* Appends the text of a reply, without a NUL, to RET, which is empty. Returns 0 or a negative errno. */
typedef int (*fr_http_text)(void *ctx, struct fr_buf *ret);

/* Listens on ADDRESS. Returns 0 or -ENOMEM. If it is not possible to listen on ADDRESS, this function also
   returns 0, and logs the reason. In this case, the program goes on without metrics, and fr_http_notice()
   returns the reason. HINT says what to do if the process has no network; it may be NULL. */
int fr_http_open(sd_event *event, const char *address, const char *hint, fr_http_text make_text, void *ctx,
	struct fr_http **ret);
/* H may be NULL. Returns NULL. */
struct fr_http *fr_http_close(struct fr_http *h);
/* Returns the reason why H does not listen, or NULL if it listens or H is NULL. */
const char *fr_http_notice(const struct fr_http *h);
