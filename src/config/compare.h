/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Compares two configurations for a reload, and takes over new values. The table of keys says how each key
   is put in force. */

#include "config/config.h"

/* A and B have the same events, CPUs and kernel rings. */
bool fr_config_has_same_recording(const struct fr_config *a, const struct fr_config *b);
/* Exchange the values that fr_config_has_same_recording() compares. */
void fr_config_swap_recording(struct fr_config *a, struct fr_config *b);
/* Exchange [Triggers] and all sections [Trigger NAME]. */
void fr_config_swap_triggers(struct fr_config *a, struct fr_config *b);
/* Copy to NOW the values of FRESH that are read each time that they are needed: [Dump], LogLevel=,
   CPUBudget=. */
void fr_config_copy_live_keys(struct fr_config *now, const struct fr_config *fresh);

#define FR_CONFIG_RESTART_KEYS 9
/* The names ("Directory") of the keys whose new values wait for a restart, into RET. Returns their number. */
size_t fr_config_restart_keys(const struct fr_config *now, const struct fr_config *fresh,
	const char *ret[static FR_CONFIG_RESTART_KEYS]);
