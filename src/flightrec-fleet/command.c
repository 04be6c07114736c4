// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrec-fleet/command.h"
#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/units.h"
#include "fleet/fleet.h"
#include "fleet/labels.h"

#include <errno.h>
#include <getopt.h> /* optarg, optind */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DAY_NS (86400 * 1000000000ULL)
#define HELP_HINT FLEET_PROGRAM " --help lists verbs and options"

/* Options without a short form. */
enum {
	OPT_CONFIG = 256,
	OPT_SERVERS,
	OPT_CREDENTIALS,
	OPT_CERTIFICATE,
	OPT_KEY,
	OPT_STORE_CREDENTIALS,
	OPT_JSON,
	OPT_UTC,
	OPT_NO_PAGER,
	OPT_NO_LEGEND,
	OPT_MATCH,
	OPT_LAST,
	OPT_POST,
	OPT_FROM,
	OPT_TO,
	OPT_REASON,
	OPT_WAIT_LIMIT,
	OPT_NO_WAIT,
	OPT_WAIT_STORED,
	OPT_SINCE,
	OPT_UNTIL,
	OPT_TRIGGER,
	OPT_MACHINE,
	OPT_KEEP,
	OPT_REPLICAS,
	OPT_OLDER_THAN,
	OPT_VERSION
};

/* The member `verb` has the verbs with the option. */
static const struct fr_option options[] = {
	{"match", OPT_MATCH, "SELECTOR", "only machines with these labels: role=db,zone!=b,name=web-*",
		"dump list status"},
	{"last", OPT_LAST, "SPAN", "dump: the last 30s, 5min … before the command (the whole ring)", "dump"},
	{"post", OPT_POST, "SPAN", "dump: also record for this time after the command", "dump"},
	{"from", OPT_FROM, "TIME",
		"dump: from this time on, by the clock of the broker: 23:11, -5min, @EPOCH", "dump"},
	{"to", OPT_TO, "TIME", "dump: up to this time, instead of now", "dump"},
	{"reason", OPT_REASON, "TEXT", "dump: a text for the dumps and the index", "dump"},
	{"wait-limit", OPT_WAIT_LIMIT, "SPAN",
		"dump: wait at most this long for the machines (10s; with --wait-stored: 10min)", "dump"},
	{"no-wait", OPT_NO_WAIT, NULL, "dump: print the id, and do not wait", "dump"},
	{"wait-stored", OPT_WAIT_STORED, NULL, "dump: wait until the store has the dumps", "dump"},
	{"since", OPT_SINCE, "TIME", "list: only dumps of this time and later", "list"},
	{"until", OPT_UNTIL, "TIME", "list: only dumps up to this time", "list"},
	{"trigger", OPT_TRIGGER, "NAME", "list: only dumps of this trigger; fleet: of persons", "list"},
	{"lines", 'n', "N", "list: only the newest N", "list"},
	{"directory", 'o', "DIR", "get: make the folder DIR/ID (the current directory)", "get explain"},
	{"machine", OPT_MACHINE, "NAME", "get: only the dump of this machine", "get"},
	{"keep", OPT_KEEP, "SPAN", "setup: remove dumps and their index entries after this time (90d)",
		"setup"},
	{"replicas", OPT_REPLICAS, "N", "setup: servers of the broker that keep each stream: 1, 3 or 5 (1)",
		"setup"},
	{"older-than", OPT_OLDER_THAN, "SPAN", "prune: remove all dumps that are older", "prune"},
	{"config", OPT_CONFIG, "FILE", "the configuration with [Fleet] (/etc/flightrec/flightrecd.conf)",
		NULL},
	{"servers", OPT_SERVERS, "URLS", "the broker, instead of Servers= of the configuration", NULL},
	{"credentials", OPT_CREDENTIALS, "FILE", "a .creds file of the broker ($FLIGHTREC_FLEET_CREDENTIALS)",
		NULL},
	{"certificate", OPT_CERTIFICATE, "FILE", "a TLS certificate of yours, for the broker", NULL},
	{"key", OPT_KEY, "FILE", "the key of this certificate", NULL},
	{"store-credentials", OPT_STORE_CREDENTIALS, "FILE",
		"keys of the store ($AWS_SHARED_CREDENTIALS_FILE, ~/.aws/credentials)", NULL},
	{"json", OPT_JSON, "[HOW]", "print JSON instead of text: pretty, short or off", NULL},
	{"utc", OPT_UTC, NULL, "print times in UTC instead of local time", NULL},
	{"no-legend", OPT_NO_LEGEND, NULL, "print no headings", NULL},
	{"no-pager", OPT_NO_PAGER, NULL, "do not use a pager", NULL},
	{"quiet", 'q', NULL, "print only results, errors and warnings, and no progress", NULL},
	{"help", 'h', NULL, "print this, and exit", NULL},
	{"version", OPT_VERSION, NULL, "print the version, and exit", NULL},
};

