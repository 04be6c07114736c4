/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Describes triggers and decisions as JSON for the control socket, and in the log. A decision says whether an
   anomaly made a dump, and why. Only the main thread calls these functions. */

#include "config/config.h"
#include "trigger/triggers.h"

#include <cjson/cJSON.h>

/* These functions return the JSON of a trigger or of a decision. The caller deletes the JSON. INFO describes
   the trigger. If the trigger has no window of its own, its JSON has the window of CONFIG. */
cJSON *fr_trigger_json(const struct fr_trigger_info *info, const struct fr_config *config, uint64_t now_ns);
cJSON *fr_decision_json(const struct fr_decision *d);
/* Logs that an anomaly made no dump, and why. */
void fr_decision_log_suppressed(const struct fr_decision *d);
