/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Describes a cause as JSON, and as fields of a journal entry. */

#include "base/log.h"
#include "source/cause.h"

#include <cjson/cJSON.h>
#include <sys/types.h>

/* Returns CAUSE as the object that sidecars and replies have. Members that are not known are left out. UID:
   the user who asked; (uid_t)-1: no user. Returns NULL if there is no memory. */
cJSON *fr_cause_json(const struct fr_cause *cause, uid_t uid);

/* Returns the JSON of a new dump. The member "cause" is FIRST, the cause that made the dump. The array
   "causes" also begins with FIRST; causes that are coalesced later are added to the array. Returns NULL if
   there is no memory. */
cJSON *fr_cause_new_meta(const struct fr_cause *first, uid_t uid, const char *boot_id);

#define FR_CAUSE_FIELDS 10
struct fr_cause_field_texts {
	char number[FR_CAUSE_FIELDS][24];
};
/* Set FIELDS to the fields of a journal entry for CAUSE, which fr_cause_json() made. The fields point into
   CAUSE and TEXTS. Returns the number of fields. */
unsigned fr_cause_fields(const cJSON *cause, struct fr_log_field fields[static FR_CAUSE_FIELDS],
	struct fr_cause_field_texts *texts);
