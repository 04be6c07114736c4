/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Inside dump/: the JSON beside a sample file. */

#include "dump/dump.h"

/* Add the members that tell of the file to META, and write NAME.json. 0 or a negative errno. */
int fr_sidecar_write(cJSON *meta, const struct fr_dump_params *params, const struct fr_dump_result *result);
