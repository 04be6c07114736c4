/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The command line of flightrec-fleet. */

#include "base/command_line.h"

#include <stdbool.h>
#include <stdint.h>

#define FLEET_PROGRAM "flightrec-fleet"

enum fleet_verb {
	FLEET_DUMP,
	FLEET_LIST,
	FLEET_STATUS,
	FLEET_GET,
	FLEET_EXPLAIN,
	FLEET_WATCH,
	FLEET_SETUP,
	FLEET_PRUNE,
	FLEET_FORGET,
	FLEET_VERBS
};

enum fleet_wait { FLEET_WAIT_DONE, FLEET_WAIT_NO, FLEET_WAIT_STORED };

struct fleet_command { /* the strings are borrowed from argv and the environment */
	enum fleet_verb verb;
	const char *config, *servers, *credentials, *certificate, *key, *user, *password, *store_credentials;
	enum fr_json_mode json;
	bool no_pager, no_legend, utc, quiet;
	const char *match;				    /* "" if not given */
	const char *argument;				    /* an id or a machine; NULL: not given */
	const char *from, *to;				    /* dump; NULL: not given */
	const char *since, *until;			    /* list; NULL: not given */
	uint64_t last_ns, post_ns;			    /* 0: not given */
	const char *reason, *trigger, *directory, *machine; /* NULL: not given */
	uint64_t wait_limit_ns;				    /* 0: not given */
	enum fleet_wait wait;
	uint64_t newest; /* list: -n; 0: all */
	uint64_t keep_ns, older_ns;
	uint64_t replicas;
};

extern const struct fr_command_line fleet_command_line;
extern const char *const fleet_verb_names[FLEET_VERBS];

/* Sets C. Returns 0; 1 after --help or --version, which print their text; or a negative errno, with a message
   in D: -EINVAL if the command line is wrong. */
int fleet_command_parse(struct fleet_command *c, int argc, char *argv[], struct fr_diag *d);
