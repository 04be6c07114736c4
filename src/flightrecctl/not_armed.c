// SPDX-License-Identifier: GPL-2.0-or-later
/* Triggers that the running recorder could not arm. The kernel alone knows: of a file, of the recorder's
   capabilities, of the verifier. So the recorder is asked, once it has tried all of them. */
#include "base/clock.h"
#include "control/interface.h"
#include "flightrecctl/ctl.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define CALL_NS (5 * FR_NSEC_PER_SEC)
#define ARMING_NS (5 * FR_NSEC_PER_SEC)
#define PAUSE_NS (100 * FR_NSEC_PER_MSEC)

static bool is_state(const cJSON *trigger, const char *state)
{
	return !strcmp(ctl_string(trigger, "state"), state);
}

static bool is_meant(const cJSON *trigger, const char *name)
{
	return !name || !strcmp(ctl_string(trigger, "name"), name);
}

static bool is_arming(const cJSON *reply, const char *name)
{
	const cJSON *trigger;

	cJSON_ArrayForEach (trigger, ctl_get(reply, "triggers"))
		if (is_state(trigger, "arming") && is_meant(trigger, name))
			return true;
	return false;
}

/* The reply of Triggers, when NAME (NULL: each) has been tried, or after a while; NULL: nobody answers. */
static cJSON *ask(struct fr_client *client, const char *name)
{
	const uint64_t until_ns = fr_monotonic_ns() + ARMING_NS;
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	cJSON *reply = NULL;

	while (fr_client_call(client, FR_METHOD_TRIGGERS, NULL, CALL_NS, &reply, NULL) == 0 &&
		is_arming(reply, name) && fr_monotonic_ns() < until_ns) {
		cJSON_Delete(reply);
		reply = NULL;
		nanosleep(&pause, NULL);
	}
	return reply;
}

static void add(cJSON *array, const cJSON *trigger)
{
	static const char *const names[] = {"name", "origin", "what", "hint"};
	cJSON *o = cJSON_CreateObject();

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (*ctl_string(trigger, names[i]))
			cJSON_AddStringToObject(o, names[i], ctl_string(trigger, names[i]));
	if (is_state(trigger, "arming"))
		cJSON_AddStringToObject(
			o, "hint", "it is armed when that is done; `flightrecctl triggers` shows it");
	cJSON_AddItemToArray(array, o);
}

cJSON *ctl_not_armed(struct fr_client *client, const char *name)
{
	cJSON *reply = ask(client, name), *ret = reply ? cJSON_CreateArray() : NULL;
	const cJSON *trigger;

	cJSON_ArrayForEach (trigger, ctl_get(reply, "triggers"))
		if (is_meant(trigger, name) && (is_state(trigger, "failed") || is_state(trigger, "arming")))
			add(ret, trigger);
	cJSON_Delete(reply);
	return ret;
}

int ctl_warn_not_armed(const cJSON *not_armed)
{
	int code = FR_EXIT_OK;
	const cJSON *o;

	cJSON_ArrayForEach (o, not_armed) {
		char text[1024];

		snprintf(text, sizeof(text), "trigger %s is not armed: %s", ctl_string(o, "name"),
			ctl_string(o, "what"));
		ctl_clean(text);
		fprintf(stderr, "flightrecctl: %s\n", text);
		snprintf(text, sizeof(text), "%s", ctl_string(o, "hint"));
		ctl_clean(text);
		if (*text)
			fprintf(stderr, "  %s\n", text);
		/* A built-in probe that nobody asked for is no failure of what was. */
		if (*ctl_string(o, "origin"))
			code = FR_EXIT_PARTLY;
	}
	return code;
}
