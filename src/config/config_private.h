/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Declarations that the files of this folder share: the table of keys, and functions for events and triggers.
   Only the files of this folder and their tests include this header. */

#include "config/config.h"

#include <stdio.h>

/* How a reload puts a new value in force. */
enum fr_config_reload {
	FR_RELOAD_OTHER,   /* by code that is written for the key: RingSize=, [Triggers], [Trigger NAME] */
	FR_RELOAD_REOPEN,  /* the recorder opens its events again */
	FR_RELOAD_AT_ONCE, /* the value is copied; the recorder reads it each time that it needs it */
	FR_RELOAD_RESTART, /* the value waits for a restart */
};

#define FR_RING_SECTION "Ring NAME"
#define FR_TRIGGER_SECTION "Trigger NAME" /* in the table of keys, for all sections [Trigger NAME] */

struct fr_assignment;

/* The type of a value. A type with `parse` stores a number; a type with `is_string` stores a string. */
struct fr_value_type {
	const char *noun; /* for the message "KEY= is not NOUN" */
	const char *hint;
	int (*parse)(const char *text, uint64_t *ret); /* returns < 0 if TEXT is invalid */
	uint64_t least, most; /* bounds of a number; `most` 0: `parse` checks the bounds */
	const char *word; /* a word that means the number `word_value`, or an empty string; NULL: there is no
			     such word */
	uint64_t word_value;
	bool (*is_valid)(const char *text);	   /* checks a string; NULL: all strings are valid */
	int (*set)(const struct fr_assignment *a); /* stores the value, if `parse` is not enough */
	bool is_string;
};

/* A row of the table of keys. Tests compare the manual page and conf/flightrecd.conf with the table. */
struct fr_config_key {
	const char *section, *name;
	/* The line "KEY=", without a value, assigns this value. NULL: the line resets the member, or clears
	   the list. */
	const char *default_value;
	const struct fr_value_type *type;
	size_t offset, size; /* of the member in struct fr_config or struct fr_trigger_config; `size` 0: the
				key has no member */
	enum fr_config_reload reload;
	uint64_t unset; /* the value of the number after a reset, if the key has no default */
	/* The members below are for keys of [Trigger NAME] only. The source of a trigger is the code that
	   sees the anomalies. */
	unsigned kinds; /* bits 1 << enum fr_trigger_kind: the kinds that the key has an effect on; 0: all */
	enum fr_trigger_kind source; /* the kind of source that the key sets; 0: it sets no source */
};
extern const struct fr_config_key fr_config_keys[]; /* the last row has no name */

/* Returns whether the member of KEY has the same value in A and B. A and B are both a struct fr_config, or
   both a struct fr_trigger_config. */
bool fr_config_has_same_value(const struct fr_config_key *key, const void *a, const void *b);

/* Begins SECTION. If SECTION is "Trigger NAME", creates the trigger, even if no key follows. Returns 0;
   -ENOMEM; or -EINVAL if the section is unknown or the trigger cannot be created, with a message in D that
   begins with ORIGIN ("file:line"). */
int fr_config_begin_section(struct fr_config *c, const char *section, const char *origin, struct fr_diag *d);

/* Prints conf/flightrecd.conf, in which each key is a comment. */
void fr_config_print_default(FILE *f);

/* Does the same as fr_config_files(), but puts ROOT before the paths of the system's directories. */
int fr_config_files_at(const char *root, const char *path, char ***ret, struct fr_diag *d);
/* Parses the file F into C. NAME is the name of F in messages. Returns 0; -ENOMEM; -EIO, with a message in D;
   or -EINVAL with "NAME:line: …" in D. */
int fr_config_read(struct fr_config *c, FILE *f, const char *name, struct fr_diag *d);
/* Does the same as fr_options_parse(). But if the parameter `text` is not NULL, reads this text instead of
   the files. */
int fr_options_parse_text(struct fr_config *c, const char *text, int argc, char *argv[], struct fr_diag *d);

/* Frees *MEMBER, and sets it to a copy of VALUE, or to NULL if VALUE is NULL. Returns 0, or -ENOMEM without a
   change. */
int fr_string_replace(char **member, const char *value);
/* Returns whether the strings are equal, or both are NULL. */
bool fr_string_is_same(const char *a, const char *b);

/* Appends an event of the ring with the number RING. Returns 0; -ENOMEM; or -EINVAL, with a message in D, if
   there are too many events. */
int fr_config_add_event(
	struct fr_config *c, unsigned ring, const char *spec, const char *origin, struct fr_diag *d);
/* Sets the filter of the last event of RING. Returns 0; -ENOMEM; or -EINVAL, with a message in D, if the
   event already has a filter or if there is no event. */
int fr_config_set_last_filter(struct fr_config *c, unsigned ring, const char *filter, struct fr_diag *d);
/* Removes the events of the ring with the number RING. */
void fr_config_clear_events(struct fr_config *c, unsigned ring);

/* If SECTION is "KIND NAME", returns NAME, which can be empty or invalid. Otherwise returns NULL. */
const char *fr_config_name_in_section(const char *section, const char *kind);
const char *fr_config_ring_name(const char *section); /* the same, of "Ring NAME" */
/* Does for rings the same as fr_config_add_trigger(). */
int fr_config_add_ring(struct fr_config *c, const char *name, const char *origin, struct fr_ring_config **ret,
	struct fr_diag *d);
void fr_config_clear_rings(struct fr_config *c);
/* Checks that each ring has events. Returns 0; or -EINVAL, with a message in D. */
int fr_config_check_rings(const struct fr_config *c, struct fr_diag *d);
/* If SECTION is "Trigger NAME", returns NAME, which can be empty or invalid. Otherwise returns NULL. */
const char *fr_config_trigger_name(const char *section);
/* Finds or creates the trigger NAME. *RET is borrowed until the next trigger is created. Returns 0; -ENOMEM;
   or -EINVAL, with a message in D, if the name is invalid, or if there are too many triggers. */
int fr_config_add_trigger(struct fr_config *c, const char *name, const char *origin,
	struct fr_trigger_config **ret, struct fr_diag *d);
/* Checks that each trigger has a source, and that each of its keys has an effect. Returns 0, or -EINVAL with
   a message in D that begins with the origin of the trigger. */
int fr_config_check_triggers(const struct fr_config *c, struct fr_diag *d);
void fr_config_clear_triggers(struct fr_config *c);
/* Checks the keys of [Fleet] that need each other. Returns 0; or -EINVAL, with a message in D. */
int fr_config_check_fleet(const struct fr_config *c, struct fr_diag *d);

/* Sets the source of T to the kind that KEY sets. SUBJECT is the value of KEY, or NULL. Returns 0; or
   -EINVAL, with a message in D, if T already has another source. */
int fr_config_claim_source(
	struct fr_trigger_config *t, const struct fr_config_key *key, const char *subject, struct fr_diag *d);
/* Removes the source of T, if KEY sets a source of this kind. A built-in trigger keeps its source. Returns
   0. */
int fr_config_release_source(struct fr_trigger_config *t, const struct fr_config_key *key);

/* Returns the name of a built-in probe that is similar to NAME, or NULL if no name is similar. */
const char *fr_config_nearest_probe(const char *name);
