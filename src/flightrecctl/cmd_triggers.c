// SPDX-License-Identifier: GPL-2.0-or-later
/* Verbs about the triggers of the running recorder: list, test, arm and disarm them. */
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"
#include "control/interface.h"

#include <stdio.h>
#include <string.h>

static const char *or_dash(const char *s)
{
	return *s ? s : "-";
}

static void add_row(struct fr_table *t, const cJSON *trigger)
{
	const char *unit = ctl_string(trigger, "unit");
	_cleanup_free_ char *suppressed = ctl_describe_suppressed(ctl_get(trigger, "suppressed")),
			    *last = ctl_value(trigger, "last_value", unit),
			    *threshold = ctl_value(trigger, "threshold", unit);
	const bool measures = *unit || ctl_get(trigger, "threshold");
	const bool has_window = ctl_number(trigger, "window_ns") > 0,
		   has_post = ctl_number(trigger, "post_ns") > 0;

	fr_table_texts(t, ctl_string(trigger, "name"), ctl_string(trigger, "source"), NULL);
	if (ctl.verbose)
		fr_table_texts(t, or_dash(ctl_string(trigger, "subject")), NULL);
	fr_table_texts(t, ctl_string(trigger, "state"), measures ? last : "-", threshold, NULL);
	/* The window: "30s"; with a post-trigger time: "30s+5s"; for the whole ring: "all". */
	fr_table_cell(t, "%s%s%s", has_window ? ctl_ns(trigger, "window_ns") : "all", has_post ? "+" : "",
		has_post ? ctl_ns(trigger, "post_ns") : "");
	fr_table_cell(t, "%.0f", ctl_number(trigger, "fired"));
	fr_table_cell(t, "%.0f", ctl_number(trigger, "joined"));
	fr_table_cell(t, "%s", suppressed);
	if (ctl.verbose) {
		fr_table_cell(t, "%.0f", ctl_number(trigger, "cooled"));
		fr_table_cell(t, "%.0f", ctl_number(trigger, "lost"));
	}
	fr_table_texts(t,
		ctl_is_countable(trigger, "last_fired_age_ns") ? ctl_ns(trigger, "last_fired_age_ns") : "-",
		or_dash(basename(ctl_string(trigger, "last_file"))), NULL);
}

/* Returns a description of the problem of the trigger, to be freed; or NULL if the trigger has no problem. */
static char *describe_problem(const cJSON *trigger)
{
	const char *name = ctl_string(trigger, "name"), *hint = ctl_string(trigger, "hint"),
		   *gone = ctl_string(trigger, "gone"), *state = ctl_string(trigger, "state");
	const double bad = ctl_number(trigger, "bad");

	if (!strcmp(state, "failed"))
		return ctl_format("%s: %s%s%s", name, ctl_string(trigger, "what"), *hint ? "; " : "", hint);
	if (!strcmp(state, "arming"))
		return ctl_format("%s is still being armed: %s", name, ctl_string(trigger, "what"));
	if (*gone)
		return ctl_format("%s receives nothing for now: %s", name, gone);
	if (bad > 0)
		return ctl_format(
			"%s: %.0f message%s could not be understood", name, bad, bad == 1 ? "" : "s");
	return NULL;
}

static void print_problems(const cJSON *triggers)
{
	const cJSON *trigger;

	cJSON_ArrayForEach (trigger, triggers) {
		_cleanup_free_ char *text = describe_problem(trigger);

		if (!text)
			continue;
		/* This also replaces newlines: the log of the BPF verifier has several lines. */
		ctl_replace_control_characters(text);
		printf("%s%s%s\n", ctl_colour(CTL_RED), text, ctl_colour(CTL_NORMAL));
	}
}

static void print_tokens(const cJSON *reply)
{
	const double burst = ctl_number(reply, "burst"), interval = ctl_number(reply, "interval_ns"),
		     tokens = FR_MAX(ctl_number(reply, "tokens"), 0);

	if (!(burst > 0 && burst < 0x1p31) || !(interval > 0 && interval < 0x1p63))
		return;
	printf("triggers may still make %u of %.0f dumps in %s", (unsigned)FR_MIN(tokens, burst), burst,
		ctl_ns(reply, "interval_ns"));
	if (ctl_number(reply, "next_token_ns") > 0)
		printf("; one more is permitted after %s", ctl_ns(reply, "next_token_ns"));
	putchar('\n');
}

