/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Connects recorder/switching.h with the event loop: switches events, and ends the switches in time. Only the
   main thread calls these functions, except where a comment says something else. */

#include "flightrecd/daemon.h"

/* Does the same as fr_switching_ask(), and ends the switch in time. */
int fr_daemon_switch_event(
	struct fr_daemon *daemon, const struct fr_switch_request *q, cJSON *changed, struct fr_diag *d);
/* Notes that a program of the trigger TRIGGER has switched an event, and ends the switch in time. */
void fr_daemon_saw_switch(
	struct fr_daemon *daemon, const struct fr_switch_record *record, const char *trigger);
/* Call this function every few seconds, and when SwitchLimit= has changed. */
void fr_daemon_switches_tick(struct fr_daemon *daemon);
/* Stops the timer. */
void fr_daemon_switches_close(struct fr_daemon *daemon);
