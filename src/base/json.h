/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Additions to cJSON, for folders that link it. Nothing else in base/ includes this header. */

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>

/* Adds a number to OBJECT as text, because a double is exact only up to 2^53. Returns the new item, which
   OBJECT owns, or NULL if there is no memory. */
static inline cJSON *fr_json_add_u64(cJSON *object, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	return cJSON_AddRawToObject(object, name, text);
}
