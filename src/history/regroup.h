/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Puts the samples of each CPU in a chunk one after the other, so that zstd makes the chunk smaller. A round
 * drains the CPUs one after the other. So the samples of a rare event come as many short runs, a few of each
 * CPU, and the more so, the more often the kernel rings fill with other events (docs/design/21).
 */

#include <stddef.h>
#include <stdint.h>

struct fr_regroup;

/* Allocates all memory for chunks of up to MAX_BYTES. Returns 0 or -ENOMEM. One thread at a time uses an
   fr_regroup. */
int fr_regroup_new(size_t max_bytes, struct fr_regroup **ret);
struct fr_regroup *fr_regroup_free(struct fr_regroup *g);

/* Begins a new chunk. */
void fr_regroup_clear(struct fr_regroup *g);
/* Adds a run of LEN bytes that comes from the kernel ring of the CPU with the index CPU_INDEX. */
void fr_regroup_add(struct fr_regroup *g, unsigned cpu_index, size_t len);

/* DATA are the LEN bytes of the chunk: maybe bytes that were not added, and then the runs. Returns them with
   the runs sorted by CPU; the runs of one CPU stay in their order. The result is DATA if there is nothing to
   gain. Otherwise it is a copy that is valid until the next call, aligned like memory of malloc(). After this
   call, no run may be added before fr_regroup_clear(). */
const uint8_t *fr_regroup_join(struct fr_regroup *g, const uint8_t *data, size_t len);
