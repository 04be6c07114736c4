/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The interface io.flightrec.Recorder: the names of its methods, and functions to read parameters. The file
 * io.flightrec.Recorder.varlink describes the parameters and replies of each method.
 */

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#define FR_INTERFACE "io.flightrec.Recorder"
/* The name of a method: FR_METHOD(Dump). */
#define FR_METHOD(name) FR_INTERFACE "." #name

#define FR_CONTROL_SOCKET "/run/flightrec/control"

/* The text of io.flightrec.Recorder.varlink. */
extern const char fr_interface_description[];

/* These functions read the member NAME of PARAMETERS (may be NULL). They return 1 and set *RET; 0 if the
   member is absent or null; or -EINVAL if the member has another type or is out of range. *RET changes only
   if a function returns 1. Strings are borrowed from PARAMETERS. Numbers must be whole and from 0 to 2^53,
   because each JSON parser reads such a number exactly. */
int fr_param_u64(const cJSON *parameters, const char *name, uint64_t *ret);
int fr_param_string(const cJSON *parameters, const char *name, const char **ret);
int fr_param_bool(const cJSON *parameters, const char *name, bool *ret);

/* Returns whether fr_param_u64() can read ITEM. */
cJSON_bool fr_param_is_u64(const cJSON *item);

/* Do the same for a time in nanoseconds, which can be larger: up to 2^62. Above 2^53 (a machine that has run
   for 104 days), it is exact to some nanoseconds, because JSON numbers are read as double. A string of
   decimal digits is a time, too, and is always exact. */
int fr_param_time(const cJSON *parameters, const char *name, uint64_t *ret);
cJSON_bool fr_param_is_time(const cJSON *item);

struct fr_param {
	const char *name;
	cJSON_bool (*is_valid)(const cJSON *item); /* checks type or range, like cJSON_IsString() */
	bool required;
};

/* Checks PARAMETERS against the list `known`, which ends with an entry without a name. Returns NULL if all
   are valid; otherwise the name of a parameter that is unknown, missing, of another type or out of range. */
const char *fr_param_check(const cJSON *parameters, const struct fr_param *known);
