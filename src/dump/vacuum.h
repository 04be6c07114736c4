/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Removes dumps: either the oldest dumps until the limits (struct fr_retention) hold, or the dumps that the
 * caller names. docs/design/51 lists the files that belong to a dump and are removed with it. All functions
 * that have the parameter DIRFD wait for a disk, so the main thread and the recorder thread must not call
 * them. Two threads may call them at the same time.
 */

#include "base/diag.h"
#include "dump/retention.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fr_vacuum_report {
	char **removed; /* names of the removed dumps, and then NULL; or NULL if no dump was removed */
	size_t n_removed;
	uint64_t freed_bytes;
	uint64_t files, bytes;	  /* number and size of the dumps that remain */
	bool fits;		  /* all limits hold now */
	uint64_t n_held_removed;  /* number of removed dumps that were held (hold.h) */
	uint64_t n_holds_expired; /* number of holds that have ended, because nobody has uploaded the dump */
};
void fr_vacuum_report_deinit(struct fr_vacuum_report *r);
/* Returns what was removed, as the JSON reply to a call of the control socket. The caller deletes it. */
cJSON *fr_vacuum_json(const struct fr_vacuum_report *r);

/* Applies LIMITS to the directory DIRFD. NEED_BYTES is the size of a dump that is about to be written, or 0.
   If the wall time in the name of a dump is KEEP_FROM_NS or later, the dump is not removed. If KEEP_FROM_NS
   is UINT64_MAX, all dumps can be removed. If not all limits can hold and NEED_BYTES is not 0, MaxUse= and
   KeepFree= are ignored: this function removes only as many dumps as MaxFiles=, MaxAge= and the room for the
   new dump require. It removes no dump if the new dump does not fit even after the removal of all old dumps.
   The caller zeroes RET (may be NULL) before the first call. Each call adds to `removed` and `freed_bytes`,
   also if it fails. Returns 0, also if a limit does not hold; or a negative errno, with a message in D. */
int fr_vacuum(int dirfd, const struct fr_retention *limits, uint64_t need_bytes, uint64_t keep_from_ns,
	struct fr_vacuum_report *ret, struct fr_diag *d);

/* Removes the dump NAME with its other files, and adds it to RET. NAME is "perf.data.sample.TIME" or
   "perf.data.TIME", and may end with ".json". Returns 0; or a negative errno, with a message in D: -EINVAL if
   NAME is not the name of a dump, -ENOENT if there is no such dump. */
int fr_vacuum_remove(int dirfd, const char *name, struct fr_vacuum_report *ret, struct fr_diag *d);

/* Removes the files that a killed recorder left: temporary files, and what belongs to a dump that does not
   exist: NAME.json, NAME.jit, NAME.kallsyms. The caller must hold the lock of perf.data.auxiliary, so that no
   other recorder writes here, and must not have written a dump yet. Returns the number of removed temporary
   files, or a negative errno. */
int fr_vacuum_leftovers(int dirfd);
