/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The BPF object of the unwinder (src/bpf/unwind-maps.bpf.c). */

#include "base/diag.h"
#include "bpf/unwind.h"

#include <stdbool.h>
#include <stddef.h>

struct unwind_maps;
struct bpf_object;

struct fr_unwind_kernel {
	struct unwind_maps *skeleton;
	struct fr_unwind_shared *shared; /* mapped */
	int chunks_fd, files_fd, ask_fd;
	bool notes_changes; /* see struct fr_unwinder_stats */
};

/* Loads the object and maps its memory. Its programs do not run yet. Returns 0; or a negative errno, with a
   message in D. */
int fr_unwind_kernel_open(struct fr_unwind_kernel *k, struct fr_diag *d);
/* Starts the programs. Returns the same values. */
int fr_unwind_kernel_attach(struct fr_unwind_kernel *k, struct fr_diag *d);
/* See fr_unwinder_links(). */
#define FR_UNWIND_KERNEL_LINKS_MAX 4
size_t fr_unwind_kernel_links(const struct fr_unwind_kernel *k, int ret[static FR_UNWIND_KERNEL_LINKS_MAX]);
void fr_unwind_kernel_close(struct fr_unwind_kernel *k);

int fr_unwind_kernel_share(const struct fr_unwind_kernel *k, struct bpf_object *object);
/* Reads how BPF programs see the file that this thread has mapped at ADDRESS. Returns 0; -ENOENT if there is
   none, or the maps of this process are being changed; or another negative errno. One thread at a time. */
int fr_unwind_kernel_ask_file(
	const struct fr_unwind_kernel *k, const void *address, struct fr_unwind_file *ret);
/* Tells BPF programs the object of FILE. Returns 0 or a negative errno. */
int fr_unwind_kernel_add_file(const struct fr_unwind_kernel *k, const struct fr_unwind_file *file,
	const struct fr_unwind_file_object *object);

/* Sums the counters of all CPUs. */
void fr_unwind_kernel_count(const struct fr_unwind_kernel *k, struct fr_unwind_counters *ret);
