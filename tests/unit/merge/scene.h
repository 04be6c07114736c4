/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A directory with inputs, a merge in it, and what came out. */

#include "../perfdata/synth.h"
#include "merge/merge.h"

#define SCENE_ID 900 /* first event id: samples, then side-band at + 2 */
#define SCENE_AUX_ID (SCENE_ID + 2)

struct scene {
	char dir[64];
	struct fr_session session;
	uint64_t id; /* the session's first */
	struct fr_merge_options options;
	struct fr_merge_report report;
	struct fr_diag diag;
	char warned[4096]; /* all lines */
};

void scene_init(struct scene *s);
void scene_deinit(struct scene *s); /* removes the directory */
/* DIR/NAME; static storage, four in turn. */
const char *scene_path(const struct scene *s, const char *name);
bool scene_has(const struct scene *s, const char *name);
/* How many entries the directory has. */
unsigned scene_entries(const struct scene *s);
/* fr_merge(), with a report and words of its own each time. */
int scene_merge(struct scene *s);

/* All records of NAME but rounds, one after the other; fails where the file is damaged. RET_ROUNDS may be
 * NULL.
 */
void scene_read(const struct scene *s, const char *name, struct fr_buf *ret, uint64_t *ret_rounds);
