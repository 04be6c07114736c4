/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Names that all parts of the fleet share: streams, subjects, ids, machines. docs/design/85 has the table of
   the streams. */

#include "base/diag.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FR_STREAM_COMMANDS "FLIGHTREC_COMMANDS"
#define FR_STREAM_ANSWERS "FLIGHTREC_ANSWERS"
#define FR_STREAM_PRESENCE "FLIGHTREC_PRESENCE"
#define FR_STREAM_INDEX "FLIGHTREC_INDEX"
#define FR_STREAM_INCIDENTS "FLIGHTREC_INCIDENTS"

#define FR_SUBJECT_COMMAND "flightrec.command"	 /* .ID */
#define FR_SUBJECT_ANSWER "flightrec.answer"	 /* .ID.MACHINE */
#define FR_SUBJECT_PRESENCE "flightrec.presence" /* .MACHINE */
#define FR_SUBJECT_INDEX "flightrec.index"	 /* .ID.MACHINE */
#define FR_SUBJECT_INCIDENT "flightrec.incident" /* .SELECTOR */

#define FR_FLEET_ID_SIZE 28		 /* "20261128T205726Z-1f3a5c7e" with its NUL */
#define FR_FLEET_NAME_SIZE 65		 /* the name of a machine, with its NUL: as in HOST_NAME_MAX */
#define FR_FLEET_TOKEN_SIZE 193		 /* the same as one token of a subject: 3 bytes for each byte */
#define FR_FLEET_SUBJECT_SIZE 256	 /* any subject of the fleet, with its NUL */
#define FR_FLEET_MESSAGE_MAX (64u << 10) /* bytes of a message; a longer one is not accepted */

#define FR_PRESENCE_INTERVAL_NS (30 * 1000000000ULL) /* an agent stores its presence this often */
/* A machine whose last presence is older than this counts as not reachable. */
#define FR_PRESENCE_STALE_NS (100 * 1000000000ULL)

/* Makes a new id from WALL_NS (nanoseconds since the epoch) and a random number. Returns 0 or a negative
   errno. */
int fr_fleet_id_new(uint64_t wall_ns, char ret[FR_FLEET_ID_SIZE]);
/* Returns whether TEXT has the form of an id. */
bool fr_fleet_id_is_valid(const char *text);
/* Writes the time of the id into RET_WALL_NS. Returns 0 or -EINVAL. */
int fr_fleet_id_time(const char *id, uint64_t *ret_wall_ns);

/* Returns whether NAME can be the name of a machine: 1 to 64 bytes of printable ASCII without blanks, '/'. */
bool fr_fleet_name_is_valid(const char *name);
/* Encodes a valid NAME as one token. */
void fr_fleet_token(const char *name, char ret[FR_FLEET_TOKEN_SIZE]);
/* Decodes TOKEN (N bytes). Returns 0; or -EINVAL if no valid name has this token. */
int fr_fleet_token_decode(const char *token, size_t n, char ret[FR_FLEET_NAME_SIZE]);

/* Makes "PREFIX.ID", "PREFIX.MACHINE" or "PREFIX.ID.MACHINE". ID and NAME may be NULL, and are valid. */
void fr_fleet_subject(const char *prefix, const char *id, const char *name, char ret[FR_FLEET_SUBJECT_SIZE]);
/* Splits SUBJECT, which begins with PREFIX, into its id and its machine. A buffer that is NULL means that the
   subject has no such token. Returns 0; or -EINVAL if SUBJECT has another form. */
int fr_fleet_subject_parse(const char *subject, const char *prefix, char ret_id[FR_FLEET_ID_SIZE],
	char ret_name[FR_FLEET_NAME_SIZE]);
