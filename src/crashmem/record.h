/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The crash record, which the kernel module flightrec_mem writes into the crash memory (crashmem.h) when the
   kernel panics or has an oops. include/flightrec/crashmem.h has its layout. Any thread. */

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

#include "flightrec/crashmem.h"

struct fr_crash_record {
	struct flightrec_crash_record r; /* each text ends with a zero byte, and is one line of valid UTF-8 */
	char *log;			 /* log_bytes bytes and a zero byte; not checked for UTF-8 */
};

/* Reads the record at AREA, which has BYTES bytes and is not trusted. Returns 0, and the caller calls
   fr_crash_record_deinit(); -ENOENT if there is no record; -EBADMSG if the record is torn, damaged or of
   another version; or -ENOMEM. */
int fr_crash_record_read(const void *area, size_t bytes, struct fr_crash_record *ret);
void fr_crash_record_deinit(struct fr_crash_record *r);
#define _cleanup_crash_record_ _cleanup_(fr_crash_record_deinit)

/* Returns "panic" or "oops". */
const char *fr_crash_record_kind(const struct fr_crash_record *r);

/* Returns the record as JSON: kind, reason, time, task, registers, stack, and the newest lines of the log.
   The caller owns the result. Returns NULL if there is no memory. */
cJSON *fr_crash_record_to_json(const struct fr_crash_record *r);
