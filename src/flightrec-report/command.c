// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrec-report/command.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "dump/names.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h> /* optarg, optind */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATE_DIRECTORY "/var/lib/flightrec"
#define OBJECTS "debug" /* the recorder's copies, beside its dumps */

/* Options without a short form. */
enum {
	OPT_FORMAT = 256,
	OPT_WEIGHT,
	OPT_INCIDENT,
	OPT_JSON,
	OPT_HTML,
	OPT_FLAME,
	OPT_FROM,
	OPT_TO,
	OPT_PID,
	OPT_COMM,
	OPT_CGROUP,
	OPT_CPU,
	OPT_EVENT,
	OPT_SYMBOLS,
	OPT_NO_INLINE,
	OPT_DEBUGINFOD,
	OPT_DEBUGINFOD_TIME,
	OPT_MIN_PERCENT,
	OPT_COLOR,
	OPT_NO_PAGER,
	OPT_MACHINE,
	OPT_VERSION
};

static const struct fr_option options[] = {
	{"directory", 'D', "DIR", "the recorder's directory, for `latest` (" STATE_DIRECTORY ")", NULL},
	{"output", 'o', "FILE",
		"write to FILE instead of standard output, which is \"-\"; bundle: (DUMP.tar.zst)", NULL},
	{"format", OPT_FORMAT, "FORMAT", "folded, pprof, perfetto, speedscope or firefox (folded)", "export"},
	{"weight", OPT_WEIGHT, "WHAT",
		"what folded adds up: samples or periods (waits: periods; others: samples)", "export"},
	{"incident", OPT_INCIDENT, "SPAN", "the length of the incident, up to the end of the dump (10s)",
		"explain"},
	{"json", OPT_JSON, "[HOW]", "explain as JSON: pretty, short or off", "explain"},
	{"html", OPT_HTML, NULL, "write a page for a browser, with all its data", "report"},
	{"flame", OPT_FLAME, NULL, "print a flame graph of one event instead of a table", "report"},
	{"min-percent", OPT_MIN_PERCENT, "N", "leave out rows with less than N percent (0.5)", "report"},
	{"machine", OPT_MACHINE, "NAME", "of the dumps of a fleet, only that of this machine", NULL},
	{"from", OPT_FROM, "TIME",
		"only samples of this time and later: \"-5s\" is relative to the end of the dump", NULL},
	{"to", OPT_TO, "TIME", "only samples up to this time", NULL},
	{"pid", OPT_PID, "PID,…", "only these processes", NULL},
	{"comm", OPT_COMM, "PATTERN", "only threads with this name", NULL},
	{"cgroup", OPT_CGROUP, "PATH", "only processes of this cgroup, and of those below it", NULL},
	{"cpu", OPT_CPU, "N", "only this CPU", NULL},
	{"event", OPT_EVENT, "NAME", "only this event", NULL},
	{"symbols", OPT_SYMBOLS, "DIR", "look for object files in DIR first; can be repeated", NULL},
	{"no-inline", OPT_NO_INLINE, NULL, "do not show inlined functions, which takes time", NULL},
	{"debuginfod", OPT_DEBUGINFOD, NULL, "ask the servers of $DEBUGINFOD_URLS for missing symbols", NULL},
	{"debuginfod-time", OPT_DEBUGINFOD_TIME, "SPAN",
		"wait for these servers at most this long in all (30s)", NULL},
	{"color", OPT_COLOR, "WHEN", "auto, which means on a terminal; always or never (auto)", NULL},
	{"no-pager", OPT_NO_PAGER, NULL, "do not use a pager", NULL},
	{"quiet", 'q', NULL, "print only errors and warnings, and no progress", NULL},
	{"help", 'h', NULL, "print this, and exit", NULL},
	{"version", OPT_VERSION, NULL, "print the version, and exit", NULL},
};

const struct fr_command_line report_command_line = {
	.program = REPORT_PROGRAM, .options = options, .n = FR_ARRAY_SIZE(options)};

static void print_help(void)
{
	printf(REPORT_PROGRAM
		" VERB [OPTIONS] [FILE | FOLDER | latest]\n"
		"\n"
		"Shows what is in a dump. FILE is a dump, a merged file, another perf.data, or a bundle.\n"
		"FOLDER has the dumps of many machines, from `flightrecctl fleet get`. Several files are\n"
		"dumps of one id of the fleet.\n"
		"\n"
		"Verbs:\n"
		"  explain  what happened, and who is the cause\n"
		"  report   a table of the functions that were sampled\n"
		"  export   the samples in a format of another program\n"
		"  bundle   pack the dump with its object files and symbols, for another machine\n"
		"\n"
		"Options:\n");
	fr_command_line_print(&report_command_line);
}

