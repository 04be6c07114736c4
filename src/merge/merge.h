/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Merges many files of one boot into one perf.data: one head, records sorted by time, each record once.
 * Memory does not grow with the input. Inputs are removed only after the output is durable.
 *
 *   inputs ─► reader (perfdata/) ─► cursor ─► heap ─► dedup ─► output
 *
 * The cursor sorts the records of a file, the heap has the oldest record of all files, dedup removes
 * duplicates, and the output adds rounds, compresses, and renames the file at the end.
 */

#include "base/diag.h"
#include "merge/options.h"

/* Merges. An input that is damaged or unusable, or that a daemon writes to, is not removed. 0; 1: done, but
   an input was damaged or unusable; or a negative errno with D: nothing was written or removed. -ENOENT: no
   inputs. -EBADMSG: no input is a perf.data. -EXDEV: inputs of different boots or machines. -EINVAL: the
   events of the inputs cannot be in one file. -EBUSY: another merge works in the directory. */
int fr_merge(const struct fr_merge_options *options, struct fr_merge_report *ret, struct fr_diag *d);
