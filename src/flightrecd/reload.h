/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The configuration, read again and put in force while recording goes on. Main thread. */

#include "flightrecd/daemon.h"

/* Arrays of lines for a person: what has changed, and what could not change (with the reason, or because it
   waits for a restart). */
struct fr_reloaded {
	cJSON *changed, *waiting;
};
/* 0, or a positive number as fr_options_parse(); a negative errno with D: what is recorded has not changed.
   RET is the caller's to deinit in each case. */
int fr_daemon_reload(struct fr_daemon *daemon, struct fr_reloaded *ret, struct fr_diag *d);
void fr_reloaded_deinit(struct fr_reloaded *reloaded);

/* The configuration of before stays in force, and WHY says why: into RET and the log. */
void fr_daemon_refuse_config(struct fr_diag *ret, const struct fr_diag *why);