static int parse_pids(struct report_command *c, const char *text, struct fr_diag *d)
{
	_cleanup_free_ char *copy = strdup(text);
	char *save = NULL;
	uint32_t *v;
	uint64_t pid;

	if (!copy)
		return -ENOMEM;
	for (char *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		if (fr_u64_parse(word, &pid) < 0 || pid > INT32_MAX)
			return fr_fail(d, -EINVAL, "write it as --pid=100,200",
				"--pid: '%s' is not a process id", word);
		v = reallocarray(c->pids, c->config.filter.n_pids + 1, sizeof(*v));
		if (!v)
			return -ENOMEM;
		c->pids = v;
		v[c->config.filter.n_pids++] = (uint32_t)pid;
		c->config.filter.pids = v;
	}
	return 0;
}

static int parse_cpu(struct report_command *c, const char *text, struct fr_diag *d)
{
	uint64_t cpu;

	if (fr_u64_parse(text, &cpu) < 0 || cpu > UINT16_MAX)
		return fr_fail(d, -EINVAL, "write it as --cpu=3", "--cpu: '%s' is not a CPU", text);
	c->config.filter.cpu = (uint32_t)cpu;
	c->config.filter.has_cpu = true;
	return 0;
}

static int add_symbols(struct report_command *c, const char *folder, struct fr_diag *d)
{
	struct fr_object_places *p = &c->config.places;

	if (p->n_folders == FR_OBJECT_FOLDERS_MAX - 2)
		return fr_fail(d, -EINVAL, NULL, "--symbols can be given at most %d times",
			FR_OBJECT_FOLDERS_MAX - 2);
	p->folders[p->n_folders++] = folder;
	return 0;
}

static int parse_format(struct report_command *c, const char *text, struct fr_diag *d)
{
	static const char *const names[] = {[EXPORT_FOLDED] = "folded",
		[EXPORT_PPROF] = "pprof",
		[EXPORT_PERFETTO] = "perfetto",
		[EXPORT_SPEEDSCOPE] = "speedscope",
		[EXPORT_FIREFOX] = "firefox"};

	for (size_t i = 0; i < FR_ARRAY_SIZE(names); i++)
		if (!strcmp(text, names[i])) {
			c->format = (enum export_format)i;
			return 0;
		}
	return fr_fail(d, -EINVAL, REPORT_PROGRAM " --help lists the formats",
		"--format: unknown format '%s'", text);
}

static int parse_color(struct report_command *c, const char *text, struct fr_diag *d)
{
	static const char *const names[] = {
		[COLOR_AUTO] = "auto", [COLOR_ALWAYS] = "always", [COLOR_NEVER] = "never"};

	for (size_t i = 0; i < FR_ARRAY_SIZE(names); i++)
		if (!strcmp(text, names[i])) {
			c->color = (enum color)i;
			return 0;
		}
	return fr_fail(d, -EINVAL, "write --color=auto, --color=always or --color=never",
		"--color: '%s' is not one of these words", text);
}

static int parse_weight(struct report_command *c, const char *text, struct fr_diag *d)
{
	if (strcmp(text, "samples") == 0)
		c->weight = FR_WEIGHT_SAMPLES;
	else if (strcmp(text, "periods") == 0)
		c->weight = FR_WEIGHT_PERIODS;
	else
		return fr_fail(d, -EINVAL, "write it as --weight=samples or --weight=periods",
			"--weight: unknown weight '%s'", text);
	return 0;
}

static int parse_percent(struct report_command *c, const char *text, struct fr_diag *d)
{
	char *end;

	c->min_percent = strtod(text, &end);
	if (end == text || *end || !(c->min_percent >= 0 && c->min_percent <= 100))
		return fr_fail(d, -EINVAL, "write it as --min-percent=0.5",
			"--min-percent: '%s' is not a percentage", text);
	return 0;
}

