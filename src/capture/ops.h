/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The interface between a drain of kernel rings and those who take the records. */

#include <stddef.h>
#include <stdint.h>

/* A run: whole records in our layout (perfdata/record.h), at most FR_RUN_MAX bytes, or samples_max. Valid
   during the call that gets it. */
#define FR_RUN_MAX (64u << 10)
struct fr_run {
	const void *data;
	size_t len;
	uint32_t records;
	uint64_t first_ns, last_ns; /* smallest and largest time */
};

struct fr_capture_ops {
	void (*sideband)(void *ctx, const struct fr_run *run);
	void (*samples)(void *ctx, const struct fr_run *run);
	void *ctx;
	size_t samples_max; /* bytes of a run of samples from a forward ring; 0: FR_RUN_MAX */
};
