/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Logging of the programs (libraries return, they do not log).
 *
 * To the journal with fields where standard error is the journal (JOURNAL_STREAM names it), else one line of
 * text on standard error with a "<N>" free prefix. Thread-safe; may block on the journal socket, so never on
 * the recorder thread.
 */

#include <syslog.h>

struct fr_diag;

/* A field of a journal entry. KEY in capitals, as journald wants it. */
struct fr_log_field {
	const char *key;
	const char *value;
};

/* MESSAGE_IDs, each explained in conf/flightrec.catalog. 128-bit hex, as sd-id128 prints them. */
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

/* Entries above LEVEL (LOG_ERR … LOG_DEBUG) are dropped; the start value is LOG_INFO. */
void fr_log_set_level(int level);

/* The name before text lines; the journal gets it as SYSLOG_IDENTIFIER. Kept by reference. */
void fr_log_set_program(const char *name);

void fr_log(int level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* MESSAGE_ID may be NULL. FIELDS may be NULL where N_FIELDS is 0. */
void fr_log_struct(int level, const char *message_id, const struct fr_log_field *fields, unsigned n_fields,
	const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* What D says, and its hint on a second line. CODE as in fr_diag_print(). */
void fr_log_diag(int level, const struct fr_diag *d, int code);
