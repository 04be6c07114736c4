/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What of its memory the machine, and the control group that this process is in, can spare. A ring is taken
 * from it as a whole, and neither swapped nor given back: so what does not fit is refused before it is taken,
 * as the kernel's answer later would be a kill.
 */

#include "base/diag.h"

#include <stdint.h>

struct fr_memory {
	uint64_t total, available; /* of the machine; total 0: not known */
	uint64_t limit, free;	   /* of the group that has the least to spare; limit 0: there is none */
	char group[256];	   /* its directory */
};

/* ROOT: "", or a directory that stands for /. What cannot be read does not count. */
void fr_memory_look(const char *root, struct fr_memory *ret);

/* The largest ring that fits beside all else, whole MiB, where one of NOW bytes (0: none) goes for it. */
uint64_t fr_memory_largest_ring(const struct fr_memory *m, uint64_t now);

/* Whether one of BYTES fits. -ENOMEM with D, which says what would; ORIGIN: "file:line", an option, or NULL.
 */
int fr_memory_check_ring(
	const struct fr_memory *m, uint64_t now, uint64_t bytes, const char *origin, struct fr_diag *d);

/* Bytes of KernelBuffer=auto for each of N_CPUS; LOCKED_MAX: what may be locked for all CPUs, 0: no limit. */
uint64_t fr_memory_kernel_buffer(uint64_t total, unsigned n_cpus, uint64_t locked_max);
/* The same for this machine and process. */
uint64_t fr_memory_kernel_buffer_here(void);