static const struct fr_option_group groups[] = {
	{OPT_MATCH, "Options of verbs:"}, {OPT_CONFIG, "Options of all verbs:"}};

const struct fr_command_line fleet_command_line = {.program = FLEET_PROGRAM,
	.options = options,
	.n = FR_ARRAY_SIZE(options),
	.groups = groups,
	.n_groups = FR_ARRAY_SIZE(groups)};
_Static_assert(FR_ARRAY_SIZE(options) <= FR_OPTIONS_MAX, "the options fit");

const char *const fleet_verb_names[FLEET_VERBS] = {
	[FLEET_DUMP] = "dump",
	[FLEET_LIST] = "list",
	[FLEET_STATUS] = "status",
	[FLEET_GET] = "get",
	[FLEET_EXPLAIN] = "explain",
	[FLEET_WATCH] = "watch",
	[FLEET_SETUP] = "setup",
	[FLEET_PRUNE] = "prune",
	[FLEET_FORGET] = "forget",
};

static void print_help(void)
{
	printf("flightrecctl fleet VERB [OPTIONS]\n"
	       "\n"
	       "Asks all machines of the fleet for the same seconds.\n"
	       "\n"
	       "Verbs:\n"
	       "  dump            ask the machines for dumps of one window, and wait for their answers\n"
	       "  list            the fleet dumps of the index\n"
	       "  status [ID]     the machines; or what they did for one fleet dump\n"
	       "  get ID          download the dumps of all machines\n"
	       "  explain ID      say what happened, from the dumps of all machines\n"
	       "  watch           show commands, answers and index entries as they come\n"
	       "  setup           create the streams of the broker, and check the store\n"
	       "  prune [ID]      remove old dumps, or one fleet dump, from the store and the index\n"
	       "  forget MACHINE  remove a machine that is gone from the list of machines\n");
	fr_command_line_print(&fleet_command_line);
	printf("\nExit codes: 0 ok, 1 error, 2 usage, 3 broker or store not reachable, 4 refused by all "
	       "machines,\n"
	       "5 permission, 6 no space, 7 done, but a machine is missing. flightrec-fleet(1) says more.\n");
}

static int parse_span(const char *option, uint64_t most_ns, uint64_t *ret, struct fr_diag *d)
{
	uint64_t v;

	if (fr_duration_parse(optarg, &v) < 0 || v == 0 || v > most_ns)
		return fr_fail(d, -EINVAL, "write it as 30s, 5min or 90d", "--%s: '%s' is not a span%s",
			option, optarg, most_ns == UINT64_MAX ? "" : ", or is too long");
	*ret = v;
	return 0;
}

static int parse_number(const char *option, uint64_t *ret, struct fr_diag *d)
{
	if (fr_u64_parse(optarg, ret) < 0 || *ret == 0 || *ret > UINT32_MAX)
		return fr_fail(d, -EINVAL, "write it as 20", "%s: '%s' is not a number", option, optarg);
	return 0;
}

