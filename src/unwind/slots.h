/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The slots of the processes in struct fr_unwind_shared. BPF programs write slots, too: at a fork, the child
 * gets the maps of its parent (src/bpf/unwind-maps.bpf.c). So each change of a slot compares it with what it
 * was.
 */

#include "bpf/unwind.h"

#include <stdbool.h>

enum fr_unwind_slot_result {
	FR_UNWIND_SLOT_SET,
	FR_UNWIND_SLOT_DIFFERS, /* a BPF program has written another value */
	FR_UNWIND_SLOT_FULL,	/* no free slot for this pid */
};

/* Sets the process of PID from OLD to NEW. NEW 0: frees the slot. OLD 0: whatever the slot has, and if there
   is no slot for PID, uses a free one. */
enum fr_unwind_slot_result fr_unwind_slot_set(
	struct fr_unwind_shared *shared, uint32_t pid, fr_unwind_at old, fr_unwind_at new);

/* Returns the process of PID, or 0. */
fr_unwind_at fr_unwind_slot_find(struct fr_unwind_shared *shared, uint32_t pid);
