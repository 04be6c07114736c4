// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/nearest.h"
#include "base/timestamp.h"
#include "base/units.h"

#include <errno.h>
#include <getopt.h> /* optarg, optind */
#include <string.h>

#define LIMIT_MAX (1ULL << 53) /* what JSON carries exactly */
#define LINES_MAX 256	       /* what the recorder remembers, FR_DECISIONS_REMEMBERED */

static const struct ctl_verb verbs[] = {
	{"dump", NULL, "write what the ring holds to a perf.data.sample.TIME, and print its path", 0, 0,
		false, false, ctl_cmd_dump},
	{"list", NULL, "the dumps and merged files: time, size, samples, window, cause", 0, 0, true, false,
		ctl_cmd_list},
	{"info", "[FILE|latest]", "all that is known of one of them", 0, 1, true, false, ctl_cmd_info},
	{"report", "[FILE|latest] [-- OPTIONS]", "open it in perf report", 0, 1, false, true, ctl_cmd_report},
	{"script", "[FILE|latest] [-- OPTIONS]", "open it in perf script", 0, 1, false, true, ctl_cmd_script},
	{"cancel", "[ID...]", "take back dumps that wait, by their numbers in status", 0, SIZE_MAX, false,
		false, ctl_cmd_cancel},
	{"rm", "FILE...", "remove these", 1, SIZE_MAX, false, false, ctl_cmd_rm},
	{"vacuum", NULL, "remove the oldest until the limits hold", 0, 0, false, false, ctl_cmd_vacuum},
	{"triggers", NULL, "each trigger: its state, last value, how often it fired and why it did not", 0, 0,
		true, false, ctl_cmd_triggers},
	{"why", NULL, "the last decisions: what fired, and why it made a dump or did not", 0, 0, true, false,
		ctl_cmd_why},
	{"watch", NULL, "a line for each decision from now on", 0, 0, false, false, ctl_cmd_watch},
	{"test-trigger", "NAME", "dump as if this trigger had fired, and print the dump's number", 1, 1,
		false, false, ctl_cmd_test_trigger},
	{"enable", "NAME...", "arm these triggers until the next reload", 1, SIZE_MAX, false, false,
		ctl_cmd_enable},
	{"disable", "NAME...", "disarm these triggers until the next reload", 1, SIZE_MAX, false, false,
		ctl_cmd_disable},
	{"status", NULL, "the ring, rates and losses per event, own cost, dumps", 0, 0, true, false,
		ctl_cmd_status},
	{"metrics", NULL, "the numbers of status in the format of OpenMetrics, for a collector", 0, 0, false,
		false, ctl_cmd_metrics},
	{"verify-config", "[FILE]", "check the configuration with its drop-ins", 0, 1, false, false,
		ctl_cmd_verify_config},
	{"profile", "[NAME]", "what there is to record, and which is set; NAME: set it, and reload", 0, 1,
		false, false, ctl_cmd_profile},
	{"reload", NULL, "read the configuration again", 0, 0, false, false, ctl_cmd_reload},
	{"stop", NULL, "end the recorder", 0, 0, false, false, ctl_cmd_stop},
};

/* Headings of the help: the verbs from this one on. */
static const struct {
	const char *first, *heading;
} verb_groups[] = {
	{"dump", "Dumps:"},
	{"triggers", "Triggers:"},
	{"status", "The recorder:"},
};

/* Options without a short form. */
enum {
	OPT_LAST = 256,
	OPT_FROM,
	OPT_TO,
	OPT_POST,
	OPT_MAX_USE,
	OPT_KEEP_FREE,
	OPT_MAX_FILES,
	OPT_MAX_AGE,
	OPT_REASON,
	OPT_NO_WAIT,
	OPT_NO_COMPRESSION,
	OPT_MERGE,
	OPT_NO_RELOAD,
	OPT_ALL,
	OPT_JSON,
	OPT_UTC,
	OPT_NO_PAGER,
	OPT_NO_LEGEND,
	OPT_SOCKET,
	OPT_VERSION
};

