/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What flightrec-merge prints: a bar while it works, the report at the end. */

#include "base/command_line.h"
#include "merge/merge.h"

/* A bar on standard error; matches fr_merge_options.progress, CTX unused. */
void report_progress(void *ctx, uint64_t done_bytes, uint64_t total_bytes);
/* Wipe the bar off its line, if there is one. */
void report_progress_end(void);

/* In words, on standard output. */
void report_text(
	const struct fr_merge_options *options, const struct fr_merge_report *report, uint64_t took_ns);
/* As JSON, on standard output. WARNINGS: the lines that were warned of. 0 or -ENOMEM. */
int report_json(enum fr_json_mode mode, const struct fr_merge_options *options,
	const struct fr_merge_report *report, uint64_t took_ns, char *const *warnings, size_t n_warnings);
