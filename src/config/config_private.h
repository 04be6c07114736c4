/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The parts of the configuration among themselves, and for their tests. */

#include "config/config.h"

#include <stdio.h>

/* fr_config_files() as if "/" were ROOT ("" for the real one). */
int fr_config_files_at(const char *root, const char *path, char ***ret, struct fr_diag *d);

/* Parse one file from F, called NAME in errors, into C. For tests and fuzzing, too. */
int fr_config_read(struct fr_config *c, FILE *f, const char *name, struct fr_diag *d);

/* fr_options_parse() with TEXT in the place of all files. */
int fr_options_parse_text(struct fr_config *c, const char *text, int argc, char *argv[], struct fr_diag *d);

/* Append an event with its ORIGIN. 0, -ENOMEM, or -EINVAL where there are too many. */
int fr_config_add_event(struct fr_config *c, const char *spec, const char *origin, struct fr_diag *d);
/* The filter of the last event. 0, -ENOMEM, or -EINVAL where there is none or it has one. */
int fr_config_set_last_filter(struct fr_config *c, const char *filter, struct fr_diag *d);
void fr_config_clear_events(struct fr_config *c);

/* A section begins in ORIGIN ("file:line"): one that is not known is told of here, and [Trigger NAME] is
   there from now on, even without a key. 0, -ENOMEM, or -EINVAL with D that begins with ORIGIN. */
int fr_config_section(struct fr_config *c, const char *section, const char *origin, struct fr_diag *d);

/* NAME of a section "Trigger NAME", which may be empty or no name; NULL: it is another section. */
const char *fr_config_trigger_name(const char *section);
/* Have a trigger NAME. 0, -ENOMEM, or -EINVAL with D for what is no name. */
int fr_config_add_trigger(struct fr_config *c, const char *name, const char *origin, struct fr_diag *d);
/* Assign to a key of it, which is added where it is not there. Errors as of the above. */
int fr_config_set_trigger(struct fr_config *c, const char *name, const char *key, const char *value,
	const char *origin, struct fr_diag *d);
/* Whether each has a source, and keys that mean something to it. -EINVAL with D that begins with its origin.
 */
int fr_config_check_triggers(const struct fr_config *c, struct fr_diag *d);
void fr_config_clear_triggers(struct fr_config *c);
void fr_config_print_trigger_keys(FILE *f);

/* "30s", or "all" and 0 for all of the ring. 0 or -EINVAL with D. */
int fr_config_parse_window(const char *key, const char *value, uint64_t *ret, struct fr_diag *d);

/* LINES as comments, each after "# ". */
void fr_config_print_help(FILE *f, const char *lines);

/* The commented default file, from the table. */
void fr_config_print_default(FILE *f);
