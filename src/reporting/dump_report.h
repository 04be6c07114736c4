/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Reports the outcome of a job of the dumper, in the log and to the clients that wait. A job is a dump, or
   another task like the removal of old dumps. Only the main thread calls these functions. */

#include "dumper/dumper.h"

#include <cjson/cJSON.h>

/* Logs the outcome of the dump JOB. DIRECTORY is the configured directory. */
void fr_dump_log(const struct fr_dump_job *job, const char *directory);
/* These functions return the reply to the clients that wait for JOB, when JOB has succeeded. fr_dump_reply()
   is for a dump, and fr_vacuum_reply() is for a job of another kind. The caller deletes the reply. */
cJSON *fr_dump_reply(const struct fr_dump_job *job, const char *directory);
cJSON *fr_vacuum_reply(const struct fr_dump_job *job);
/* Returns why JOB failed, for the clients that wait for it. */
struct fr_diag fr_dump_failure(const struct fr_dump_job *job);
/* Returns the dumps that wait, as the array in `status`. The caller deletes it. */
cJSON *fr_waiting_dumps_json(struct fr_dumper *dumper);
