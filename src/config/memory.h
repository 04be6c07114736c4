/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Finds out how much memory is free on the machine and in the control group of this process. The recorder
 * takes the memory of the whole ring when it creates the ring. It refuses a ring that does not fit into the
 * free memory, because otherwise the kernel would kill the recorder later.
 */

#include "base/diag.h"

#include <stdint.h>

struct fr_memory {
	uint64_t total, available; /* memory of the machine in bytes; `total` 0: `total` and `available` are
				      unknown */
	uint64_t limit, free;	   /* of the control group with the least free memory; `limit` 0: no limit */
	char group[256];	   /* the directory of this control group */
	/* Bytes that the recorder will take later, beside the ring: UnwindMemory=. fr_memory_read() sets it
	   to 0. It counts only if there is no ring yet. */
	uint64_t later;
};

/* Reads the files of /proc and cgroupfs below ROOT, which is "" or a directory that a test uses in place of
   /. A file that cannot be read sets no limit. */
void fr_memory_read(const char *root, struct fr_memory *ret);

/* Returns the size in bytes, a multiple of 1 MiB, of the largest ring that fits. If there is no limit, the
   result is larger than any ring. The parameter `now` is the size of the ring that the new ring replaces, or
   0 if there is no ring yet. */
uint64_t fr_memory_largest_ring(const struct fr_memory *m, uint64_t now);

/* Checks whether a ring of BYTES bytes fits. The parameter `now` is the same as for fr_memory_largest_ring().
   ORIGIN says where the size is set: "file:line", an option, or NULL. Returns 0; or -ENOMEM, with a message
   in D. The hint of D has the largest size that fits. */
int fr_memory_check_ring(
	const struct fr_memory *m, uint64_t now, uint64_t bytes, const char *origin, struct fr_diag *d);

/* Does the same for the memory of this machine and of the control group of this process. LATER is
   fr_memory.later. */
int fr_memory_check_ring_here(
	uint64_t later, uint64_t now, uint64_t bytes, const char *origin, struct fr_diag *d);

/* Returns the value of KernelBuffer=auto in bytes: the size of the kernel ring of each of N_CPUS CPUs. TOTAL
   is the memory of the machine in bytes, or 0 if it is unknown. LOCKED_MAX is the number of bytes that this
   process may lock for all CPUs together, or 0 if there is no limit. */
uint64_t fr_memory_kernel_buffer(uint64_t total, unsigned n_cpus, uint64_t locked_max);
/* Returns the result of fr_memory_kernel_buffer() for the memory and CPUs of this machine and the limit of
   this process. */
uint64_t fr_memory_kernel_buffer_here(void);
