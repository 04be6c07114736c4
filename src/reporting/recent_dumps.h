/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Remembers the dumps of this instance, for `flightrecctl list` and `status`. Only the main thread calls
   these functions. */

#include "dumper/dumper.h"

#include <cjson/cJSON.h>

struct fr_recent_dumps {
	cJSON *files;	 /* array of at most 256 dumps, newest last; NULL: none yet */
	cJSON *last;	 /* outcome of the newest job; NULL: none yet */
	char writer[96]; /* how the newest file was written; "": none yet */
};

/* Remembers the outcome of JOB, which is a dump. If JOB succeeded, also adds its file. */
void fr_recent_dumps_add(struct fr_recent_dumps *r, const struct fr_dump_job *job);
/* Forgets the file NAME, which was removed. */
void fr_recent_dumps_forget(struct fr_recent_dumps *r, const char *name);
/* Returns an array of the newest dumps that fit into one reply, oldest first. The caller deletes the
   array. */
cJSON *fr_recent_dumps_list(const struct fr_recent_dumps *r);
void fr_recent_dumps_deinit(struct fr_recent_dumps *r);
