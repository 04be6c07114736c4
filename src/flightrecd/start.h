/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The start: signals and the control socket are there at once, while a thread of its own opens the parts. On
 * a large or busy machine that takes its time: each process is read, and the ring's memory is taken.
 *
 *   main      loop: signals wait, `status` answers, other calls wait ───► begin_recording(): READY=1
 *   fr-start  directory ─► events ─► ring ─► threads, /proc ─── done ──────┘
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

struct fr_start_ops {
	/* The parts are open. 0 or a negative errno with D. */
	int (*begin_recording)(struct fr_daemon *daemon, struct fr_diag *d);
	/* This signal came during the start. */
	void (*handle_signal)(struct fr_daemon *daemon, const struct signalfd_siginfo *si);
};

/* Begin the start on the daemon's loop. INHERITED: a previous instance left a history, and SAVED_CONFIG
   (taken), its configuration, which is used if that of the daemon cannot be used. 0 or a negative errno with
   D. Main thread. */
int fr_start_begin(struct fr_daemon *daemon, const struct fr_start_ops *ops, struct fr_buf *saved_config,
	bool inherited, struct fr_diag *d);
/* Wait for the start's thread, and free all of the start. Main thread. */
void fr_start_end(struct fr_daemon *daemon);

/* True: the daemon starts, and this signal is handled after the start. Main thread. */
bool fr_start_defers_signal(struct fr_daemon *daemon, const struct signalfd_siginfo *si);
/* The gate of the control server (struct fr_server_config). Main thread. */
bool fr_start_gate(
	void *daemon, struct fr_call *call, const struct fr_method *method, const cJSON *parameters);
/* The start is DOING this now, in words that live for ever. The thread of the start, or the main thread after
   it. */
void fr_start_progress(struct fr_daemon *daemon, const char *doing);

/* Replace the daemon's configuration by SAVED_CONFIG. 0 or a negative errno with D. */
int fr_start_restore_config(struct fr_daemon *daemon, const struct fr_buf *saved_config, struct fr_diag *d);
/* Tell the log and systemctl status why the start failed. */
void fr_start_report_failure(const struct fr_diag *d, int code);