static const struct fr_option options[] = {
	{"output", 'o', "FILE", "a copy of your own, and its path is printed; -: to standard output", "dump"},
	{"last", OPT_LAST, "SPAN", "only the last 30s, 5min …", "dump"},
	{"from", OPT_FROM, "TIME", "from then on: 23:11, -5min, \"2026-11-20 23:11:37\", @EPOCH", "dump"},
	{"to", OPT_TO, "TIME", "up to then, instead of now", "dump"},
	{"post", OPT_POST, "SPAN", "go on recording for so long, then write", "dump"},
	{"reason", OPT_REASON, "TEXT", "goes into the dump's JSON", "dump"},
	{"no-wait", OPT_NO_WAIT, NULL, "do not wait until the file is durable; prints the dump's number",
		"dump"},
	{"no-compression", OPT_NO_COMPRESSION, NULL,
		"plain records, for readers that know no compressed ones", "dump"},
	{"all", OPT_ALL, NULL, "each dump that you may take back", "cancel"},
	{"max-use", OPT_MAX_USE, "SIZE", "bytes of all dumps", "vacuum"},
	{"keep-free", OPT_KEEP_FREE, "SIZE", "bytes of the file system that stay free", "vacuum"},
	{"max-files", OPT_MAX_FILES, "N", "number of dumps", "vacuum"},
	{"max-age", OPT_MAX_AGE, "SPAN", "age of the oldest", "vacuum"},
	{"lines", 'n', "N", "so many decisions, 1 to 256 (20)", "why"},
	{"no-reload", OPT_NO_RELOAD, NULL, "set it for the next start or reload only", "profile"},
	{"merge", OPT_MERGE, NULL, "and leave one perf.data", "stop"},
	{"verbose", 'v', NULL, "each CPU, and zeros, too", NULL},
	{"json", OPT_JSON, "[HOW]", "JSON instead of text: pretty, short or off", NULL},
	{"utc", OPT_UTC, NULL, "times in UTC, and not in local time", NULL},
	{"no-pager", OPT_NO_PAGER, NULL, "straight to the terminal", NULL},
	{"no-legend", OPT_NO_LEGEND, NULL, "no headings and no hints", NULL},
	{"socket", OPT_SOCKET, "PATH", "of flightrecd's control socket", NULL},
	{"directory", 'D', "DIR", "of the dumps, instead of the daemon's", NULL},
	{"help", 'h', NULL, "print this, and exit", NULL},
	{"version", OPT_VERSION, NULL, "print the version, and exit", NULL},
};

static const struct fr_option_group option_groups[] = {
	{'o', "Options of dump:"},
	{OPT_ALL, "Options of cancel:"},
	{OPT_MAX_USE, "Options of vacuum:"},
	{'n', "Options of why:"},
	{OPT_NO_RELOAD, "Options of profile:"},
	{OPT_MERGE, "Options of stop:"},
	{'v', "Options:"},
};

const struct fr_command_line ctl_command_line = {
	.program = "flightrecctl",
	.options = options,
	.n = FR_ARRAY_SIZE(options),
	.groups = option_groups,
	.n_groups = FR_ARRAY_SIZE(option_groups),
};

const struct ctl_verb *ctl_verbs(size_t *ret_n)
{
	*ret_n = FR_ARRAY_SIZE(verbs);
	return verbs;
}

static void print_verb(const struct ctl_verb *verb)
{
	char text[64];

	for (size_t i = 0; i < FR_ARRAY_SIZE(verb_groups); i++)
		if (!strcmp(verb_groups[i].first, verb->name))
			printf("\n%s\n", verb_groups[i].heading);
	snprintf(text, sizeof(text), "%s %s", verb->name, verb->argument ? verb->argument : "");
	printf("  %-34s %s\n", text, verb->help);
}

static void print_help(void)
{
	printf("flightrecctl [OPTIONS] VERB\n");
	for (size_t i = 0; i < FR_ARRAY_SIZE(verbs); i++)
		print_verb(&verbs[i]);
	fr_command_line_print(&ctl_command_line);
	printf("\nExamples:\n"
	       "  flightrecctl report                                 the newest dump, in perf report\n"
	       "  flightrecctl script latest -- -F time,comm,event    its samples, in perf script\n"
	       "  perf report -i \"$(flightrecctl dump --last 30s)\"   what the last 30 s were spent on\n"
	       "  flightrecctl dump --from 14:03 --to 14:04           a minute of the past\n"
	       "  flightrecctl why -n 5                               why there is a dump, or none\n"
	       "\nExit codes: 0 ok, 1 error, 2 usage, 3 flightrecd not reachable, 4 suppressed, 5 "
	       "permission,\n"
	       "6 no space, 7 done, but a trigger is not armed. flightrecctl(1) says more.\n");
}

static int parse_span(const char *option, uint64_t least, uint64_t *ret, struct fr_diag *d)
{
	uint64_t ns;

	if (fr_duration_parse(optarg, &ns) < 0 || ns < least)
		return fr_fail(
			d, -EINVAL, "write it as 30s or 5min", "%s: no duration: '%s'", option, optarg);
	*ret = ns;
	return 0;
}

