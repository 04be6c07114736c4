// SPDX-License-Identifier: GPL-2.0-or-later
#include "reporting/merge_report.h"
#include "base/diag.h"
#include "base/log.h"
#include "base/units.h"
#include "merge/merge.h"

static void log_warning(void *ctx, const char *text)
{
	fr_log(LOG_WARNING, "merge: %s", text);
}

int fr_merge_directory(const char *directory)
{
	const struct fr_merge_options options = {.directory = directory, .warn = log_warning};
	struct fr_merge_report report = {0};
	struct fr_diag diag = {0};
	char bytes[FR_UNIT_SIZE];
	int r = fr_merge(&options, &report, &diag);

	if (r < 0) {
		fr_diag_prefix(&diag, "cannot merge %s", directory);
		fr_log_diag(LOG_ERR, &diag, r);
		return fr_exit_code(r);
	}
	if (report.kept_older[0])
		fr_log(LOG_INFO, "the older output is now %s", report.kept_older);
	fr_log_struct(LOG_INFO, FR_MSG_MERGED, NULL, 0,
		"%s: %llu samples of %zu files, %s; perf report -i %s", report.output,
		(unsigned long long)report.samples, report.n_inputs, fr_size_format(report.bytes_out, bytes),
		report.output);
	return r > 0 ? FR_EXIT_SALVAGED : FR_EXIT_OK;
}
