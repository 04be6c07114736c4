/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Side-band in the order of its time.
 *
 * A ring per CPU is drained after the other, so a child's exec, from one CPU, may come before the fork that
 * made it, from another. Whoever drains knows a low watermark: nothing that comes later is older. What is
 * older than the low watermark is complete, and is handed out in order; the rest is held back. Not
 * thread-safe.
 */

#include "base/buf.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

struct fr_reorder_entry {
	uint64_t time;
	size_t at; /* in held: also the order of arrival */
};

struct fr_reorder {
	struct fr_buf held; /* whole records, as they came */
	size_t dead;	    /* bytes of it that have been handed out */
	struct fr_buf spare;
	struct fr_reorder_entry *index;
	size_t n, cap;
	bool sorted; /* so far, as they came */
};

typedef int (*fr_reorder_apply)(void *ctx, const struct perf_event_header *record);

/* Take in records in our layout; what is not whole at their end is left out. 0 or -ENOMEM. */
int fr_reorder_add(struct fr_reorder *r, const void *records, size_t len);

/* Hand out what is older than LOW_WATERMARK_NS, oldest first, equal times as they came. 0 or a negative errno
   of APPLY's, and then all the same has been handed out. */
int fr_reorder_release(struct fr_reorder *r, uint64_t low_watermark_ns, fr_reorder_apply apply, void *ctx);

/* Append what is held back, in order. 0 or -ENOMEM. */
int fr_reorder_write(struct fr_reorder *r, struct fr_buf *ret);
void fr_reorder_deinit(struct fr_reorder *r);
