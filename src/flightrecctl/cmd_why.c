// SPDX-License-Identifier: GPL-2.0-or-later
/* What was decided of anomalies: the last ones, and each as it comes. */
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "control/interface.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LINES_DEFAULT 20

/* ", and 1000 more until 3.0s ago", of a storm; RET has 2 * FR_UNIT_SIZE bytes. */
static const char *more_of(const cJSON *decision, char *ret)
{
	const double repeats = ctl_number(decision, "repeats"), ns = ctl_number(decision, "last_age_ns");
	char ago[FR_UNIT_SIZE];

	if (!(repeats > 0 && repeats < 0x1p53 && ns >= 0 && ns < 0x1p63))
		return "";
	snprintf(ret, 2 * FR_UNIT_SIZE, ", and %.0f more until %s ago", repeats,
		fr_duration_format((uint64_t)ns, ago));
	return ret;
}

/* The verdict, and why where that is not plain to see; to be freed. */
static char *verdict_of(const cJSON *decision, bool has_file)
{
	const char *verdict = ctl_string(decision, "verdict"), *why = ctl_string(decision, "why");
	const bool fired = !strcmp(verdict, "fire"), joined = !strcmp(verdict, "join");
	const bool plain = !*why || (has_file && (fired || joined));
	char more[2 * FR_UNIT_SIZE], *ret;

	if (asprintf(&ret, "%s%s%s%s",
		    fired    ? "fired"
		    : joined ? "joined"
			     : verdict,
		    plain ? "" : ": ", plain ? "" : why, more_of(decision, more)) < 0)
		return NULL;
	return ret;
}

/* The file's name, or what there is of it; RET has FR_UNIT_SIZE bytes. */
static const char *file_of(const cJSON *decision, char *ret)
{
	const char *file = ctl_string(decision, "file"), *slash = strrchr(file, '/');

	if (*file)
		return slash ? slash + 1 : file;
	if (!ctl_get(decision, "dump_id"))
		return "-";
	snprintf(ret, FR_UNIT_SIZE, "dump %.0f", ctl_number(decision, "dump_id"));
	return ret;
}

static void add_row(const struct ctl *ctl, struct ctl_table *t, const cJSON *decision)
{
	_cleanup_free_ char *what = ctl_cause_what(ctl_get(decision, "cause")),
			    *who = ctl_cause_who(ctl_get(decision, "cause")),
			    *verdict = verdict_of(decision, true);
	char time[FR_UNIT_SIZE], file[FR_UNIT_SIZE];

	ctl_table_cell(t, "%s", ctl_time(ctl, ctl_string(decision, "time"), false, time));
	ctl_table_cell(t, "%s", ctl_string(decision, "trigger"));
	ctl_table_cell(t, "%s", what ? what : "-");
	ctl_table_cell(t, "%s", who ? who : "-");
	ctl_table_cell(t, "%s", verdict ? verdict : "-");
	ctl_table_cell(t, "%s", file_of(decision, file));
}

static void print(const struct ctl *ctl, const cJSON *decisions)
{
	struct ctl_table *t = ctl_table_new(ctl->utc ? "TIME (UTC)|TRIGGER|WHAT|WHO|DECISION|FILE"
						     : "TIME|TRIGGER|WHAT|WHO|DECISION|FILE");
	const cJSON *decision;

	cJSON_ArrayForEach (decision, decisions)
		add_row(ctl, t, decision);
	if (ctl_table_rows(t) == 0 && !ctl->no_legend)
		puts("No trigger has fired yet.");
	ctl_table_print(t, !ctl->no_legend && ctl_table_rows(t) > 0);
}

int ctl_cmd_why(const struct ctl *ctl)
{
	cJSON *reply, *parameters = cJSON_CreateObject();
	int code;

	cJSON_AddNumberToObject(parameters, "max", (double)(ctl->lines ? ctl->lines : LINES_DEFAULT));
	code = ctl_call(ctl, FR_METHOD_DECISIONS, parameters, &reply);
	if (code != FR_EXIT_OK)
		return code;
	if (ctl->json != FR_JSON_OFF)
		ctl_print_json(ctl, ctl_get(reply, "decisions"));
	else
		print(ctl, ctl_get(reply, "decisions"));
	cJSON_Delete(reply);
	return FR_EXIT_OK;
}

static void print_line(const struct ctl *ctl, const cJSON *decision)
{
	_cleanup_free_ char *what = ctl_cause_what(ctl_get(decision, "cause")),
			    *who = ctl_cause_who(ctl_get(decision, "cause")),
			    *verdict = verdict_of(decision, false), *line = NULL;
	char time[FR_UNIT_SIZE];

	if (asprintf(&line, "%s %s: %s, %s: %s", ctl_time(ctl, ctl_string(decision, "time"), false, time),
		    ctl_string(decision, "trigger"), what ? what : "", who ? who : "-",
		    verdict ? verdict : "") < 0) {
		line = NULL;
		return;
	}
	ctl_clean(line);
	puts(line);
}

/* A line at once, also into a pipe. Whoever read it may have gone: then it is over. */
static bool watched(void *ctx, const cJSON *parameters)
{
	const struct ctl *ctl = ctx;
	const double skipped = ctl_number(parameters, "skipped");

	if (skipped > 0)
		fprintf(stderr, "flightrecctl: %.0f decisions were missed here\n", skipped);
	if (ctl->json != FR_JSON_OFF)
		ctl_print_json(ctl, ctl_get(parameters, "decision"));
	else
		print_line(ctl, ctl_get(parameters, "decision"));
	return fflush(stdout) == 0;
}

int ctl_cmd_watch(const struct ctl *ctl)
{
	struct fr_client *client;
	struct fr_diag diag = {0};
	int r, code = ctl_connect(ctl, &client);

	if (code != FR_EXIT_OK)
		return code;
	r = fr_client_stream(client, FR_METHOD_WATCH, NULL, watched, (void *)ctl, &diag);
	fr_client_free(client);
	return r < 0 ? ctl_fail(&diag, r) : FR_EXIT_OK;
}
