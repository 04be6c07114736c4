/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The joining of trigger/ with the dumper, the log and the control socket. Main thread.
 *
 *   fr_triggers ─► dump, join ─► dumps.c ─► dumper          (triggers.c)
 *               └► decided, armed ─► log, watchers          (triggers.c, verbs_triggers.c)
 */

#include "base/log.h"
#include "flightrecd/daemon.h"

#include <sys/signalfd.h>

/* Arm what the configuration says. What cannot be armed is logged and hinders nobody; a negative errno with D
   is memory. After the recorder runs, on DAEMON's event loop. */
int fr_daemon_triggers_open(struct fr_daemon *daemon, struct fr_diag *d);
/* Disarm all. Again is no harm. */
void fr_daemon_triggers_close(struct fr_daemon *daemon);
/* Arm what FRESH says instead, whose triggers are taken over; the ring and what is armed already is not
   touched. 0, or -ENOMEM and nothing has changed. */
int fr_daemon_triggers_reload(struct fr_daemon *daemon, struct fr_config *fresh);
/* SIGUSR1 came. */
void fr_daemon_signalled(struct fr_daemon *daemon, const struct signalfd_siginfo *si);

/* A cause as it stands in a sidecar and in replies: only what is known. UID (uid_t)-1: of nobody. NULL: no
 * memory.
 */
cJSON *fr_cause_json(const struct fr_cause *cause, uid_t uid);
/* CAUSE, as fr_cause_json() made it, as fields of a journal entry. Their number; they point into CAUSE and
 * TEXTS. */
#define FR_CAUSE_FIELDS 10
struct fr_cause_field_texts {
	char number[FR_CAUSE_FIELDS][24];
};
unsigned fr_cause_fields(const cJSON *cause, struct fr_log_field fields[static FR_CAUSE_FIELDS],
	struct fr_cause_field_texts *texts);

/* "ns", "count", "bytes", "percent" or "". */
const char *fr_unit_of_cause_name(enum fr_unit_of_cause unit);

/* "triggers" of `status`. */
void fr_status_add_triggers(struct fr_daemon *daemon, cJSON *status);

/* verbs_triggers.c */
/* Each who watches gets DECISION, unless he does not read. */
void fr_watchers_tell(struct fr_daemon *daemon, const struct fr_decision *decision);
/* After the server has gone. */
void fr_watchers_free(struct fr_daemon *daemon);

void fr_verb_triggers(void *daemon, struct fr_call *call, const cJSON *parameters);
void fr_verb_test_trigger(void *daemon, struct fr_call *call, const cJSON *parameters);
void fr_verb_set_trigger(void *daemon, struct fr_call *call, const cJSON *parameters);
void fr_verb_decisions(void *daemon, struct fr_call *call, const cJSON *parameters);
void fr_verb_watch(void *daemon, struct fr_call *call, const cJSON *parameters);
