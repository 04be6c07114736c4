/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Finds the code addresses in a sample. */

#include "perfdata/record.h"

/* Gets one address. MODE is PERF_RECORD_MISC_USER, PERF_RECORD_MISC_KERNEL and so on. */
typedef void (*fr_sample_address_fn)(void *ctx, uint64_t address, uint16_t mode);

/* Calls EACH for the instruction pointer, the call chain, both ends of each branch, and each word of the
   copied user stack, because a word may be a return address. ATTR is the attr of the sample's event. If ATTR
   has PERF_SAMPLE_READ, EACH gets only the instruction pointer. All lengths are checked: EACH gets the
   addresses before the end of a truncated sample. */
void fr_sample_for_each_address(const struct perf_event_attr *attr, const struct perf_event_header *sample,
	fr_sample_address_fn each, void *ctx);
