/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The memory of unwind tables and maps, in the BPF map fr_unwind_chunks (src/bpf/unwind.h). A chunk is made
 * when the chunks before it are full, up to a bound. Not thread-safe.
 */

#include "base/buf.h"
#include "bpf/unwind.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fr_unwind_memory;

/* CHUNKS_FD is the outer map; borrowed. Makes the first chunk. Returns 0 or a negative errno. */
int fr_unwind_memory_new(int chunks_fd, uint64_t bytes_max, struct fr_unwind_memory **ret);
/* Leaves the chunks in the outer map, because BPF programs can live on. */
struct fr_unwind_memory *fr_unwind_memory_free(struct fr_unwind_memory *m);

/* Returns the position of BYTES bytes (1 … FR_UNWIND_CHUNK_BYTES), which have any content; 0 if there is no
   room. */
fr_unwind_at fr_unwind_memory_take(struct fr_unwind_memory *m, size_t bytes);
/* Returns the address of a position that is taken. It is valid until the position is given back. */
void *fr_unwind_memory_address(const struct fr_unwind_memory *m, fr_unwind_at at);

/* Gives back BYTES bytes at AT, which no BPF program can read any more. AT can be 0. */
void fr_unwind_memory_give(struct fr_unwind_memory *m, fr_unwind_at at, size_t bytes);
/* Does the same for memory that no BPF program can find any more, but that some still read. It becomes free
   in the next fr_unwind_memory_wait(). */
void fr_unwind_memory_give_later(struct fr_unwind_memory *m, fr_unwind_at at, size_t bytes);
/* Waits until all BPF programs have ended that run now. This takes some milliseconds. Returns 0; or a
   negative errno: then no memory became free. */
int fr_unwind_memory_wait(struct fr_unwind_memory *m);
/* Returns the bytes that fr_unwind_memory_wait() would make free. */
size_t fr_unwind_memory_waiting(const struct fr_unwind_memory *m);

/* Changes the bound. If there are more chunks than it permits, no memory is taken from the excess chunks any
   more, and fr_unwind_memory_trim() removes them when they are empty. */
void fr_unwind_memory_set_max(struct fr_unwind_memory *m, uint64_t bytes_max);
/* Returns the bound that fr_unwind_memory_max() returns for BYTES_MAX: whole chunks, and at least one. */
uint64_t fr_unwind_memory_round(uint64_t bytes_max);
bool fr_unwind_memory_is_excess(const struct fr_unwind_memory *m, fr_unwind_at at);
bool fr_unwind_memory_has_excess(const struct fr_unwind_memory *m);
void fr_unwind_memory_trim(struct fr_unwind_memory *m);

/* Returns the bytes of all chunks. */
uint64_t fr_unwind_memory_bytes(const struct fr_unwind_memory *m);
uint64_t fr_unwind_memory_max(const struct fr_unwind_memory *m);
/* Returns the bytes that are not taken, in all chunks that exist or can be made. */
uint64_t fr_unwind_memory_room(const struct fr_unwind_memory *m);