/* The values that are only stored. Returns NULL for other options. */
static const char **find_text(struct fleet_command *c, int option)
{
	switch (option) {
	case OPT_CONFIG:
		return &c->config;
	case OPT_SERVERS:
		return &c->servers;
	case OPT_CREDENTIALS:
		return &c->credentials;
	case OPT_CERTIFICATE:
		return &c->certificate;
	case OPT_KEY:
		return &c->key;
	case OPT_STORE_CREDENTIALS:
		return &c->store_credentials;
	case OPT_MATCH:
		return &c->match;
	case OPT_FROM:
		return &c->from;
	case OPT_TO:
		return &c->to;
	case OPT_REASON:
		return &c->reason;
	case OPT_SINCE:
		return &c->since;
	case OPT_UNTIL:
		return &c->until;
	case OPT_TRIGGER:
		return &c->trigger;
	case 'o':
		return &c->directory;
	case OPT_MACHINE:
		return &c->machine;
	default:
		return NULL;
	}
}

static int apply_value(struct fleet_command *c, int option, struct fr_diag *d)
{
	switch (option) {
	case OPT_LAST:
		return parse_span("last", 366 * DAY_NS, &c->last_ns, d);
	case OPT_POST:
		return parse_span("post", DAY_NS / 24, &c->post_ns, d);
	case OPT_WAIT_LIMIT:
		return parse_span("wait-limit", DAY_NS / 24, &c->wait_limit_ns, d);
	case OPT_KEEP:
		return parse_span("keep", UINT64_MAX, &c->keep_ns, d);
	case OPT_OLDER_THAN:
		return parse_span("older-than", UINT64_MAX, &c->older_ns, d);
	case OPT_REPLICAS:
		return parse_number("--replicas", &c->replicas, d);
	case 'n':
		return parse_number("-n", &c->newest, d);
	default: /* OPT_JSON */
		return fr_json_mode_parse(optarg, &c->json, d);
	}
}

static int apply_option(struct fleet_command *c, int option, struct fr_diag *d)
{
	const char **text = find_text(c, option);

	if (text) {
		*text = optarg;
		return 0;
	}
	switch (option) {
	case OPT_NO_WAIT:
	case OPT_WAIT_STORED:
		if (c->wait != FLEET_WAIT_DONE)
			return fr_fail(d, -EINVAL, NULL, "--no-wait and --wait-stored exclude each other");
		c->wait = option == OPT_NO_WAIT ? FLEET_WAIT_NO : FLEET_WAIT_STORED;
		return 0;
	case OPT_UTC:
		c->utc = true;
		return 0;
	case OPT_NO_PAGER:
		c->no_pager = true;
		return 0;
	case OPT_NO_LEGEND:
		c->no_legend = true;
		return 0;
	case 'q':
		c->quiet = true;
		return 0;
	case 'h':
		print_help();
		return 1;
	case OPT_VERSION:
		printf(FLEET_PROGRAM " " FR_VERSION "\n");
		return 1;
	default:
		return apply_value(c, option, d);
	}
}

static const char *verb_name(const void *names, size_t i)
{
	return ((const char *const *)names)[i];
}

static int parse_verb(struct fleet_command *c, const char *word, struct fr_diag *d)
{
	const char *near = fr_nearest_name(word, verb_name, fleet_verb_names, FLEET_VERBS);
	char hint[128];

	for (int i = 0; i < FLEET_VERBS; i++)
		if (strcmp(word, fleet_verb_names[i]) == 0) {
			c->verb = (enum fleet_verb)i;
			return 0;
		}
	snprintf(hint, sizeof(hint), "%s%s%s" HELP_HINT, near ? "did you mean " : "", near ? near : "",
		near ? "? " : "");
	return fr_fail(d, -EINVAL, hint, "unknown verb '%s'", word);
}

static bool has_word(const char *list, const char *word)
{
	const size_t n = strlen(word);

	for (const char *p = list; (p = strstr(p, word)); p += n)
		if ((p == list || p[-1] == ' ') && (p[n] == '\0' || p[n] == ' '))
			return true;
	return false;
}

/* Refuses options of other verbs. Bit I of GIVEN is set if options[I] was given. */
static int check_options(const struct fleet_command *c, uint64_t given, struct fr_diag *d)
{
	const char *verb = fleet_verb_names[c->verb];

	for (size_t i = 0; i < FR_ARRAY_SIZE(options); i++)
		if (given & 1ULL << i && options[i].verb && !has_word(options[i].verb, verb))
			return fr_fail(d, -EINVAL, "leave the option out, or use the other verb",
				"the verb %s has no option --%s", verb, options[i].name);
	return 0;
}

