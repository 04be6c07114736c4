/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The format of a tracepoint's raw data, from tracefs (Documentation/trace/events.rst). */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fr_field_kind {
	FR_FIELD_NUMBER,
	FR_FIELD_TEXT,	  /* an array of char */
	FR_FIELD_DYNAMIC, /* __data_loc: a u32, with the offset and the size of data at the end of the raw
			     data */
	FR_FIELD_OTHER,	  /* arrays, strings elsewhere in memory, … */
};

struct fr_field {
	char name[64];
	uint32_t offset, bytes;
	bool is_signed;
	enum fr_field_kind kind;
};
#define FR_FIELDS_MAX 64u

struct fr_tracepoint_format {
	uint16_t id;
	struct fr_field fields[FR_FIELDS_MAX]; /* without the common fields */
	size_t n_fields;
	uint32_t data_bytes;  /* the end of the last field */
	uint32_t entry_bytes; /* the size of the kernel's struct with the fields; 0: not known */
	uint32_t dynamic;     /* the offset of the last field of kind FR_FIELD_DYNAMIC; 0: there is none */
	bool is_relative;     /* has fields with __rel_loc */
};

/* Parses the text of a file `format`. Changes the text. Returns 0, -EINVAL or -E2BIG. */
int fr_tracepoint_format_parse(char *text, struct fr_tracepoint_format *ret);

/* Returns the field with the name NAME, or NULL. */
const struct fr_field *fr_tracepoint_format_find(const struct fr_tracepoint_format *f, const char *name);
