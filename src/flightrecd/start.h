/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The start of the recording. The thread fr-start opens the parts. Meanwhile, the main loop already handles
 * signals and the control socket. On a large or busy machine, it takes seconds to open the parts, because
 * fr-start reads each process and takes the memory of the ring.
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
	/* Called when the parts are open. Returns 0; or a negative errno, with a message in D. */
	int (*begin_recording)(struct fr_daemon *daemon, struct fr_diag *d);
	/* Called after the start, for a signal that came during the start. */
	void (*handle_signal)(struct fr_daemon *daemon, const struct signalfd_siginfo *si);
};

/* Begins the start on the daemon's loop. INHERITED is true if a previous instance has left a history and its
   configuration, SAVED_CONFIG. If the start fails with the configuration of the daemon, the start is tried
   again with SAVED_CONFIG. This function takes SAVED_CONFIG over. Returns 0; or a negative errno, with a
   message in D. Only the main thread calls this function. */
int fr_start_begin(struct fr_daemon *daemon, const struct fr_start_ops *ops, struct fr_buf *saved_config,
	bool inherited, struct fr_diag *d);
/* Waits for the thread of the start, fails the calls that still wait, and frees the start. Only the main
   thread calls this function. */
void fr_start_end(struct fr_daemon *daemon);

/* Returns true if the daemon is starting. In this case, the start handles the signal SI, at once or when the
   start has ended, and the caller does nothing. Otherwise returns false. Only the main thread calls this
   function. */
bool fr_start_defers_signal(struct fr_daemon *daemon, const struct signalfd_siginfo *si);
/* The gate of the control server (see struct fr_server_config): during a start, it answers a call at once, or
   keeps the call until the end of the start. Only the main thread calls this function. */
bool fr_start_gate(
	void *daemon, struct fr_call *call, const struct fr_method *method, const cJSON *parameters);
/* Tells `status` and the service manager what the start does now. DOING is a string literal. The thread
   fr-start calls this function. When that thread has ended, the main thread calls it. */
void fr_start_progress(struct fr_daemon *daemon, const char *doing);

/* Replaces the daemon's configuration by SAVED_CONFIG. Returns 0; or a negative errno, with a message in
   D. */
int fr_start_restore_config(struct fr_daemon *daemon, const struct fr_buf *saved_config, struct fr_diag *d);
/* Tells the log and `systemctl status` why the start failed. */
void fr_start_report_failure(const struct fr_diag *d, int code);
