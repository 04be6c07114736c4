/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Additions to cJSON, for folders that link it. Nothing else in base/ includes this header. */

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* Adds a number to OBJECT as text, because a double is exact only up to 2^53. Returns the new item, which
   OBJECT owns, or NULL without memory. */
static inline cJSON *fr_json_add_u64(cJSON *object, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	return cJSON_AddRawToObject(object, name, text);
}

/* Appends a string of at most 2047 bytes to ARRAY. */
static inline void __attribute__((format(printf, 2, 3)))
fr_json_add_line(cJSON *array, const char *format, ...)
{
	char text[2048];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	cJSON_AddItemToArray(array, cJSON_CreateString(text));
}
