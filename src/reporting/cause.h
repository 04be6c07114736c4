/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Describes a cause (the description of an anomaly) as JSON, and as fields of a journal entry. */

#include "base/clock.h"
#include "base/log.h"
#include "source/cause.h"

#include <cjson/cJSON.h>
#include <sys/types.h>

/* Returns CAUSE as the object that sidecars and replies have. Members that are not known are left out. UID is
   the user who asked for the dump, or (uid_t)-1 if no user asked. CLOCK relates the time of the cause to wall
   time; NULL: the clocks of this moment. Returns NULL if there is no memory. */
cJSON *fr_cause_json(const struct fr_cause *cause, uid_t uid, const struct fr_clock_pair *clock);

/* Returns the JSON of a new dump. The parameter `first` is the cause that made the dump. The JSON has it as
   the member "cause", and as the first item of the array "causes". Causes that join the dump while it waits
   are added to this array. Returns NULL if there is no memory. */
cJSON *fr_cause_new_meta(
	const struct fr_cause *first, uid_t uid, const char *boot_id, const struct fr_clock_pair *clock);

#define FR_CAUSE_FIELDS 10
struct fr_cause_field_texts {
	char number[FR_CAUSE_FIELDS][24];
};
/* Sets FIELDS to the fields of a journal entry for CAUSE, which fr_cause_json() made. The fields point into
   CAUSE and TEXTS. Returns the number of fields. */
unsigned fr_cause_fields(const cJSON *cause, struct fr_log_field fields[static FR_CAUSE_FIELDS],
	struct fr_cause_field_texts *texts);
