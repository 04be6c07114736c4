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
#define FR_METHOD_DUMP FR_INTERFACE ".Dump"
#define FR_METHOD_CANCEL FR_INTERFACE ".Cancel"
#define FR_METHOD_STATUS FR_INTERFACE ".Status"
#define FR_METHOD_LIST FR_INTERFACE ".List"
#define FR_METHOD_VACUUM FR_INTERFACE ".Vacuum"
#define FR_METHOD_REMOVE FR_INTERFACE ".Remove"
#define FR_METHOD_STOP FR_INTERFACE ".Stop"
#define FR_METHOD_RELOAD FR_INTERFACE ".Reload"
#define FR_METHOD_TRIGGERS FR_INTERFACE ".Triggers"
#define FR_METHOD_TEST_TRIGGER FR_INTERFACE ".TestTrigger"
#define FR_METHOD_SET_TRIGGER FR_INTERFACE ".SetTrigger"
#define FR_METHOD_DECISIONS FR_INTERFACE ".Decisions"
#define FR_METHOD_METRICS FR_INTERFACE ".Metrics"
#define FR_METHOD_WATCH FR_INTERFACE ".Watch"

#define FR_CONTROL_SOCKET "/run/flightrec/control"

/* The text of io.flightrec.Recorder.varlink. */
extern const char fr_interface_description[];

/* Read the member NAME of PARAMETERS (may be NULL). Return 1 with *RET; 0 if the member is absent or null; or
   -EINVAL if it has another type or is out of range. *RET changes only if they return 1. Strings are borrowed
   from PARAMETERS. Numbers are whole and at most 2^53, because JSON represents these exactly. */
int fr_param_u64(const cJSON *parameters, const char *name, uint64_t *ret);
int fr_param_string(const cJSON *parameters, const char *name, const char **ret);
int fr_param_bool(const cJSON *parameters, const char *name, bool *ret);

/* Returns the name of the first member of PARAMETERS that is not in NAMES, or NULL. NULL ends NAMES. */
const char *fr_param_unknown(const cJSON *parameters, const char *const *names);
