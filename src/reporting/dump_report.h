/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The outcome of a job of the dumper, for the log and for the clients that wait. Main thread. */

#include "dumper/dumper.h"

#include <cjson/cJSON.h>

/* Log the outcome of a dump. DIRECTORY is the configured one. */
void fr_dump_log(const struct fr_dump_job *job, const char *directory);
/* The reply to the clients that wait for JOB, which is a dump that succeeded; and which is something else. */
cJSON *fr_dump_reply(const struct fr_dump_job *job, const char *directory);
cJSON *fr_vacuum_reply(const struct fr_dump_job *job);
/* JOB failed: why, for the clients that wait for it. */
struct fr_diag fr_dump_failure(const struct fr_dump_job *job);
/* The dumps that wait, as `status` has them. */
cJSON *fr_waiting_dumps_json(struct fr_dumper *dumper);
