/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Additions to cJSON, for the folders whose code is linked with cJSON. No other file of base/ includes this
   header. */

#include "base/clock.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

/* Adds a number to OBJECT as raw text, because cJSON keeps numbers as double, which is exact only up to 2^53.
   Returns the new item, which OBJECT owns, or NULL if there is no memory. */
static inline cJSON *fr_json_add_u64(cJSON *object, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	return cJSON_AddRawToObject(object, name, text);
}

struct fr_json_number {
	const char *name;
	uint64_t value;
};

static inline bool fr_json_add_numbers(cJSON *object, const struct fr_json_number *numbers, size_t n)
{
	bool ok = true;

	for (size_t i = 0; i < n; i++)
		ok = fr_json_add_u64(object, numbers[i].name, numbers[i].value) && ok;
	return ok;
}

/* Adds numbers to OBJECT: FR_JSON_ADD_NUMBERS(object, {"name", number}, …). Returns false if there was not
   enough memory. */
#define FR_JSON_ADD_NUMBERS(object, ...)                                                                     \
	fr_json_add_numbers(object, (const struct fr_json_number[]){__VA_ARGS__},                            \
		sizeof((const struct fr_json_number[]){__VA_ARGS__}) / sizeof(struct fr_json_number))

/* Adds a time in the form of RFC 3339. Returns the new item, or NULL if there is no memory. */
static inline cJSON *fr_json_add_time(cJSON *object, const char *name, uint64_t realtime_ns)
{
	char text[FR_STAMP_SIZE];

	fr_rfc3339_format(realtime_ns, text);
	return cJSON_AddStringToObject(object, name, text);
}

/* Returns the text of the member NAME; OBJECT owns the text. Returns "" if there is no member NAME, or if it
   is not a string. */
static inline const char *fr_json_text(const cJSON *object, const char *name)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

	return text ? text : "";
}

/* Appends a formatted text to ARRAY. A text of more than 2047 bytes is truncated. */
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
