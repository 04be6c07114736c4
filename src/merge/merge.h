/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Merges many files of one boot into one perf.data. The output has one head, and the records of all files
 * sorted by time, each record once. Memory does not grow with the size of the inputs. Inputs are removed only
 * after the output is durable.
 *
 *   inputs ─► reader (perfdata/) ─► cursor ─► heap ─► dedup ─► output
 *
 * The cursor sorts the records of a file. The heap finds the oldest record of all files. Dedup removes
 * duplicates. The output adds FINISHED_ROUNDs, compresses the records, and gives the file its name at the
 * end.
 */

#include "base/diag.h"
#include "merge/options.h"

/* Merges the files. An input is not removed if it is damaged or unusable, or if a flightrecd writes to it.
   Returns 0; 1 if the output has been written but an input was damaged or unusable; or a negative errno, with
   a message in D. After an error, there is no new output, and no input has been removed. The errno is -ENOENT
   if there are no inputs, -EBADMSG if no input is a perf.data file, -EXDEV if the inputs come from different
   boots or machines, -EINVAL if their events cannot be in one file, or -EBUSY if another flightrec-merge
   works in the directory. Other errors are possible. */
int fr_merge(const struct fr_merge_options *options, struct fr_merge_report *ret, struct fr_diag *d);
