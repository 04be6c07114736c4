/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A fixture: a directory with the inputs of a merge, and the results of the merge. */

#include "../unit.h"
#include "../perfdata/synth.h"
#include "merge/merge.h"

/* The first event id of the session. This id and the next id are ids of sampled events. */
#define SCENE_ID 900
#define SCENE_AUX_ID (SCENE_ID + 2)

struct scene {
	char dir[64];
	struct fr_session session;
	struct fr_merge_options options;
	struct fr_merge_report report;
	struct fr_diag diag;
	char warned[4096]; /* all warnings, one on each line */
};

/* For cmocka: *STATE is a new struct scene. The teardown removes the directory. */
int scene_setup(void **state);
int scene_teardown(void **state);
/* Removes all files. */
void scene_clear(struct scene *s);
/* Replaces the session by another session. Its ids begin with FIRST_ID, and its wall clock is WALL_S seconds
   ahead of the monotonic clock. */
void scene_use_session(struct scene *s, uint64_t first_id, uint64_t wall_s);

/* Returns the path of the file NAME in the directory. The result is valid during the next three calls. */
const char *scene_path(const struct scene *s, const char *name);
bool scene_has(const struct scene *s, const char *name);
/* Returns the number of entries of the directory. */
unsigned scene_entries(const struct scene *s);
void scene_write(const struct scene *s, const char *name, const char *text);

/* Calls fr_merge() with an empty report, diag and list of warnings. */
int scene_merge(struct scene *s);

/* Appends all records of the file NAME, except FINISHED_ROUNDs, to RET. If RET_ROUNDS is not NULL, it gets
   the number of FINISHED_ROUNDs. Fails the test if the file is damaged. */
void scene_read(const struct scene *s, const char *name, struct fr_buf *ret, uint64_t *ret_rounds);

/* Returns a pseudo-random number below BELOW. A test may set the seed. */
extern unsigned long long scene_seed;
unsigned scene_random(size_t below);
