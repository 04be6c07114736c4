// SPDX-License-Identifier: GPL-2.0-or-later
/* Verbs that run flightrec-report for a dump: the short way to its most important options. */
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"

#include <errno.h>
#include <string.h>

#define PROGRAM "flightrec-report"
#define ARGUMENTS 16 /* that run() adds to the words of the user, at most */

static const char *format, *incident;
static bool flame, html;

static int run(const char *verb)
{
	static const char *const modes[] = {[FR_JSON_OFF] = "--json=off",
		[FR_JSON_SHORT] = "--json=short",
		[FR_JSON_PRETTY] = "--json=pretty"};
	const struct {
		const char *name, *value;
	} with_value[] = {{"--format", format}, {"--incident", incident}, {"--output", ctl.output}};
	_cleanup_free_ char *path = NULL;
	_cleanup_free_ const char **argv = NULL;
	char *const *more = ctl.args + ctl.n_args;
	struct fr_diag diag = {0};
	int r = ctl_dump_find(&path, &diag);
	size_t n = 0, n_more = 0;

	while (r == 0 && more[n_more])
		n_more++;
	argv = r == 0 ? calloc(n_more + ARGUMENTS, sizeof(char *)) : NULL;
	if (!argv)
		return ctl_fail(&diag, r < 0 ? r : -ENOMEM);
	argv[n++] = PROGRAM;
	argv[n++] = verb;
	if (!strcmp(verb, "explain"))
		argv[n++] = modes[ctl.json];
	for (size_t i = 0; i < FR_ARRAY_SIZE(with_value); i++)
		if (with_value[i].value) {
			argv[n++] = with_value[i].name;
			argv[n++] = with_value[i].value;
		}
	if (flame)
		argv[n++] = "--flame";
	if (html)
		argv[n++] = "--html";
	memcpy(argv + n, more, n_more * sizeof(char *));
	argv[n + n_more] = path;
	return ctl_fail(&diag,
		ctl_exec(PROGRAM, (char *const *)argv, "it belongs to the package of flightrecctl", &diag));
}

static int run_explain(void)
{
	return run("explain");
}

static int run_report(void)
{
	return run("report");
}

static int run_export(void)
{
	return run("export");
}

static int run_bundle(void)
{
	return run("bundle");
}

static const struct ctl_option explain_options[] = {
	{"output", 'o', "FILE", "write to FILE", CTL_TEXT, &ctl.output, 0, 0},
	{"incident", 0, "SPAN", "the length of the incident, up to the end of the dump (10s)", CTL_TEXT,
		&incident, 0, 0},
	{0},
};
static const struct ctl_option report_options[] = {
	{"html", 0, NULL, "write a page for a browser, with all its data", CTL_FLAG, &html, 0, 0},
	{"flame", 0, NULL, "print a flame graph instead of a table", CTL_FLAG, &flame, 0, 0},
	{"output", 'o', "FILE", "write to FILE", CTL_TEXT, &ctl.output, 0, 0},
	{0},
};
static const struct ctl_option export_options[] = {
	{"format", 0, "FORMAT", "folded, pprof, perfetto, speedscope or firefox (folded)", CTL_TEXT, &format,
		0, 0},
	{"output", 'o', "FILE", "write to FILE", CTL_TEXT, &ctl.output, 0, 0},
	{0},
};
static const struct ctl_option bundle_options[] = {
	{"output", 'o', "FILE", "write to FILE (DUMP.tar.zst in the current directory)", CTL_TEXT,
		&ctl.output, 0, 0},
	{0},
};

CTL_VERB(explain, CTL_DUMPS, "explain", "[FILE|latest] [-- OPTIONS]",
	"say what happened, and who is the cause", .options = explain_options, .most_args = 1, .passes = true,
	.run = run_explain);

CTL_VERB(report, CTL_DUMPS, "report", "[FILE|latest] [-- OPTIONS]",
	"the functions that were sampled, or a page", .options = report_options, .most_args = 1,
	.passes = true, .run = run_report);

CTL_VERB(export, CTL_DUMPS, "export", "[FILE|latest] [-- OPTIONS]", "write the samples for another program",
	.options = export_options, .most_args = 1, .passes = true, .run = run_export);

CTL_VERB(bundle, CTL_DUMPS, "bundle", "[FILE|latest] [-- OPTIONS]",
	"pack a dump and what its names need, for another machine", .options = bundle_options, .most_args = 1,
	.passes = true, .run = run_bundle);
