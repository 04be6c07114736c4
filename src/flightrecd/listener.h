/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * MetricsListen=: GET /metrics over HTTP, and nothing else. On the main thread's event loop; the library
 * (libmicrohttpd) has no threads of its own.
 */

#include "flightrecd/daemon.h"

/* Where the configuration asks for it. What keeps it from listening is logged and is no failure: the recorder
   records without it. */
void fr_listener_http_open(struct fr_daemon *daemon);
void fr_listener_http_close(struct fr_daemon *daemon);
/* Why it does not listen, or NULL. */
const char *fr_listener_http_notice(const struct fr_daemon *daemon);
