// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrec-agent/command.h"
#include "base/cleanup.h"

#include <errno.h>
#include <getopt.h> /* optarg, optind */
#include <stdio.h>

#define STATE_DIRECTORY "/var/lib/flightrec-agent"

/* Options without a short form. */
enum { OPT_CONFIG = 256, OPT_SOCKET, OPT_STATE, OPT_VERSION };

static const struct fr_option options[] = {
	{"config", OPT_CONFIG, "FILE", "read FILE and FILE.d/*.conf (/etc/flightrec/flightrecd.conf)", NULL},
	{"socket", OPT_SOCKET, "PATH", "the control socket of the recorder", NULL},
	{"state", OPT_STATE, "DIR", "the directory of the state ($STATE_DIRECTORY, " STATE_DIRECTORY ")",
		NULL},
	{"help", 'h', NULL, "print this, and exit", NULL},
	{"version", OPT_VERSION, NULL, "print the version, and exit", NULL},
};

const struct fr_command_line agent_command_line = {
	.program = AGENT_PROGRAM, .options = options, .n = FR_ARRAY_SIZE(options)};

static void print_help(void)
{
	printf(AGENT_PROGRAM
		" [OPTIONS]\n"
		"\n"
		"Connects the flight recorder of this machine to a fleet: see flightrec-agent(8).\n"
		"\n"
		"Options:\n");
	fr_command_line_print(&agent_command_line);
}

static int apply_option(struct agent_command *c, int option)
{
	switch (option) {
	case OPT_CONFIG:
		c->config = optarg;
		return 0;
	case OPT_SOCKET:
		c->socket = optarg;
		return 0;
	case OPT_STATE:
		c->state = optarg;
		return 0;
	case 'h':
		print_help();
		return 1;
	default: /* OPT_VERSION */
		printf(AGENT_PROGRAM " " FR_VERSION "\n");
		return 1;
	}
}

int agent_command_parse(struct agent_command *c, int argc, char *argv[], struct fr_diag *d)
{
	int option, r = 0;

	fr_command_line_begin();
	while (r == 0 && (option = fr_command_line_next(&agent_command_line, argc, argv, d)) != 0)
		r = option < 0 ? option : apply_option(c, option);
	if (r != 0)
		return r;
	if (optind < argc)
		return fr_fail(d, -EINVAL, AGENT_PROGRAM " --help lists the options",
			"'%s' is one word too many", argv[optind]);
	if (!c->state)
		c->state = getenv("STATE_DIRECTORY");
	if (!c->state || !*c->state)
		c->state = STATE_DIRECTORY;
	return 0;
}
