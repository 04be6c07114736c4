/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Sorts side-band (records that are not samples) by time.
 *
 * The recorder drains the kernel rings of the CPUs one after the other. So the record of a child's exec on
 * one CPU can come before the record of the child's fork on another CPU. The recorder knows a low watermark:
 * a time such that no record that comes later is older. All records that are older than the low watermark
 * have come already, so they can be released in the order of time. The other records are pending. Not
 * thread-safe.
 */

#include "base/buf.h"

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

struct fr_reorder {
	struct fr_buf pending; /* whole records in the order of their arrival */
	size_t released_bytes; /* bytes of released records that are still in `pending` */
	struct fr_buf spare;   /* replaces `pending` when released records are removed from it */
	struct fr_buf index;   /* struct entry, private to reorder.c */
	bool is_sorted;
};

typedef int (*fr_reorder_apply)(void *ctx, const struct perf_event_header *record);

/* Adds records in the common layout (perfdata/record.h). An incomplete record at the end is ignored. Returns
   0 or -ENOMEM. */
int fr_reorder_add(struct fr_reorder *r, const void *records, size_t len);

/* Releases the records that are older than LOW_WATERMARK_NS: calls APPLY for each of them, the oldest first.
   Records of equal time come in the order of their arrival. All these records are released, even if APPLY
   fails. Returns 0 or the first negative errno of APPLY. */
int fr_reorder_release(struct fr_reorder *r, uint64_t low_watermark_ns, fr_reorder_apply apply, void *ctx);

/* Appends the pending records to RET, in the order of time. They stay pending. Returns 0 or -ENOMEM. */
int fr_reorder_write(struct fr_reorder *r, struct fr_buf *ret);
void fr_reorder_deinit(struct fr_reorder *r);