static void print_triggers(const cJSON *reply)
{
	const cJSON *trigger, *triggers = ctl_get(reply, "triggers");
	struct fr_table *t = fr_table_new(
		ctl.verbose
			? "NAME|SOURCE|OF|STATE|>LAST|>THRESHOLD|>WINDOW|>FIRED|>JOINED|SUPPRESSED|>COOLED|>"
			  "LOST|>AGE|LAST FILE"
			: "NAME|SOURCE|STATE|>LAST|>THRESHOLD|>WINDOW|>FIRED|>JOINED|SUPPRESSED|>AGE|LAST "
			  "FILE");

	cJSON_ArrayForEach (trigger, triggers)
		add_row(t, trigger);
	ctl_table_print(t, !ctl.no_legend);
	if (ctl.no_legend)
		return;
	putchar('\n');
	print_problems(triggers);
	print_tokens(reply);
}

static int run_triggers(void)
{
	return ctl_call_and_print(FR_METHOD(Triggers), NULL, "", print_triggers);
}

static cJSON *name_parameter(const char *name)
{
	cJSON *o = cJSON_CreateObject();

	cJSON_AddStringToObject(o, "name", name);
	return o;
}

static void print_id(const cJSON *reply)
{
	printf("%.0f\n", ctl_number(reply, "id"));
}

static int run_test_trigger(void)
{
	return ctl_call_and_print(FR_METHOD(TestTrigger), name_parameter(ctl.args[0]), "", print_id);
}

/* Checks that the trigger NAME, which the caller has just enabled, is armed now. If the trigger is not armed,
   prints why. Returns an exit code. */
static int check_armed(const char *name)
{
	struct fr_client *client = NULL;
	int code = ctl_connect(&client);
	cJSON *not_armed = client ? ctl_not_armed(client, name) : NULL;

	fr_client_free(client);
	(void)ctl_warn_not_armed(not_armed);
	if (cJSON_GetArraySize(not_armed))
		code = FR_EXIT_ERROR;
	cJSON_Delete(not_armed);
	return code;
}

/* Arms or disarms the triggers that the arguments name. If a trigger cannot be armed or disarmed, goes on
   with the next trigger, unless the recorder cannot be reached. Returns the exit code of the first
   failure. */
static int set_triggers(bool enabled)
{
	int code = FR_EXIT_OK;

	for (size_t i = 0; i < ctl.n_args; i++) {
		cJSON *parameters = name_parameter(ctl.args[i]);
		int one;

		cJSON_AddBoolToObject(parameters, "enabled", enabled);
		one = ctl_call(FR_METHOD(SetTrigger), parameters, NULL);
		if (one == FR_EXIT_OK && enabled)
			one = check_armed(ctl.args[i]);
		code = code ? code : one;
		if (one == FR_EXIT_UNREACHABLE)
			break;
	}
	return code;
}

static int run_enable(void)
{
	return set_triggers(true);
}

static int run_disable(void)
{
	return set_triggers(false);
}

CTL_VERB(triggers, CTL_TRIGGERS, "triggers", NULL,
	"list the triggers: state, last value, how often each fired or was suppressed", .pages = true,
	.run = run_triggers);

CTL_VERB(test_trigger, CTL_TRIGGERS, "test-trigger", "NAME",
	"dump as if this trigger had fired, and print the dump's number", .least_args = 1, .most_args = 1,
	.run = run_test_trigger);

CTL_VERB(enable, CTL_TRIGGERS, "enable", "NAME...", "arm these triggers until the next reload",
	.least_args = 1, .most_args = SIZE_MAX, .run = run_enable);

CTL_VERB(disable, CTL_TRIGGERS, "disable", "NAME...", "disarm these triggers until the next reload",
	.least_args = 1, .most_args = SIZE_MAX, .run = run_disable);
