// SPDX-License-Identifier: GPL-2.0-or-later
/* Shows which events are recorded, and switches them. */
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"
#include "control/interface.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t for_ns;
static const char *why;

static void add_row(struct fr_table *t, const cJSON *event)
{
	const cJSON *switched = ctl_get(event, "switched");
	const char *reason = ctl_string(switched, "why");
	const double rate = ctl_number(switched, "rate");

	fr_table_texts(
		t, ctl_string(event, "name"), cJSON_IsFalse(ctl_get(event, "enabled")) ? "off" : "on", NULL);
	if (!switched) {
		fr_table_texts(t, "-", "-", "-", "-", NULL);
		return;
	}
	if (rate > 0)
		fr_table_cell(t, "%.0f", rate);
	else
		fr_table_cell(t, "-");
	fr_table_cell(t, "%s", ctl_ns(switched, "age_ns"));
	fr_table_cell(t, "%s", ctl_is_countable(switched, "left_ns") ? ctl_ns(switched, "left_ns") : "-");
	fr_table_cell(t, "%s%s%s", ctl_string(switched, "by"), *reason ? ": " : "", reason);
}

static void print_events(const cJSON *events)
{
	struct fr_table *t = fr_table_new("EVENT|STATE|>RATE|>SINCE|>LEFT|SWITCHED BY");
	const cJSON *event;

	cJSON_ArrayForEach (event, events)
		add_row(t, event);
	ctl_table_print(t, !ctl.no_legend);
}

static void print_changed(const cJSON *reply)
{
	const cJSON *name, *changed = ctl_get(reply, "changed");

	cJSON_ArrayForEach (name, changed)
		if (cJSON_IsString(name))
			puts(name->valuestring);
	if (cJSON_GetArraySize(changed) == 0 && !ctl.no_legend)
		puts("no state has changed");
}

static int parse_rate(const char *text, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 10);
	return !errno && end != text && !*end && *ret && *text != '-' ? 0 : -EINVAL;
}

static int switch_event(const char *action, const char *event, uint64_t rate)
{
	cJSON *o = cJSON_CreateObject();

	cJSON_AddStringToObject(o, "event", event);
	cJSON_AddStringToObject(o, "action", action);
	if (rate)
		ctl_add_number(o, "rate", rate, 1);
	ctl_add_number(o, "for_ns", for_ns, 1);
	if (why)
		cJSON_AddStringToObject(o, "reason", why);
	return ctl_call_and_print(FR_METHOD(SwitchEvent), o, "", print_changed);
}

static int run(void)
{
	const char *action = ctl.n_args ? ctl.args[0] : "list";
	struct fr_diag d = {0};
	uint64_t rate = 0;
	int code = FR_EXIT_OK;

	if (!strcmp(action, "list") && ctl.n_args <= 1)
		return ctl_call_and_print(FR_METHOD(Status), NULL, "status.events", print_events);
	if (!strcmp(action, "rate") && ctl.n_args == 3) {
		if (parse_rate(ctl.args[2], &rate) < 0)
			fr_fail(&d, -EINVAL, "write it as 999", "'%s' is not a rate", ctl.args[2]);
		return d.code ? ctl_usage(&d) : switch_event(action, ctl.args[1], rate);
	}
	if (ctl.n_args < 2 ||
		(strcmp(action, "on") != 0 && strcmp(action, "off") != 0 && strcmp(action, "reset") != 0)) {
		fr_fail(&d, -EINVAL,
			"write `event list`, `event on NAME`, `event off NAME`, `event rate NAME NUMBER` or "
			"`event reset NAME`",
			"this is not a command for events");
		return ctl_usage(&d);
	}
	for (size_t i = 1; i < ctl.n_args && code == FR_EXIT_OK; i++)
		code = switch_event(action, ctl.args[i], 0);
	return code;
}

static const struct ctl_option options[] = {
	{"for", 0, "SPAN", "back to the configuration after this time, instead of SwitchLimit=", CTL_SPAN,
		&for_ns, 1, 0},
	{"why", 0, "TEXT", "a text for the log and the dumps", CTL_TEXT, &why, 0, 0},
	{0},
};

CTL_VERB(event, CTL_RECORDER, "event", "[ACTION NAME...]",
	"show which events are recorded, switch them, change their rates", .most_args = SIZE_MAX,
	.options = options, .run = run);
