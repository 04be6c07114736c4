/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Each record once. Windows of dumps overlap, and a record is in every file whose window it fell into; but a
 * file may also hold two records that are the same to the byte. So among the records of one time, each
 * distinct one is kept as often as it stands in the input that has it most often.
 */

#include "base/buf.h"

#include <linux/perf_event.h>
#include <stdbool.h>

/* More bytes of one time than this are not compared: the table does not grow with the input. */
#define FR_GROUP_MAX (64u << 20)

struct fr_group {
	struct fr_buf bytes;
	struct fr_group_entry *entries;
	size_t n, cap;
	uint32_t *buckets; /* index + 1 of the first entry */
	size_t n_buckets;
	bool overflow;
};

/* Forget the records of the last time. */
void fr_group_clear(struct fr_group *g);
/* Whether RECORD, of INPUT, is to be written: 1, 0, or -ENOMEM. All records of an input come in a row. */
int fr_group_add(struct fr_group *g, size_t input, const struct perf_event_header *record);
void fr_group_deinit(struct fr_group *g);
