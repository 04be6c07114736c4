/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The dumps of this run, for `flightrecctl list` and `status`. Main thread. */

#include "dumper/dumper.h"

#include <cjson/cJSON.h>

struct fr_recent_dumps {
	cJSON *files;	 /* array, newest last, bounded; NULL: none yet */
	cJSON *last;	 /* outcome of the newest job; NULL: none yet */
	char writer[96]; /* how the newest file was written; "": none yet */
};

/* JOB, a dump, has this outcome. */
void fr_recent_dumps_add(struct fr_recent_dumps *r, const struct fr_dump_job *job);
/* The file NAME was removed. */
void fr_recent_dumps_forget(struct fr_recent_dumps *r, const char *name);
/* The newest dumps that one reply can hold. The caller's to delete. */
cJSON *fr_recent_dumps_list(const struct fr_recent_dumps *r);
void fr_recent_dumps_deinit(struct fr_recent_dumps *r);
