/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The methods of the control socket (include/../control/interface.h describes them). Main thread. */

#include "flightrecd/daemon.h"

/* Serve the control socket, if the configuration has one. 0 or a negative errno with D. */
int fr_verbs_serve(struct fr_daemon *daemon, struct fr_diag *d);

/* verbs_dump.c; CTX of all is the daemon */
void fr_verb_dump(void *ctx, struct fr_call *call, const cJSON *parameters);
void fr_verb_cancel(void *ctx, struct fr_call *call, const cJSON *parameters);
void fr_verb_vacuum(void *ctx, struct fr_call *call, const cJSON *parameters);
void fr_verb_remove(void *ctx, struct fr_call *call, const cJSON *parameters);
void fr_verb_list(void *ctx, struct fr_call *call, const cJSON *parameters);

/* verbs_triggers.c */
void fr_verb_triggers(void *ctx, struct fr_call *call, const cJSON *parameters);
void fr_verb_test_trigger(void *ctx, struct fr_call *call, const cJSON *parameters);
void fr_verb_set_trigger(void *ctx, struct fr_call *call, const cJSON *parameters);
void fr_verb_decisions(void *ctx, struct fr_call *call, const cJSON *parameters);
void fr_verb_watch(void *ctx, struct fr_call *call, const cJSON *parameters);