static int parse_time(const char *option, uint64_t *ret, struct fr_diag *d)
{
	uint64_t ns;

	if (fr_timestamp_parse(optarg, fr_now_ns(CLOCK_REALTIME), &ns) < 0 || ns == 0)
		return fr_fail(d, -EINVAL, "write it as 23:11, -5min, \"2026-11-20 23:11:37\" or @EPOCH",
			"%s: no time: '%s'", option, optarg);
	*ret = ns;
	return 0;
}

static int parse_limit(const char *option, bool size, uint64_t *ret, struct fr_diag *d)
{
	uint64_t v;

	if ((size ? fr_size_parse(optarg, &v) : fr_u64_parse(optarg, &v)) < 0 || v > LIMIT_MAX)
		return fr_fail(d, -EINVAL, size ? "write it as 512M or 2G" : "write it as 10",
			"%s: no %s: '%s'", option, size ? "size" : "number", optarg);
	*ret = v;
	return 0;
}

static int parse_lines(uint64_t *ret, struct fr_diag *d)
{
	uint64_t v;

	if (fr_u64_parse(optarg, &v) < 0 || v < 1 || v > LINES_MAX)
		return fr_fail(d, -EINVAL, "write it as -n 20", "--lines: no number from 1 to %d: '%s'",
			LINES_MAX, optarg);
	*ret = v;
	return 0;
}

/* Spans, times and limits. 1: OPTION is another. */
static int apply_value(struct ctl *ctl, int option, struct fr_diag *d)
{
	switch (option) {
	case OPT_LAST:
		return parse_span("--last", 1, &ctl->last_ns, d);
	case OPT_FROM:
		return parse_time("--from", &ctl->from_ns, d);
	case OPT_TO:
		return parse_time("--to", &ctl->to_ns, d);
	case OPT_POST:
		return parse_span("--post", 0, &ctl->post_ns, d);
	case OPT_MAX_USE:
		return parse_limit("--max-use", true, &ctl->limits.max_use, d);
	case OPT_KEEP_FREE:
		return parse_limit("--keep-free", true, &ctl->limits.keep_free, d);
	case OPT_MAX_FILES:
		return parse_limit("--max-files", false, &ctl->limits.max_files, d);
	case OPT_MAX_AGE:
		return parse_span("--max-age", 0, &ctl->limits.max_age_ns, d);
	case 'n':
		return parse_lines(&ctl->lines, d);
	default:
		return 1;
	}
}

static int apply(struct ctl *ctl, int option, struct fr_diag *d)
{
	int r = apply_value(ctl, option, d);

	if (r <= 0)
		return r;
	switch (option) {
	case 'o':
		ctl->output = optarg;
		return 0;
	case OPT_REASON:
		ctl->reason = optarg;
		return 0;
	case OPT_NO_WAIT:
		ctl->no_wait = true;
		return 0;
	case OPT_NO_COMPRESSION:
		ctl->no_compression = true;
		return 0;
	case OPT_ALL:
		ctl->all = true;
		return 0;
	case OPT_NO_RELOAD:
		ctl->no_reload = true;
		return 0;
	case OPT_MERGE:
		ctl->merge = true;
		return 0;
	case OPT_JSON:
		return fr_json_mode_parse(optarg, &ctl->json, d);
	case OPT_UTC:
		ctl->utc = true;
		return 0;
	case OPT_NO_PAGER:
		ctl->no_pager = true;
		return 0;
	case OPT_NO_LEGEND:
		ctl->no_legend = true;
		return 0;
	case OPT_SOCKET:
		ctl->socket = optarg;
		return 0;
	case 'D':
		ctl->directory = optarg;
		return 0;
	case 'v':
		ctl->verbose = true;
		return 0;
	case 'h':
		print_help();
		return 1;
	case OPT_VERSION:
		printf("flightrecctl %s\n", FR_VERSION);
		return 1;
	default: /* the values' */
		return -EINVAL;
	}
}

static const char *verb_name(const void *ctx, size_t i)
{
	return verbs[i].name;
}

static int unknown_verb(const char *name, struct fr_diag *d)
{
	const char *near = fr_nearest_name(name, verb_name, NULL, FR_ARRAY_SIZE(verbs));
	char hint[128];

	snprintf(hint, sizeof(hint), "%s%s%sflightrecctl --help lists verbs and options",
		near ? "did you mean " : "", near ? near : "", near ? "? " : "");
	return fr_fail(d, -EINVAL, hint, "unknown verb '%s'", name);
}

