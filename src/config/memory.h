/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * How much memory the machine and the control group of this process can spare. A ring takes its memory at
 * once and keeps it. The recorder refuses a ring that does not fit, because the kernel would kill it later.
 */

#include "base/diag.h"

#include <stdint.h>

struct fr_memory {
	uint64_t total, available; /* of the machine, in bytes; total 0: unknown */
	uint64_t limit, free; /* of the control group with the least to spare; limit 0: there is no limit */
	char group[256];      /* its directory */
};

/* ROOT is "", or a directory that stands for /. A file that cannot be read sets no limit. */
void fr_memory_read(const char *root, struct fr_memory *ret);

/* The largest ring that fits, in bytes: whole MiB. NOW: the bytes of the ring that it replaces; 0: none. */
uint64_t fr_memory_largest_ring(const struct fr_memory *m, uint64_t now);

/* 0: a ring of BYTES fits. -ENOMEM with D: it does not; the hint says what would. ORIGIN is "file:line", an
   option, or NULL. */
int fr_memory_check_ring(
	const struct fr_memory *m, uint64_t now, uint64_t bytes, const char *origin, struct fr_diag *d);

/* The bytes of KernelBuffer=auto for each of N_CPUS. TOTAL: of the machine; 0: unknown. LOCKED_MAX: the bytes
   that may be locked for all CPUs; 0: no limit. */
uint64_t fr_memory_kernel_buffer(uint64_t total, unsigned n_cpus, uint64_t locked_max);
/* The same for this machine and process. */
uint64_t fr_memory_kernel_buffer_here(void);
