/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The table of keys, events and triggers. Only the files of this folder and their tests include this. */

#include "config/config.h"

#include <stdio.h>

/* How a reload puts a new value in force. */
enum fr_config_reload {
	FR_RELOAD_OTHER,   /* by code of its own: RingSize=, [Triggers], [Trigger NAME] */
	FR_RELOAD_REOPEN,  /* the recorder opens its events again */
	FR_RELOAD_AT_ONCE, /* the value is copied: it is read each time that it is needed */
	FR_RELOAD_RESTART, /* the value waits for a restart */
};

#define FR_TRIGGER_SECTION "Trigger NAME" /* stands for all sections [Trigger …] */

struct fr_assignment;

/* A key with a PARSE function stores a number. Otherwise a key with a member stores a string. */
struct fr_value_type {
	const char *noun; /* for "KEY= is not NOUN" */
	const char *hint;
	int (*parse)(const char *text, uint64_t *ret); /* < 0: TEXT is invalid */
	uint64_t least, most;			       /* of a number; most 0: PARSE knows the limits */
	const char *word; /* stands for WORD_VALUE, or for an empty string; NULL: no such word */
	uint64_t word_value;
	bool (*is_valid)(const char *text);	   /* of a string; NULL: every string is valid */
	int (*set)(const struct fr_assignment *a); /* replaces all this where one member is not enough */
	bool is_string;
};

/* Tests compare the manual page and conf/flightrecd.conf with the table. */
struct fr_config_key {
	const char *section, *name;
	const char *default_value; /* for an empty assignment; NULL: it resets the member, or clears a list */
	const struct fr_value_type *type;
	size_t offset, size; /* of the member of fr_config or fr_trigger_config; size 0: there is none */
	enum fr_config_reload reload;
	uint64_t unset; /* of a number without a default */
	/* [Trigger NAME] only. */
	unsigned kinds; /* bits 1 << enum fr_trigger_kind: the key has an effect on these; 0: on all */
	enum fr_trigger_kind source; /* the kind of source that the key names; 0: none */
};
extern const struct fr_config_key fr_config_keys[]; /* ends with a NULL name */

/* The member of KEY has the same value in A and B: two fr_config, or two fr_trigger_config. */
bool fr_config_has_same_value(const struct fr_config_key *key, const void *a, const void *b);

/* A section begins. Creates [Trigger NAME], even if no key follows. 0; -ENOMEM; or -EINVAL with D, which
   begins with ORIGIN ("file:line"): the section is unknown. */
int fr_config_begin_section(struct fr_config *c, const char *section, const char *origin, struct fr_diag *d);

/* Print conf/flightrecd.conf, in which each key is a comment. */
void fr_config_print_default(FILE *f);

/* fr_config_files() with ROOT in front of the system's directories. */
int fr_config_files_at(const char *root, const char *path, char ***ret, struct fr_diag *d);
/* Parse one file from F. NAME stands in errors. 0, -ENOMEM, -EIO, or -EINVAL with "NAME:line: …" in D. */
int fr_config_read(struct fr_config *c, FILE *f, const char *name, struct fr_diag *d);
/* fr_options_parse() that reads TEXT instead of the files, unless TEXT is NULL. */
int fr_options_parse_text(struct fr_config *c, const char *text, int argc, char *argv[], struct fr_diag *d);

/* Replace *MEMBER, which is freed, by a copy of VALUE, which may be NULL. 0, or -ENOMEM: no change. */
int fr_string_replace(char **member, const char *value);
/* The strings are equal, or both are NULL. */
bool fr_string_is_same(const char *a, const char *b);

/* Append an event. 0, -ENOMEM, or -EINVAL with D: there are too many. */
int fr_config_add_event(struct fr_config *c, const char *spec, const char *origin, struct fr_diag *d);
/* Set the filter of the last event. 0, -ENOMEM, or -EINVAL with D: it has one, or there is no event. */
int fr_config_set_last_filter(struct fr_config *c, const char *filter, struct fr_diag *d);
void fr_config_clear_events(struct fr_config *c);

/* The NAME in "Trigger NAME", which may be empty or invalid; NULL: it is another section. */
const char *fr_config_trigger_name(const char *section);
/* Find the trigger NAME, or create it. RET is borrowed until the next trigger is created. 0; -ENOMEM; or
   -EINVAL with D: the name is invalid, or there are too many. */
int fr_config_add_trigger(struct fr_config *c, const char *name, const char *origin,
	struct fr_trigger_config **ret, struct fr_diag *d);
/* Check that each trigger has a source, and no key without effect. 0, or -EINVAL with D, which begins with
   the origin of the trigger. */
int fr_config_check_triggers(const struct fr_config *c, struct fr_diag *d);
void fr_config_clear_triggers(struct fr_config *c);

/* Make KEY the source of T. SUBJECT is the value of the key, or NULL. 0, or -EINVAL with D: T has another
   source. */
int fr_config_claim_source(
	struct fr_trigger_config *t, const struct fr_config_key *key, const char *subject, struct fr_diag *d);
/* Remove the source of T if KEY names it. A built-in trigger keeps its source. Returns 0. */
int fr_config_release_source(struct fr_trigger_config *t, const struct fr_config_key *key);

/* The built-in probe whose name is similar to NAME, or NULL. */
const char *fr_config_nearest_probe(const char *name);