static int apply_option(struct report_command *c, int option, struct fr_diag *d)
{
	switch (option) {
	case 'D':
		c->directory = optarg;
		return 0;
	case 'o':
		c->output = optarg;
		return 0;
	case OPT_FORMAT:
		return parse_format(c, optarg, d);
	case OPT_WEIGHT:
		return parse_weight(c, optarg, d);
	case OPT_INCIDENT:
		if (fr_duration_parse(optarg, &c->incident_ns) < 0 || c->incident_ns == 0)
			return fr_fail(d, -EINVAL, "write it as --incident=5s",
				"--incident: '%s' is not a span", optarg);
		return 0;
	case OPT_JSON:
		return fr_json_mode_parse(optarg, &c->json, d);
	case OPT_FLAME:
		c->flame = true;
		return 0;
	case OPT_FROM:
		c->from = optarg;
		return 0;
	case OPT_TO:
		c->to = optarg;
		return 0;
	case OPT_HTML:
		c->html = true;
		return 0;
	case OPT_MIN_PERCENT:
		return parse_percent(c, optarg, d);
	case OPT_PID:
		return parse_pids(c, optarg, d);
	case OPT_COMM:
		c->config.filter.comm = optarg;
		return 0;
	case OPT_CGROUP:
		c->config.filter.cgroup = optarg;
		return 0;
	case OPT_CPU:
		return parse_cpu(c, optarg, d);
	case OPT_EVENT:
		c->config.filter.event = optarg;
		return 0;
	case OPT_SYMBOLS:
		return add_symbols(c, optarg, d);
	case OPT_NO_INLINE:
		c->config.places.no_inlines = true;
		return 0;
	case OPT_DEBUGINFOD:
		c->debuginfod = true;
		return 0;
	case OPT_DEBUGINFOD_TIME:
		if (fr_duration_parse(optarg, &c->debuginfod_ns) < 0 || c->debuginfod_ns == 0)
			return fr_fail(d, -EINVAL, "write it as --debuginfod-time=30s",
				"--debuginfod-time: '%s' is not a span", optarg);
		return 0;
	case OPT_COLOR:
		return parse_color(c, optarg, d);
	case OPT_NO_PAGER:
		c->no_pager = true;
		return 0;
	case OPT_MACHINE:
		c->machine = optarg;
		return 0;
	case 'q':
		c->quiet = true;
		return 0;
	case 'h':
		print_help();
		return 1;
	default: /* OPT_VERSION */
		printf(REPORT_PROGRAM " " FR_VERSION "\n");
		return 1;
	}
}

static int parse_verb(struct report_command *c, const char *word, struct fr_diag *d)
{
	static const char *const verbs[] = {[VERB_EXPLAIN] = "explain",
		[VERB_REPORT] = "report",
		[VERB_EXPORT] = "export",
		[VERB_BUNDLE] = "bundle"};

	for (size_t i = 0; i < FR_ARRAY_SIZE(verbs); i++)
		if (!strcmp(word, verbs[i])) {
			c->verb = (enum verb)i;
			return 0;
		}
	return fr_fail(d, -EINVAL, REPORT_PROGRAM " --help lists the verbs", "unknown verb '%s'", word);
}

/* Returns the newest dump of the directory. */
static int find_latest(const char *directory, char **ret, struct fr_diag *d)
{
	_cleanup_free_ struct fr_named_file *files = NULL;
	_cleanup_close_ int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t n = 0;
	int r = fd < 0 ? -errno : fr_names_list(fd, FR_NAME_DUMP, &files, &n);

	if (r < 0)
		return fr_fail_errno(d, r, "give the recorder's directory with -D, or a file",
			"cannot read %s", directory);
	if (n == 0)
		return fr_fail(
			d, -ENOENT, "make one: flightrecctl dump", "there is no dump in %s", directory);
	return asprintf(ret, "%s/%s", directory, files[n - 1].name) < 0 ? -ENOMEM : 0;
}

/* Sets the folders in which object files are searched: those of the user, the recorder's copies, and
   perf's. */
int report_command_set_places(struct report_command *c)
{
	struct fr_object_places *p = &c->config.places;
	const char *slash = strrchr(c->path, '/'), *home = getenv("HOME");

	c->beside = slash ? strndup(c->path, (size_t)(slash - c->path + 1)) : strdup("./");
	if (!c->beside || asprintf(&c->objects, "%s" OBJECTS, c->beside) < 0 ||
		asprintf(&c->cache, "%s/.debug", home ? home : "") < 0 ||
		asprintf(&c->kallsyms, "%s" FR_DUMP_KALLSYMS, c->path) < 0)
		return -ENOMEM;
	p->beside = c->beside;
	p->kallsyms = c->kallsyms;
	p->folders[p->n_folders++] = c->objects;
	p->folders[p->n_folders++] = c->cache;
	return 0;
}

int report_command_parse(struct report_command *c, int argc, char *argv[], struct fr_diag *d)
{
	int option, r = 0, n;

	fr_command_line_begin();
	while (r == 0 && (option = fr_command_line_next(&report_command_line, argc, argv, d)) != 0)
		r = option < 0 ? option : apply_option(c, option, d);
	if (r != 0)
		return r;
	n = argc - optind;
	if (n < 1)
		return fr_fail(d, -EINVAL, REPORT_PROGRAM " --help lists the verbs", "a verb is missing");
	r = parse_verb(c, argv[optind], d);
	if (r < 0)
		return r;
	if (n > 2) {
		c->paths = argv + optind + 1;
		c->n_paths = (size_t)n - 1;
	}
	if (n >= 2 && strcmp(argv[optind + 1], "latest") != 0)
		c->path = strdup(argv[optind + 1]);
	else
		r = find_latest(c->directory ? c->directory : STATE_DIRECTORY, &c->path, d);
	return r == 0 && !c->path ? -ENOMEM : r;
}

void report_command_deinit(struct report_command *c)
{
	free(c->pids);
	free(c->path);
	free(c->beside);
	free(c->objects);
	free(c->cache);
	free(c->kallsyms);
	free(c->new_file);
}