static int check_argument(const struct fleet_command *c, struct fr_diag *d)
{
	const char *verb = fleet_verb_names[c->verb], *hint = "flightrecctl fleet list shows the ids";

	switch (c->verb) {
	case FLEET_GET:
	case FLEET_EXPLAIN:
		if (!c->argument)
			return fr_fail(d, -EINVAL, hint, "%s needs the id of a fleet dump", verb);
		break;
	case FLEET_STATUS:
	case FLEET_PRUNE:
		break;
	case FLEET_FORGET:
		if (!c->argument || !fr_fleet_name_is_valid(c->argument))
			return fr_fail(d, -EINVAL, "flightrecctl fleet status shows the names",
				"forget needs the name of a machine");
		return 0;
	default:
		if (c->argument)
			return fr_fail(
				d, -EINVAL, HELP_HINT, "%s: unexpected argument '%s'", verb, c->argument);
	}
	if (c->argument && !fr_fleet_id_is_valid(c->argument))
		return fr_fail(d, -EINVAL, hint, "'%s' is not the id of a fleet dump", c->argument);
	return 0;
}

static int check_together(const struct fleet_command *c, struct fr_diag *d)
{
	const char *hint = "give --last, --from and --to, or --post";

	if (c->last_ns && c->from)
		return fr_fail(d, -EINVAL, hint, "--last and --from exclude each other");
	if (c->post_ns && (c->from || c->to))
		return fr_fail(d, -EINVAL, hint, "--post excludes --from and --to");
	if (c->verb == FLEET_PRUNE && !c->argument == !c->older_ns)
		return fr_fail(d, -EINVAL,
			"give one of them, as in: flightrecctl fleet prune --older-than 90d",
			"prune needs --older-than or an id");
	if (c->verb == FLEET_STATUS && c->argument && *c->match)
		return fr_fail(d, -EINVAL, "leave one of them out", "an id and --match exclude each other");
	if (c->replicas != 1 && c->replicas != 3 && c->replicas != 5)
		return fr_fail(d, -EINVAL, NULL, "--replicas must be 1, 3 or 5");
	if (c->machine && !fr_fleet_name_is_valid(c->machine))
		return fr_fail(d, -EINVAL, "flightrecctl fleet status shows the names",
			"--machine: '%s' is not the name of a machine", c->machine);
	return fr_selector_check(c->match, d);
}

static const char *from_environment(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

static void set_defaults(struct fleet_command *c)
{
	*c = (struct fleet_command){.match = "",
		.keep_ns = 90 * DAY_NS,
		.replicas = 1,
		.servers = from_environment("FLIGHTREC_FLEET_SERVERS"),
		.credentials = from_environment("FLIGHTREC_FLEET_CREDENTIALS"),
		.user = from_environment("FLIGHTREC_FLEET_USER"),
		.password = from_environment("FLIGHTREC_FLEET_PASSWORD")};
}

int fleet_command_parse(struct fleet_command *c, int argc, char *argv[], struct fr_diag *d)
{
	uint64_t given = 0;
	int option, r = 0;

	set_defaults(c);
	fr_command_line_begin();
	while (r == 0 && (option = fr_command_line_next(&fleet_command_line, argc, argv, d)) != 0) {
		if (option > 0)
			given |= 1ULL << (fr_command_line_find(&fleet_command_line, option) - options);
		r = option < 0 ? option : apply_option(c, option, d);
	}
	if (r != 0)
		return r;
	if (optind == argc)
		return fr_fail(d, -EINVAL, HELP_HINT, "a verb is missing");
	if (argc - optind > 2)
		return fr_fail(d, -EINVAL, HELP_HINT, "unexpected argument '%s'", argv[optind + 2]);
	c->argument = argv[optind + 1];
	r = parse_verb(c, argv[optind], d);
	if (r == 0)
		r = check_options(c, given, d);
	if (r == 0)
		r = check_argument(c, d);
	return r == 0 ? check_together(c, d) : r;
}
