/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The methods of the control socket (control/io.flightrec.Recorder.varlink describes them). Only the main
   thread calls these functions. */

#include "flightrecd/daemon.h"

/* Serves the control socket, if the configuration has one. Returns 0; or a negative errno, with a message in
   D. */
int fr_verbs_serve(struct fr_daemon *daemon, struct fr_diag *d);

/* The parameters that a method knows. */
#define FR_PARAMETERS(...) ((const struct fr_param[]){__VA_ARGS__, {0}})

/* The methods of verbs_dump.c, verbs_triggers.c and verbs_events.c; the last entry has no name. Each handler
   gets the daemon as its context. */
extern const struct fr_method fr_verbs_of_dumps[], fr_verbs_of_triggers[], fr_verbs_of_events[];
