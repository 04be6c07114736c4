/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* For tests of the capture on the running kernel: what it takes to try, and a load of known behaviour. */

#include "capture/capture.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* tracefs where every program looks for it, in a mount namespace of our own so that nothing stays behind.
   False where it cannot be had. */
bool live_tracefs(void);

/* A capture of SPEC (with FILTER where it is not NULL), opened. Skips the test where the kernel forbids it.
 */
struct fr_capture *live_open(const char *spec, const char *filter, struct fr_capture_config *config);
void live_enable(struct fr_capture *c);

/* What a drain handed out. */
struct live_seen {
	uint64_t samples, sideband, backward; /* backward: times that went back within a CPU's ring */
	uint64_t of_tid; /* samples of TID; MMAP2 records of it with a build id, its COMM, FORK and EXIT */
	uint32_t tid;
	uint64_t mmap2, build_ids, comms, forks, exits;
	uint64_t last_time;
};
void live_drain(struct fr_capture *c, struct live_seen *seen);
void live_drain_overwrite(struct fr_capture *c, struct live_seen *seen);

/* Sums over all CPUs. */
struct fr_counter live_counter(const struct fr_capture *c, size_t event);

void live_getppid(uint64_t times);
/* To the CPU that we are on, which it returns: not every machine lets us have any other. */
int live_pin(void);
void live_spin_ms(unsigned ms);
