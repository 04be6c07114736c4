/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Prints the output of flightrec-merge: a progress bar, and then a report. */

#include "base/command_line.h"
#include "merge/merge.h"

/* Draws the progress bar on standard error. This function is for the member `progress` of struct
   fr_merge_options. CTX is not used. */
void report_progress(void *ctx, uint64_t done_bytes, uint64_t total_bytes);
/* Removes the progress bar from the terminal, if there is one. */
void report_progress_end(void);

/* Prints the report as text on standard output. */
void report_text(
	const struct fr_merge_options *options, const struct fr_merge_report *report, uint64_t took_ns);
/* Prints the report as JSON on standard output, with the N_WARNINGS warnings. Returns 0 or -ENOMEM. */
int report_json(enum fr_json_mode mode, const struct fr_merge_options *options,
	const struct fr_merge_report *report, uint64_t took_ns, char *const *warnings, size_t n_warnings);
