/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Merges many files of one boot into one perf.data: one head, records sorted by time, each record once.
 * Memory does not grow with the input. Inputs are removed only after the output is durable.
 *
 *   inputs ─► reader (perfdata/) ─► cursor ─► heap ─► dedup ─► output
 *
 * The cursor sorts the records of a file. The heap finds the oldest record of all files. Dedup removes
 * duplicates. The output adds rounds, compresses, and renames the file at the end.
 */

#include "base/diag.h"
#include "merge/options.h"

/* Merges the files. An input that is damaged or unusable, or that a daemon writes to, is not removed. Returns
   0; 1 if the output is written but an input was damaged or unusable; or a negative errno with D, when
   nothing was written or removed. -ENOENT: there are no inputs. -EBADMSG: no input is a perf.data. -EXDEV:
   the inputs come from different boots or machines. -EINVAL: their events cannot be in one file. -EBUSY:
   another merge works in the directory. */
int fr_merge(const struct fr_merge_options *options, struct fr_merge_report *ret, struct fr_diag *d);
