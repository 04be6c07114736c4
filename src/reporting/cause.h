/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A cause as JSON, and as fields of a journal entry. */

#include "base/log.h"
#include "source/cause.h"

#include <cjson/cJSON.h>
#include <sys/types.h>

/* CAUSE as it stands in sidecars and replies; what is not known is left out. UID: who asked; (uid_t)-1: no
   person. NULL: no memory. */
cJSON *fr_cause_json(const struct fr_cause *cause, uid_t uid);

/* The JSON of a new dump: "cause" is that of the first trigger, "causes" has that of each trigger. NULL: no
   memory. */
cJSON *fr_cause_new_meta(const struct fr_cause *first, uid_t uid, const char *boot_id);

#define FR_CAUSE_FIELDS 10
struct fr_cause_field_texts {
	char number[FR_CAUSE_FIELDS][24];
};
/* CAUSE, as fr_cause_json() made it, as fields of a journal entry. They point into CAUSE and TEXTS. Returns
   their number. */
unsigned fr_cause_fields(const cJSON *cause, struct fr_log_field fields[static FR_CAUSE_FIELDS],
	struct fr_cause_field_texts *texts);
