/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include "merge/input.h"

#include <cjson/cJSON.h>
#include <stdbool.h>

/* The member of the JSON of a dump that has the processes of each cgroup. */
#define FR_SIDECAR_CGROUPS "cgroups"

/* Adds the processes of each cgroup to ALL, from the JSON of the inputs. If a process is in several, the last
   input counts. Returns false if there is no memory. */
bool fr_merge_add_cgroups(cJSON *all, const struct fr_inputs *in);