static const struct ctl_verb *find_verb(const char *name)
{
	for (size_t i = 0; i < FR_ARRAY_SIZE(verbs); i++)
		if (!strcmp(verbs[i].name, name))
			return &verbs[i];
	return NULL;
}

/* Options that would do nothing with VERB are a mistake worth a word. GIVEN: a bit for each of the table. */
static int check_verb_options(uint64_t given, const struct ctl_verb *verb, struct fr_diag *d)
{
	for (size_t i = 0; i < FR_ARRAY_SIZE(options); i++)
		if (given & 1ULL << i && options[i].verb && strcmp(options[i].verb, verb->name))
			return fr_fail(d, -EINVAL, "leave it out, or give that verb",
				"--%s belongs to the verb %s, not to %s", options[i].name, options[i].verb,
				verb->name);
	return 0;
}
_Static_assert(FR_ARRAY_SIZE(options) <= 64, "a bit for each");

static int check_window(const struct ctl *ctl, struct fr_diag *d)
{
	const char *hint = "give --last, --from and --to, or --post";

	if (ctl->last_ns && ctl->from_ns)
		return fr_fail(d, -EINVAL, hint, "--last and --from exclude each other");
	if (ctl->post_ns != UINT64_MAX && (ctl->from_ns || ctl->to_ns))
		return fr_fail(d, -EINVAL, hint, "--post excludes --from and --to");
	if (ctl->output && ctl->no_wait)
		return fr_fail(d, -EINVAL, "leave one of them out",
			"--output waits for the dump, and --no-wait does not");
	if (ctl->to_ns && ctl->from_ns > ctl->to_ns)
		return fr_fail(d, -EINVAL, "give the earlier one with --from", "--from is later than --to");
	return 0;
}

/* Options are moved in front of the words by getopt, but what is behind "--" stays last. */
static size_t words_behind(int argc, char *argv[])
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--"))
			return (size_t)(argc - i - 1);
	return 0;
}

/* flightrecctl report --stdio */
static void add_passing_hint(int argc, char *argv[], struct fr_diag *d)
{
	for (int i = 1; i < argc && d; i++) {
		const struct ctl_verb *verb = find_verb(argv[i]);

		if (verb && verb->passes)
			snprintf(d->hint, sizeof(d->hint),
				"options of perf come behind --, as in: flightrecctl %s latest -- --stdio",
				verb->name);
	}
}

int ctl_parse(struct ctl *ctl, int argc, char *argv[], const struct ctl_verb **ret_verb, struct fr_diag *d)
{
	const char *hint = "flightrecctl --help lists verbs and options";
	const struct ctl_verb *verb;
	enum fr_json_mode form;
	uint64_t given = 0;
	size_t behind;
	int option, r = 0;

	ctl->post_ns = ctl->limits.max_use = ctl->limits.keep_free = UINT64_MAX;
	ctl->limits.max_files = ctl->limits.max_age_ns = UINT64_MAX;
	behind = words_behind(argc, argv);
	fr_command_line_begin();
	while (r == 0 && (option = fr_command_line_next(&ctl_command_line, argc, argv, d)) > 0) {
		given |= 1ULL << (fr_command_line_find(&ctl_command_line, option) - options);
		r = apply(ctl, option, d);
	}
	if (option < 0)
		add_passing_hint(argc, argv, d);
	if (r != 0 || option < 0)
		return r ? r : option;
	if (optind == argc)
		return fr_fail(d, -EINVAL, hint, "no verb");
	verb = find_verb(argv[optind]);
	if (!verb)
		return unknown_verb(argv[optind], d);
	ctl->args = argv + optind + 1;
	ctl->n_args = (size_t)(argc - optind - 1) - (verb->passes ? behind : 0);
	if (ctl->n_args > verb->most_args)
		return fr_fail(d, -EINVAL,
			fr_json_mode_parse(ctl->args[verb->most_args], &form, NULL) == 0
				? "a value of --json stands behind its =, as in --json=short"
				: hint,
			"%s: unexpected argument '%s'", verb->name, ctl->args[verb->most_args]);
	if (ctl->n_args < verb->least_args)
		return fr_fail(d, -EINVAL, hint, "%s: which?", verb->name);
	r = check_verb_options(given, verb, d);
	if (r == 0)
		r = check_window(ctl, d);
	if (r == 0)
		*ret_verb = verb;
	return r;
}
