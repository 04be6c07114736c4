/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* A sorted set of records, for the search of equal ones. Private to this folder. */

#include "base/buf.h"

#include <linux/perf_event.h>
#include <stdbool.h>

struct fr_record_set {
	const struct perf_event_header **records; /* sorted; they stay in the buffer */
	size_t n;
};

/* Sets RET to the records of BUF, which is borrowed as long as RET is used. Returns 0 or -ENOMEM. */
int fr_record_set_init(struct fr_record_set *ret, const struct fr_buf *buf);
void fr_record_set_deinit(struct fr_record_set *s);
/* Returns whether S has a record with the same bytes as H. */
bool fr_record_set_has(const struct fr_record_set *s, const struct perf_event_header *h);
