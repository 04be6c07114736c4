/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The interface io.flightrec.Recorder: names of its methods, its description, and the reading of parameters
 * that handlers share. What each method takes and gives is in interface.c, in Varlink's own language.
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

/* The interface in Varlink's IDL, for fr_server_config.description. Static storage. */
extern const char fr_interface_description[];

/* The member NAME of PARAMETERS (may be NULL). 1: it is there, *RET is set; 0: absent or null, *RET is as
   before; -EINVAL: of another type or out of range. Strings are borrowed from PARAMETERS; numbers are whole
   and up to 2^53, which is what JSON carries exactly. */
int fr_param_u64(const cJSON *parameters, const char *name, uint64_t *ret);
int fr_param_string(const cJSON *parameters, const char *name, const char **ret);
int fr_param_bool(const cJSON *parameters, const char *name, bool *ret);

/* The first member of PARAMETERS that is not in NAMES (ended by NULL), or NULL: all are known. */
const char *fr_param_unknown(const cJSON *parameters, const char *const *names);
