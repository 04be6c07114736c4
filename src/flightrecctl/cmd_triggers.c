// SPDX-License-Identifier: GPL-2.0-or-later
/* The triggers of a recorder that runs: what they are, and the switches of each. */
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"
#include "base/units.h"
#include "control/interface.h"
#include "source/cause.h"

#include <stdio.h>
#include <string.h>

static const char *age(const cJSON *trigger, char *ret)
{
	const cJSON *ns = ctl_get(trigger, "last_fired_age_ns");

	if (!cJSON_IsNumber(ns) || !(ns->valuedouble >= 0 && ns->valuedouble < 0x1p63))
		return "-";
	return fr_duration_format((uint64_t)ns->valuedouble, ret);
}

static const char *or_dash(const char *s)
{
	return *s ? s : "-";
}

/* "30s", "30s+5s", "all" */
static const char *window(const cJSON *trigger, char ret[static 2 * FR_UNIT_SIZE])
{
	const double before = ctl_number(trigger, "window_ns"), after = ctl_number(trigger, "post_ns");
	char text[FR_UNIT_SIZE], post[FR_UNIT_SIZE];

	snprintf(ret, 2 * FR_UNIT_SIZE, "%s%s%s",
		before > 0 && before < 0x1p63 ? fr_duration_format((uint64_t)before, text) : "all",
		after > 0 ? "+" : "",
		after > 0 && after < 0x1p63 ? fr_duration_format((uint64_t)after, post) : "");
	return ret;
}

static void add_row(struct ctl_table *t, const struct ctl *ctl, const cJSON *trigger)
{
	_cleanup_free_ char *held = ctl_suppressed(ctl_get(trigger, "suppressed"));
	const char *unit = ctl_string(trigger, "unit"), *file = ctl_string(trigger, "last_file");
	const char *slash = strrchr(file, '/');
	const bool measures = *unit || ctl_get(trigger, "threshold");
	char last[FR_CAUSE_VALUE_SIZE], threshold[FR_CAUSE_VALUE_SIZE], ago[FR_UNIT_SIZE],
		span[2 * FR_UNIT_SIZE];

	ctl_table_cell(t, "%s", ctl_string(trigger, "name"));
	ctl_table_cell(t, "%s", ctl_string(trigger, "source"));
	if (ctl->verbose)
		ctl_table_cell(t, "%s", or_dash(ctl_string(trigger, "subject")));
	ctl_table_cell(t, "%s", ctl_string(trigger, "state"));
	ctl_table_cell(t, "%s", measures ? ctl_value(trigger, "last_value", unit, last) : "-");
	ctl_table_cell(t, "%s", ctl_value(trigger, "threshold", unit, threshold));
	ctl_table_cell(t, "%s", window(trigger, span));
	ctl_table_cell(t, "%.0f", ctl_number(trigger, "fired"));
	ctl_table_cell(t, "%.0f", ctl_number(trigger, "joined"));
	ctl_table_cell(t, "%s", held ? held : "-");
	if (ctl->verbose) {
		ctl_table_cell(t, "%.0f", ctl_number(trigger, "cooled"));
		ctl_table_cell(t, "%.0f", ctl_number(trigger, "lost"));
	}
	ctl_table_cell(t, "%s", age(trigger, ago));
	ctl_table_cell(t, "%s", or_dash(slash ? slash + 1 : file));
}

/* What is wrong with a trigger, in words, to be freed; NULL: nothing. A verifier's log has lines. */
static char *problem_of(const cJSON *trigger)
{
	const char *name = ctl_string(trigger, "name"), *hint = ctl_string(trigger, "hint"),
		   *gone = ctl_string(trigger, "gone");
	const double bad = ctl_number(trigger, "bad");
	char *text = NULL;
	int n = 0;

	if (!strcmp(ctl_string(trigger, "state"), "failed"))
		n = asprintf(&text, "%s: %s%s%s", name, ctl_string(trigger, "what"), *hint ? "; " : "", hint);
	else if (!strcmp(ctl_string(trigger, "state"), "arming"))
		n = asprintf(&text, "%s is still being armed: %s", name, ctl_string(trigger, "what"));
	else if (*gone)
		n = asprintf(&text, "%s hears nothing for now: %s", name, gone);
	else if (bad > 0)
		n = asprintf(&text, "%s: %.0f of what came could not be understood", name, bad);
	return n < 0 ? NULL : text;
}

