// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/nearest.h"
#include "base/timestamp.h"

#include <errno.h>
#include <getopt.h> /* optarg, optind */
#include <string.h>

#define NUMBER_MAX (1ULL << 53) /* JSON parsers read whole numbers exactly up to this number */

struct ctl ctl;

/* The linker defines these symbols: begin and end of the section into which CTL_VERB() puts the verbs. */
/* NOLINTBEGIN(bugprone-reserved-identifier) */
extern const struct ctl_verb *__start_ctl_verbs[], *__stop_ctl_verbs[];
/* NOLINTEND(bugprone-reserved-identifier) */

static const char *const group_headings[] = {[CTL_DUMPS] = "Dumps:",
	[CTL_TRIGGERS] = "Triggers:",
	[CTL_RECORDER] = "The recorder:",
	[CTL_FLEET] = "The fleet:"};

static const struct ctl_option common_options[] = {
	{"verbose", 'v', NULL, "show each CPU, and values that are zero", CTL_FLAG, &ctl.verbose, 0, 0},
	{"json", 0, "[HOW]", "print JSON instead of text: pretty, short or off", CTL_JSON, &ctl.json, 0, 0},
	{"utc", 0, NULL, "print times in UTC instead of local time", CTL_FLAG, &ctl.utc, 0, 0},
	{"no-pager", 0, NULL, "do not use a pager", CTL_FLAG, &ctl.no_pager, 0, 0},
	{"no-legend", 0, NULL, "print no headings and no hints", CTL_FLAG, &ctl.no_legend, 0, 0},
	{"socket", 0, "PATH", "the control socket of flightrecd", CTL_TEXT, &ctl.socket, 0, 0},
	{"directory", 'D', "DIR", "the directory of the dumps, instead of the recorder's", CTL_TEXT,
		&ctl.directory, 0, 0},
	{"help", 'h', NULL, "print this, and exit", CTL_HELP, NULL, 0, 0},
	{"version", 0, NULL, "print the version, and exit", CTL_VERSION, NULL, 0, 0},
	{0},
};

/* For messages: the name of each kind of value, and how to write a value. */
static const struct {
	const char *name, *hint;
} kinds[] = {
	[CTL_SPAN] = {"a duration", "write it as 30s or 5min"},
	[CTL_TIME] = {"a time", "write it as 23:11, -5min, \"2026-11-20 23:11:37\" or @EPOCH"},
	[CTL_SIZE] = {"a size", "write it as 512M or 2G"},
	[CTL_COUNT] = {"a number", "write it as 10"},
};

static int compare_verbs(const void *a, const void *b)
{
	const struct ctl_verb *x = *(const struct ctl_verb *const *)a,
			      *y = *(const struct ctl_verb *const *)b;

	return x->group != y->group ? (x->group < y->group ? -1 : 1) : strcmp(x->name, y->name);
}

const struct ctl_verb *const *ctl_verbs(size_t *ret_n)
{
	/* cppcheck-suppress comparePointers */
	*ret_n = (size_t)(__stop_ctl_verbs - __start_ctl_verbs);
	qsort(__start_ctl_verbs, *ret_n, sizeof(struct ctl_verb *), compare_verbs);
	return __start_ctl_verbs;
}

static const struct ctl_verb *find_verb(const char *name)
{
	size_t n;
	const struct ctl_verb *const *verbs = ctl_verbs(&n);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(verbs[i]->name, name))
			return verbs[i];
	return NULL;
}

/* The options of all verbs and the common options, as base/command_line.h needs them. */
static struct {
	struct fr_option options[FR_OPTIONS_MAX];
	const struct ctl_option *sources[FR_OPTIONS_MAX];
	struct fr_option_group groups[FR_OPTIONS_MAX];
	char headings[FR_OPTIONS_MAX][32];
	struct fr_command_line line;
} all;

static void add_options(const struct ctl_option *o, const char *verb)
{
	struct fr_command_line *l = &all.line;

	if (!o)
		return;
	snprintf(all.headings[l->n_groups], sizeof(all.headings[0]), "Options%s%s:", verb ? " of " : "",
		verb ? verb : "");
	all.groups[l->n_groups] =
		(struct fr_option_group){o->letter ? o->letter : 256 + (int)l->n, all.headings[l->n_groups]};
	l->n_groups++;
	for (; o->name && l->n < FR_OPTIONS_MAX; o++, l->n++) {
		all.sources[l->n] = o;
		all.options[l->n] = (struct fr_option){
			o->name, o->letter ? o->letter : 256 + (int)l->n, o->argument, o->help, verb};
	}
}

