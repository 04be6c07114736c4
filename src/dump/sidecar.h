/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Inside dump/: the sidecar. */

#include "dump/params.h"

/* Add the members that describe the file to META, and write it as NAME.json. Returns 0 or a negative errno.
 */
int fr_sidecar_write(cJSON *meta, const struct fr_dump_params *params, const struct fr_dump_result *result);
