/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Prints the report of flightrec-merge. */

#include "base/command_line.h"
#include "merge/merge.h"

/* Prints the report as text on standard output. */
void report_text(
	const struct fr_merge_options *options, const struct fr_merge_report *report, uint64_t took_ns);
/* Prints the report as JSON on standard output, with the N_WARNINGS warnings. Returns 0 or -ENOMEM. */
int report_json(enum fr_json_mode mode, const struct fr_merge_options *options,
	const struct fr_merge_report *report, uint64_t took_ns, char *const *warnings, size_t n_warnings);
