/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * MetricsListen=: GET /metrics over HTTP, and nothing else. It runs on the main thread's event loop; the
 * library (libmicrohttpd) has no threads of its own.
 */

#include "base/buf.h"

#include <systemd/sd-event.h>

struct fr_http;

/* Make the text of a reply, without a NUL, into RET (empty). 0 or a negative errno. */
typedef int (*fr_http_text)(void *ctx, struct fr_buf *ret);

/* Listen on ADDRESS. If that fails, the reason is logged, fr_http_notice() has it, and *RET answers nobody:
   the recorder records without it. 0 or -ENOMEM. */
int fr_http_open(
	sd_event *event, const char *address, fr_http_text make_text, void *ctx, struct fr_http **ret);
/* NULL-safe; returns NULL. */
struct fr_http *fr_http_close(struct fr_http *h);
/* Why it does not listen, or NULL. */
const char *fr_http_notice(const struct fr_http *h);
