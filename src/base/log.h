/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The log of a program. Libraries do not log, they return errors.
 *
 * If standard error is the journal, an entry goes to the journal together with its fields. Otherwise one line
 * of text goes to standard error. The recorder thread must not log, because the socket of the journal can
 * block. All other threads may log.
 */

#include <stddef.h>
#include <syslog.h>

struct fr_diag;

/* A field of a journal entry. journald accepts KEY only in capitals. */
struct fr_log_field {
	const char *key;
	const char *value;
};

/* MESSAGE_IDs. conf/flightrec.catalog explains each. */
#define FR_MSG_STARTED "3c1a76b0a7b24d5a9d1f6a0a5be3c201"
#define FR_MSG_STOPPED "3c1a76b0a7b24d5a9d1f6a0a5be3c202"
#define FR_MSG_DUMPED "3c1a76b0a7b24d5a9d1f6a0a5be3c203"
#define FR_MSG_DUMP_FAILED "3c1a76b0a7b24d5a9d1f6a0a5be3c204"
#define FR_MSG_LOSS "3c1a76b0a7b24d5a9d1f6a0a5be3c205"
#define FR_MSG_RELOADED "3c1a76b0a7b24d5a9d1f6a0a5be3c206"
#define FR_MSG_MERGED "3c1a76b0a7b24d5a9d1f6a0a5be3c207"
#define FR_MSG_DEGRADED "3c1a76b0a7b24d5a9d1f6a0a5be3c208"
#define FR_MSG_SUPPRESSED "3c1a76b0a7b24d5a9d1f6a0a5be3c209"
#define FR_MSG_NOT_ARMED "3c1a76b0a7b24d5a9d1f6a0a5be3c20a"
#define FR_MSG_FREQUENCY "3c1a76b0a7b24d5a9d1f6a0a5be3c20e"
#define FR_MSG_OVER_BUDGET "3c1a76b0a7b24d5a9d1f6a0a5be3c20f"
#define FR_MSG_OLD_CONFIG "3c1a76b0a7b24d5a9d1f6a0a5be3c210"
#define FR_MSG_RESCUED "3c1a76b0a7b24d5a9d1f6a0a5be3c211"
#define FR_MSG_SWITCHED "3c1a76b0a7b24d5a9d1f6a0a5be3c212"
#define FR_MSG_FLEET_LINK "3c1a76b0a7b24d5a9d1f6a0a5be3c220"
#define FR_MSG_FLEET_COMMAND "3c1a76b0a7b24d5a9d1f6a0a5be3c221"
#define FR_MSG_FLEET_REFUSED "3c1a76b0a7b24d5a9d1f6a0a5be3c222"
#define FR_MSG_FLEET_STORED "3c1a76b0a7b24d5a9d1f6a0a5be3c223"
#define FR_MSG_FLEET_STORE_FAILED "3c1a76b0a7b24d5a9d1f6a0a5be3c224"
#define FR_MSG_FLEET_INCIDENT "3c1a76b0a7b24d5a9d1f6a0a5be3c225"

/* Sets the least important level that is logged (LOG_ERR … LOG_DEBUG). The default is LOG_INFO. */
void fr_log_set_level(int level);

/* Sets the prefix of text lines, and SYSLOG_IDENTIFIER of the journal. NAME must stay valid. */
void fr_log_set_program(const char *name);

/* Logs a text with the fields FIELDS. MESSAGE_ID may be NULL. FIELDS may be NULL if N_FIELDS is 0. */
void fr_log_struct(int level, const char *message_id, const struct fr_log_field *fields, unsigned n_fields,
	const char *fmt, ...) __attribute__((format(printf, 5, 6)));
#define fr_log(level, ...) fr_log_struct(level, NULL, NULL, 0, __VA_ARGS__)

/* Logs the text of D, and the hint of D on a second line. If D is empty, logs strerror(-CODE). */
void fr_log_diag(int level, const struct fr_diag *d, int code);