static void print_problems(const cJSON *triggers)
{
	const cJSON *trigger;

	cJSON_ArrayForEach (trigger, triggers) {
		_cleanup_free_ char *text = problem_of(trigger);

		if (!text)
			continue;
		ctl_clean(text);
		printf("%s%s%s\n", ctl_colour(CTL_RED), text, ctl_colour(CTL_NORMAL));
	}
}

static void print_tokens(const cJSON *reply)
{
	const double burst = ctl_number(reply, "burst"), next = ctl_number(reply, "next_token_ns"),
		     interval = ctl_number(reply, "interval_ns"),
		     tokens = FR_MAX(ctl_number(reply, "tokens"), 0);
	char of[FR_UNIT_SIZE], in[FR_UNIT_SIZE];

	if (!(burst > 0 && burst < 0x1p31) || !(interval > 0 && interval < 0x1p63))
		return;
	printf("%u of %.0f dumps in %s are left to the triggers", (unsigned)FR_MIN(tokens, burst), burst,
		fr_duration_format((uint64_t)interval, of));
	if (next > 0 && next < 0x1p63)
		printf("; the next comes in %s", fr_duration_format((uint64_t)next, in));
	putchar('\n');
}

static void print(const struct ctl *ctl, const cJSON *reply)
{
	const cJSON *trigger, *triggers = ctl_get(reply, "triggers");
	struct ctl_table *t = ctl_table_new(
		ctl->verbose
			? "NAME|SOURCE|OF|STATE|>LAST|>THRESHOLD|>WINDOW|>FIRED|>JOINED|SUPPRESSED|>COOLED|>"
			  "LOST|>AGE|LAST FILE"
			: "NAME|SOURCE|STATE|>LAST|>THRESHOLD|>WINDOW|>FIRED|>JOINED|SUPPRESSED|>AGE|LAST "
			  "FILE");

	cJSON_ArrayForEach (trigger, triggers)
		add_row(t, ctl, trigger);
	ctl_table_print(t, !ctl->no_legend);
	if (ctl->no_legend)
		return;
	putchar('\n');
	print_problems(triggers);
	print_tokens(reply);
}

int ctl_cmd_triggers(const struct ctl *ctl)
{
	cJSON *reply;
	int code = ctl_call(ctl, FR_METHOD_TRIGGERS, NULL, &reply);

	if (code != FR_EXIT_OK)
		return code;
	if (ctl->json != FR_JSON_OFF)
		ctl_print_json(ctl, reply);
	else
		print(ctl, reply);
	cJSON_Delete(reply);
	return FR_EXIT_OK;
}

static cJSON *named(const char *name)
{
	cJSON *o = cJSON_CreateObject();

	cJSON_AddStringToObject(o, "name", name);
	return o;
}

int ctl_cmd_test_trigger(const struct ctl *ctl)
{
	cJSON *reply;
	int code = ctl_call(ctl, FR_METHOD_TEST_TRIGGER, named(ctl->args[0]), &reply);

	if (code != FR_EXIT_OK)
		return code;
	if (ctl->json != FR_JSON_OFF)
		ctl_print_json(ctl, reply);
	else
		printf("%.0f\n", ctl_number(reply, "id"));
	cJSON_Delete(reply);
	return FR_EXIT_OK;
}

/* NAME is enabled: whether it is armed, too. */
static int check_armed(const struct ctl *ctl, const char *name)
{
	struct fr_client *client = NULL;
	int code = ctl_connect(ctl, &client);
	cJSON *not_armed = client ? ctl_not_armed(client, name) : NULL;

	fr_client_free(client);
	(void)ctl_warn_not_armed(not_armed);
	if (cJSON_GetArraySize(not_armed))
		code = FR_EXIT_ERROR;
	cJSON_Delete(not_armed);
	return code;
}

/* One that fails does not hinder the others; the first failure is the exit code. */
static int set_triggers(const struct ctl *ctl, bool enabled)
{
	int code = FR_EXIT_OK;

	for (size_t i = 0; i < ctl->n_args; i++) {
		cJSON *parameters = named(ctl->args[i]);
		int one;

		cJSON_AddBoolToObject(parameters, "enabled", enabled);
		one = ctl_call(ctl, FR_METHOD_SET_TRIGGER, parameters, NULL);
		if (one == FR_EXIT_OK && enabled)
			one = check_armed(ctl, ctl->args[i]);
		code = code ? code : one;
		if (one == FR_EXIT_UNREACHABLE)
			break;
	}
	return code;
}

int ctl_cmd_enable(const struct ctl *ctl)
{
	return set_triggers(ctl, true);
}

int ctl_cmd_disable(const struct ctl *ctl)
{
	return set_triggers(ctl, false);
}