const struct fr_command_line *ctl_command_line(void)
{
	size_t n;
	const struct ctl_verb *const *verbs = ctl_verbs(&n);

	all.line = (struct fr_command_line){
		.program = "flightrecctl", .options = all.options, .groups = all.groups};
	for (size_t i = 0; i < n; i++)
		add_options(verbs[i]->options, verbs[i]->name);
	add_options(common_options, NULL);
	return &all.line;
}

static void print_help(void)
{
	size_t n;
	const struct ctl_verb *const *verbs = ctl_verbs(&n);

	printf("flightrecctl [OPTIONS] VERB\n");
	for (size_t i = 0; i < n; i++) {
		const struct ctl_verb *v = verbs[i];
		char text[64];

		if (i == 0 || v->group != verbs[i - 1]->group)
			printf("\n%s\n", group_headings[v->group]);
		snprintf(text, sizeof(text), "%s %s", v->name, v->argument ? v->argument : "");
		printf("  %-34s %s\n", text, v->help);
	}
	fr_command_line_print(&all.line);
	printf("\nExamples:\n"
	       "  flightrecctl explain                                what happened in the newest dump\n"
	       "  flightrecctl report --html -o page.html             the newest dump as a page for a "
	       "browser\n"
	       "  flightrecctl perf                                   the newest dump in perf report\n"
	       "  flightrecctl script latest -- -F time,comm,event    its samples, in perf script\n"
	       "  perf report -i \"$(flightrecctl dump --last 30s)\"   what the last 30 s were spent on\n"
	       "  flightrecctl dump --from 14:03 --to 14:04           a minute of the past\n"
	       "  flightrecctl why -n 5                               why there is a dump, or none\n"
	       "\nExit codes: 0 ok, 1 error, 2 usage, 3 flightrecd not reachable, 4 suppressed, 5 "
	       "permission,\n"
	       "6 no space, 7 done, but a trigger is not armed. flightrecctl(1) says more.\n");
}

static int parse_value(const struct ctl_option *o, uint64_t *ret)
{
	const uint64_t most = o->most					    ? o->most
			      : o->kind == CTL_SIZE || o->kind == CTL_COUNT ? NUMBER_MAX
									    : UINT64_MAX;
	uint64_t v;
	int r = o->kind == CTL_SPAN   ? fr_duration_parse(optarg, &v)
		: o->kind == CTL_TIME ? fr_timestamp_parse(optarg, fr_now_ns(CLOCK_REALTIME), &v)
		: o->kind == CTL_SIZE ? fr_size_parse(optarg, &v)
				      : fr_u64_parse(optarg, &v);

	if (r < 0 || v < o->least || v > most)
		return -EINVAL;
	*ret = v;
	return 0;
}

/* Handles an option, whose value is in optarg. Returns 0; 1 if the help or the version was printed; or
   -EINVAL, with a message in D. */
static int set_option(const struct ctl_option *o, struct fr_diag *d)
{
	char range[64] = "";

	switch (o->kind) {
	case CTL_FLAG:
		*(bool *)o->to = true;
		return 0;
	case CTL_TEXT:
		*(const char **)o->to = optarg;
		return 0;
	case CTL_JSON:
		return fr_json_mode_parse(optarg, o->to, d);
	case CTL_HELP:
		print_help();
		return 1;
	case CTL_VERSION:
		printf("flightrecctl %s\n", FR_VERSION);
		return 1;
	default:
		if (parse_value(o, o->to) == 0)
			return 0;
		if (o->most)
			snprintf(range, sizeof(range), " from %ju to %ju", (uintmax_t)o->least,
				(uintmax_t)o->most);
		return fr_fail(d, -EINVAL, kinds[o->kind].hint, "--%s: '%s' is not %s%s", o->name, optarg,
			kinds[o->kind].name, range);
	}
}

/* Resets the variables of all options, because a test parses several command lines in one process. */
static void reset_options(void)
{
	ctl = (struct ctl){0};
	for (size_t i = 0; i < all.line.n; i++) {
		const struct ctl_option *o = all.sources[i];

		if (o->kind == CTL_FLAG)
			*(bool *)o->to = false;
		else if (o->kind == CTL_TEXT)
			*(const char **)o->to = NULL;
		else if (o->kind <= CTL_COUNT)
			*(uint64_t *)o->to = CTL_NOT_GIVEN;
	}
}

static const char *verb_name(const void *verbs, size_t i)
{
	return ((const struct ctl_verb *const *)verbs)[i]->name;
}

