/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The code addresses in a sample. */

#include "perfdata/record.h"

/* MODE is PERF_RECORD_MISC_USER, _KERNEL …. */
typedef void (*fr_sample_address_fn)(void *ctx, uint64_t address, uint16_t mode);

/* Calls EACH for the instruction pointer, the call chain, both ends of each branch, and each word of the
   copied user stack, which may be a return address. ATTR is the attr of the sample's event. Every length is
   checked: a truncated sample ends there. If ATTR has PERF_SAMPLE_READ, only the instruction pointer is
   given. */
void fr_sample_for_each_address(const struct perf_event_attr *attr, const struct perf_event_header *sample,
	fr_sample_address_fn each, void *ctx);
