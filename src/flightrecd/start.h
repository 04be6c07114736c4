/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The start: signals and the control socket are there at once, while a thread of its own opens the stages. On
 * a large or busy machine that takes its time: each process is read, and the ring's memory is taken.
 *
 *   main      loop: signals, control socket (Status answers, the others wait) ──────► go(): samples flow,
 * READY=1 fr-start        directory ─► events ─► ring ─► threads, /proc ── done ───────────┘
 */

#include "base/buf.h"
#include "base/diag.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <sys/signalfd.h>

struct fr_call;
struct fr_daemon;
struct fr_method;
struct fr_start;

/* Begin it on DAEMON's loop. KEPT (taken; empty: nothing): an instance before left a history, and this
   configuration, which is gone back to where that of DAEMON cannot be used. 0 or a negative errno with D. */
int fr_start_begin(struct fr_daemon *daemon, struct fr_buf *kept, bool inherited, struct fr_diag *d);
/* Wait for its thread, and forget it. */
void fr_start_end(struct fr_daemon *daemon);

/* True: DAEMON starts, and this signal is heeded when it has, or by its end. */
bool fr_start_signalled(struct fr_daemon *daemon, const struct signalfd_siginfo *si);
/* fr_server_config.gate */
bool fr_start_gate(
	void *daemon, struct fr_call *call, const struct fr_method *method, const cJSON *parameters);
/* From the start's thread: what is done now, in words that live for ever. */
void fr_start_does(struct fr_daemon *daemon, const char *what);

/* CONFIG becomes what KEPT says. 0 or a negative errno with D. */
int fr_start_go_back(struct fr_daemon *daemon, const struct fr_buf *kept, struct fr_diag *d);
/* D to the log and to systemctl status. */
void fr_start_say_why_not(const struct fr_diag *d, int code);
