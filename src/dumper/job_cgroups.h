/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

#include <cjson/cJSON.h>

/* Adds "cgroups" to META: an object with the path of each cgroup of version 2 that has processes, and a list
   of them. The samples do not have their cgroup, so this is what a reader knows. Leaves it out if there is no
   such cgroup, or no memory. */
void fr_job_add_cgroups(cJSON *meta);
/* Removes them from META. It stays in memory and goes over the socket when the file is written, and a machine
   can have many processes. */
void fr_job_drop_cgroups(cJSON *meta);
