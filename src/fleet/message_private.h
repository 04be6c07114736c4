/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The members of the messages: one table for reading and for writing. */

#include "fleet/message.h"

enum fr_fleet_kind {
	FR_FLEET_ID,	/* char[]: an id */
	FR_FLEET_NAME,	/* char[]: the name of a machine */
	FR_FLEET_WORD,	/* char[]: printable ASCII without blanks, not cut */
	FR_FLEET_TEXT,	/* char[]: for people: cut, and without control characters */
	FR_FLEET_KEY,	/* char[]: a path or a key: UTF-8 without control characters, not cut */
	FR_FLEET_SHA,	/* char[65]: 64 hexadecimal digits, or "" */
	FR_FLEET_TIME,	/* uint64_t, a decimal string */
	FR_FLEET_COUNT, /* uint64_t, a number up to 2^53 */
	FR_FLEET_ERROR, /* uint64_t, a decimal string; null: UINT64_MAX */
	FR_FLEET_SHIFT, /* int64_t, a decimal string */
	FR_FLEET_FLAG,	/* bool */
	FR_FLEET_STATE, /* enum fr_fleet_state, by its name */
	FR_FLEET_LABELS,
	FR_FLEET_CLOCK,
};

struct fr_fleet_field {
	const char *name;
	enum fr_fleet_kind kind;
	size_t offset, size;
	bool is_optional; /* may be missing: then "", 0 or false; a text that is "" is not written */
};

struct fr_fleet_table {
	const char *what; /* "the command" */
	const struct fr_fleet_field *fields;
	size_t n;
};

/* Each table is for the struct of its name. */
extern const struct fr_fleet_table fr_fleet_command_table, fr_fleet_answer_table, fr_fleet_presence_table,
	fr_fleet_manifest_table, fr_fleet_clock_table;

/* Sets the members of the struct at BASE from OBJECT. Returns 0; or -EBADMSG with a message in D. */
int fr_fleet_fields_read(const struct fr_fleet_table *t, const cJSON *object, void *base, struct fr_diag *d);
/* Returns the object of the struct at BASE, which the caller owns; or NULL if there is no memory. */
cJSON *fr_fleet_fields_json(const struct fr_fleet_table *t, const void *base);
