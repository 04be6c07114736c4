/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Used in dump/ only: writes the sidecar, the JSON file beside a dump. */

#include "dump/params.h"

/* Adds the members that describe the dump to META, and writes META to the file NAME.json. Returns 0 or a
   negative errno. */
int fr_sidecar_write(cJSON *meta, const struct fr_dump_params *params, const struct fr_dump_result *result);