static int report_unknown_verb(const char *name, struct fr_diag *d)
{
	size_t n;
	const struct ctl_verb *const *verbs = ctl_verbs(&n);
	const char *near = fr_nearest_name(name, verb_name, verbs, n);
	char hint[128];

	snprintf(hint, sizeof(hint), "%s%s%sflightrecctl --help lists verbs and options",
		near ? "did you mean " : "", near ? near : "", near ? "? " : "");
	return fr_fail(d, -EINVAL, hint, "unknown verb '%s'", name);
}

static bool has_option(const struct ctl_verb *verb, const char *name)
{
	for (const struct ctl_option *o = verb->options; o && o->name; o++)
		if (!strcmp(o->name, name))
			return true;
	return false;
}

/* Refuses options of other verbs. Bit I of the parameter `given` is set if the option all.options[I] was
   given. */
static int check_verb_options(uint64_t given, const struct ctl_verb *verb, struct fr_diag *d)
{
	for (size_t i = 0; i < all.line.n; i++)
		if (given & 1ULL << i && all.options[i].verb && !has_option(verb, all.options[i].name))
			return fr_fail(d, -EINVAL, "leave the option out, or use the other verb",
				"--%s belongs to the verb %s, not to %s", all.options[i].name,
				all.options[i].verb, verb->name);
	return 0;
}
_Static_assert(FR_OPTIONS_MAX <= 64, "a bit for each");

/* Counts the words after "--". getopt() changes the order of argv, but these words stay at the end of
   argv. */
static size_t count_words_after_dashes(int argc, char *argv[])
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], "--"))
			return (size_t)(argc - i - 1);
	return 0;
}

/* If the unknown option of D can be one of the program that a verb starts, the hint says how to pass it. */
static void add_passing_hint(int argc, char *argv[], struct fr_diag *d)
{
	const char *quote = d ? strchr(d->what, '\'') : NULL, *option = quote ? quote + 1 : "--help";
	const int len = (int)strcspn(option, "'");

	for (int i = 1; i < argc && d; i++) {
		const struct ctl_verb *verb = find_verb(argv[i]);

		if (verb && verb->passes)
			snprintf(d->hint, sizeof(d->hint),
				"write options of the program that %s starts after --, as in: "
				"flightrecctl %s latest -- %.*s",
				verb->name, verb->name, len, option);
	}
}

static int check_arguments(const struct ctl_verb *verb, struct fr_diag *d)
{
	const char *hint = "flightrecctl --help lists verbs and options";
	enum fr_json_mode form;

	if (ctl.n_args < verb->least_args)
		return fr_fail(d, -EINVAL, hint, "%s needs an argument: %s", verb->name, verb->argument);
	if (ctl.n_args <= verb->most_args)
		return 0;
	if (fr_json_mode_parse(ctl.args[verb->most_args], &form, NULL) == 0)
		hint = "write the value of --json after an =, for example --json=short";
	return fr_fail(
		d, -EINVAL, hint, "%s: unexpected argument '%s'", verb->name, ctl.args[verb->most_args]);
}

/* Returns the verb that is the first word and takes all other words as its arguments, or NULL. */
static const struct ctl_verb *find_verb_of_all(int argc, char *argv[])
{
	const struct ctl_verb *verb = argc > 1 ? find_verb(argv[1]) : NULL;

	return verb && verb->takes_all ? verb : NULL;
}

int ctl_parse(int argc, char *argv[], const struct ctl_verb **ret_verb, struct fr_diag *d)
{
	const struct fr_command_line *line = ctl_command_line();
	const size_t passed = count_words_after_dashes(argc, argv);
	const struct ctl_verb *verb = find_verb_of_all(argc, argv);
	uint64_t given = 0;
	int option, r = 0;

	reset_options();
	if (verb) {
		ctl.args = argv + 2;
		ctl.n_args = (size_t)argc - 2;
		*ret_verb = verb;
		return 0;
	}
	fr_command_line_begin();
	while (r == 0 && (option = fr_command_line_next(line, argc, argv, d)) > 0) {
		const ptrdiff_t i = fr_command_line_find(line, option) - line->options;

		given |= 1ULL << i;
		r = set_option(all.sources[i], d);
	}
	if (option < 0)
		add_passing_hint(argc, argv, d);
	if (r != 0 || option < 0)
		return r ? r : option;
	if (optind == argc)
		return fr_fail(d, -EINVAL, "flightrecctl --help lists verbs and options", "no verb");
	verb = find_verb(argv[optind]);
	if (!verb)
		return report_unknown_verb(argv[optind], d);
	ctl.args = argv + optind + 1;
	ctl.n_args = (size_t)(argc - optind - 1) - (verb->passes ? passed : 0);
	r = check_arguments(verb, d);
	if (r == 0)
		r = check_verb_options(given, verb, d);
	if (r == 0)
		*ret_verb = verb;
	return r;
}
