// SPDX-License-Identifier: GPL-2.0-or-later
/* Prints decisions: whether an anomaly made a dump, and why. The verb `why` prints the last decisions, and
   `watch` prints each new decision. */
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"
#include "control/interface.h"

#include <stdio.h>
#include <string.h>

#define LINES_DEFAULT 20
#define LINES_MAX 256 /* FR_DECISIONS_REMEMBERED of the recorder */

static uint64_t lines;

/* Returns the verdict, its reason and the number of repeats, to be freed: "cool-down: cools down for another
   42s, and 1000 more until 3.0s ago". If WITH_FILE is true, another column shows the file of the dump. In
   this case, the reason of the verdicts "fire" and "join" is left out, because it only names that dump,
   unless the trigger also asks the fleet. */
static char *describe_verdict(const cJSON *decision, bool with_file)
{
	const char *verdict = ctl_string(decision, "verdict"), *why = ctl_string(decision, "why");
	const bool fired = !strcmp(verdict, "fire"), joined = !strcmp(verdict, "join");
	const bool plain = !*why || (with_file && (fired || joined) && !ctl_get(decision, "fleet"));
	const double repeats = ctl_number(decision, "repeats");
	char more[2 * FR_UNIT_SIZE] = "";

	if (repeats > 0 && repeats < 0x1p53 && ctl_is_countable(decision, "last_age_ns"))
		snprintf(more, sizeof(more), ", and %.0f more until %s ago", repeats,
			ctl_ns(decision, "last_age_ns"));
	return ctl_format("%s%s%s%s",
		fired	 ? "fired"
		: joined ? "joined"
			 : verdict,
		plain ? "" : ": ", plain ? "" : why, more);
}

static void add_row(struct fr_table *t, const cJSON *decision)
{
	_cleanup_free_ char *cause = ctl_describe_cause(ctl_get(decision, "cause")),
			    *process = ctl_describe_process(ctl_get(decision, "cause")),
			    *verdict = describe_verdict(decision, true);

	fr_table_texts(t, ctl_time(decision, "time"), ctl_string(decision, "trigger"), cause, process,
		verdict, NULL);
	if (*ctl_string(decision, "file"))
		fr_table_cell(t, "%s", basename(ctl_string(decision, "file")));
	else if (ctl_get(decision, "dump_id"))
		fr_table_cell(t, "dump %.0f", ctl_number(decision, "dump_id"));
	else
		fr_table_cell(t, "-");
}

static void print_decisions(const cJSON *decisions)
{
	struct fr_table *t = fr_table_new(ctl.utc ? "TIME (UTC)|TRIGGER|WHAT|WHO|DECISION|FILE"
						  : "TIME|TRIGGER|WHAT|WHO|DECISION|FILE");
	const cJSON *decision;

	cJSON_ArrayForEach (decision, decisions)
		add_row(t, decision);
	if (fr_table_rows(t) == 0 && !ctl.no_legend)
		puts("No trigger has fired yet.");
	ctl_table_print(t, !ctl.no_legend && fr_table_rows(t) > 0);
}

static int run_why(void)
{
	cJSON *parameters = cJSON_CreateObject();

	cJSON_AddNumberToObject(parameters, "max", (double)(lines == CTL_NOT_GIVEN ? LINES_DEFAULT : lines));
	return ctl_call_and_print(FR_METHOD(Decisions), parameters, "decisions", print_decisions);
}

static void print_line(const cJSON *decision)
{
	_cleanup_free_ char *cause = ctl_describe_cause(ctl_get(decision, "cause")),
			    *process = ctl_describe_process(ctl_get(decision, "cause")),
			    *verdict = describe_verdict(decision, false),
			    *line = ctl_format("%s %s: %s, %s: %s", ctl_time(decision, "time"),
				    ctl_string(decision, "trigger"), cause, process, verdict);

	ctl_replace_control_characters(line);
	puts(line);
}

/* Prints one decision, and flushes the output, so that the reader of a pipe gets the decision at once. If the
   reader of the pipe has gone, returns false to end the stream. */
static bool print_reply(void *ctx, const cJSON *parameters)
{
	const double skipped = ctl_number(parameters, "skipped");

	if (skipped > 0)
		fprintf(stderr, "flightrecctl: %.0f decisions were missed here\n", skipped);
	if (ctl.json != FR_JSON_OFF)
		ctl_print_json(ctl_get(parameters, "decision"));
	else
		print_line(ctl_get(parameters, "decision"));
	return fflush(stdout) == 0;
}

static int run_watch(void)
{
	struct fr_client *client;
	struct fr_diag diag = {0};
	int r, code = ctl_connect(&client);

	if (code != FR_EXIT_OK)
		return code;
	r = fr_client_stream(client, FR_METHOD(Watch), NULL, print_reply, NULL, &diag);
	fr_client_free(client);
	return r < 0 ? ctl_fail(&diag, r) : FR_EXIT_OK;
}

static const struct ctl_option options[] = {
	{"lines", 'n', "N", "number of decisions, 1 to 256 (20)", CTL_COUNT, &lines, 1, LINES_MAX},
	{0},
};

CTL_VERB(why, CTL_TRIGGERS, "why", NULL, "the last decisions: what fired, and why it made a dump or did not",
	.options = options, .pages = true, .run = run_why);

CTL_VERB(watch, CTL_TRIGGERS, "watch", NULL, "a line for each decision from now on", .run = run_watch);
