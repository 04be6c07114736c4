/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Compares two configurations for a reload, and puts new values in force. The table of keys says how a reload
   puts a new value of a key in force (enum fr_config_reload). */

#include "config/config.h"

/* Returns whether A and B have the same events, with the same filters, and the same values of all keys whose
   member `reload` is FR_RELOAD_REOPEN. */
bool fr_config_has_same_recording(const struct fr_config *a, const struct fr_config *b);
/* Swaps the values that fr_config_has_same_recording() compares. */
void fr_config_swap_recording(struct fr_config *a, struct fr_config *b);
/* Swaps [Triggers] and all sections [Trigger NAME] of A and B. */
void fr_config_swap_triggers(struct fr_config *a, struct fr_config *b);
/* The parameter `now` is the configuration in force, and `next` is the new configuration. Copies from `next`
   to `now` the values that the recorder reads each time that it needs them: most values of [Dump], LogLevel=
   and CPUBudget=. */
void fr_config_copy_live_keys(struct fr_config *now, const struct fr_config *next);

#define FR_CONFIG_RESTART_KEYS 11
/* Compares the values of the keys whose member `reload` is FR_RELOAD_RESTART. Sets RET to the names (like
   "Directory") of the keys whose values in `now` and `next` differ. Returns the number of these keys. */
size_t fr_config_restart_keys(const struct fr_config *now, const struct fr_config *next,
	const char *ret[static FR_CONFIG_RESTART_KEYS]);
