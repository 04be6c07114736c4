/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A hold keeps retention from removing a dump before it is uploaded to the store of the fleet. It is an empty
 * file NAME.hold beside the dump, so it survives a restart. A hold ends when the dump is released, when it is
 * FR_HOLD_MAX_NS old, or when the dump is removed: docs/design/51. These functions wait for a disk.
 */

#include "base/diag.h"

#include <stdint.h>

#define FR_HOLD_MAX_NS (24 * 3600 * 1000000000ULL)

/* Makes the hold of the dump NAME, which need not exist yet. Returns 0; -EEXIST if there is one; or another
   negative errno. */
int fr_hold_make(int dirfd, const char *name);
/* Removes the hold of the dump NAME, if there is one. */
void fr_hold_remove(int dirfd, const char *name);
/* Returns 1 if the dump NAME is held at the wall time NOW_NS; 0 if it has no hold; -ETIME if its hold is too
   old. */
int fr_hold_check(int dirfd, const char *name, uint64_t now_ns);
/* Ends the hold of the dump NAME for a client. Returns 0, also if it is not held; or a negative errno, with a
   message in D: -EINVAL if NAME is not the name of a dump, -ENOENT if there is no such dump. */
int fr_hold_release(int dirfd, const char *name, struct fr_diag *d);
/* Counts the dumps that are held, and the bytes that they and their JSON take on the disk. Returns 0 or a
   negative errno. */
int fr_holds_count(int dirfd, uint64_t *ret_n, uint64_t *ret_bytes);
