/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The code addresses in a sample: where it was, and how it came there. */

#include "perfdata/record.h"

/* Call EACH for the instruction pointer, the call chain, both ends of each branch, and each word of the
   user's stack, which may be a return address. MODE is PERF_RECORD_MISC_USER or _KERNEL …. ATTR is that of
   the sample's event. Every length is checked; a sample that is cut short ends there. An attr with
   PERF_SAMPLE_READ or without an IP at its usual place gives what comes before. */
typedef void (*fr_sample_address_fn)(void *ctx, uint64_t address, uint16_t mode);
void fr_sample_for_each_address(const struct perf_event_attr *attr, const struct perf_event_header *sample,
	fr_sample_address_fn each, void *ctx);
