/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The fields of a sample, and the code addresses in it. */

#include "perfdata/record.h"

/* The fields of a sample. A field that the sample does not have is 0 or NULL. The pointers point into the
   sample. */
struct fr_sample_fields {
	uint64_t id, ip, time, addr, period;
	uint64_t cgroup; /* the id of the cgroup (perf record --all-cgroups) */
	uint32_t pid, tid, cpu;
	uint16_t mode;	       /* PERF_RECORD_MISC_USER, PERF_RECORD_MISC_KERNEL and so on, of `ip` */
	const uint64_t *chain; /* the call chain, with its markers (PERF_CONTEXT_…) */
	size_t n_chain;
	const uint8_t *raw; /* the raw data of a tracepoint, without its size */
	size_t raw_bytes;
	const uint8_t *branches; /* of 24 bytes each: from, to, flags */
	size_t n_branches;
	const uint8_t *stack; /* the copy of the user stack */
	size_t stack_bytes;
};

/* Reads the fields of SAMPLE. ATTR is the attr of the sample's event. All lengths are checked. Returns 0; or
   -EBADMSG if the sample ends too early. In this case, RET has the fields before the end, and `n_chain` and
   `n_branches` are the numbers of whole elements. Fields behind the cgroup are not read. */
int fr_sample_parse(const struct perf_event_attr *attr, const struct perf_event_header *sample,
	struct fr_sample_fields *ret);

/* Returns whether ADDRESS of a call chain is a marker. If it is, and the marker is known, *MODE gets the mode
   of the addresses after it. */
bool fr_sample_is_marker(uint64_t address, uint16_t *mode);

/* Gets one address. MODE is PERF_RECORD_MISC_USER, PERF_RECORD_MISC_KERNEL and so on. */
typedef void (*fr_sample_address_fn)(void *ctx, uint64_t address, uint16_t mode);

/* Calls EACH for the instruction pointer, the call chain, both ends of each branch, and each word of the
   copied user stack, because a word may be a return address. ATTR is the attr of the sample's event. EACH
   gets the addresses before the end of a truncated sample. */
void fr_sample_for_each_address(const struct perf_event_attr *attr, const struct perf_event_header *sample,
	fr_sample_address_fn each, void *ctx);
