// SPDX-License-Identifier: GPL-2.0-or-later
/* Asks the recorder which triggers it could not arm, for example because a file or a capability is missing,
   or because the BPF verifier has refused a program. The recorder knows this only after it has tried to arm
   the triggers. */
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "control/interface.h"

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

static bool is_named(const cJSON *trigger, const char *name)
{
	return !name || !strcmp(ctl_string(trigger, "name"), name);
}

static bool is_arming(const cJSON *reply, const char *name)
{
	const cJSON *trigger;

	cJSON_ArrayForEach (trigger, ctl_get(reply, "triggers"))
		if (is_state(trigger, "arming") && is_named(trigger, name))
			return true;
	return false;
}

/* Repeats the call of the method Triggers until the recorder has tried to arm NAME (NULL: all triggers) or
   ARMING_NS have passed. Returns the last reply, or NULL if the recorder did not answer. */
static cJSON *wait_for_arming(struct fr_client *client, const char *name)
{
	const uint64_t until_ns = fr_monotonic_ns() + ARMING_NS;
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	cJSON *reply = NULL;

	while (fr_client_call(client, FR_METHOD(Triggers), NULL, CALL_NS, &reply, NULL) == 0 &&
		is_arming(reply, name) && fr_monotonic_ns() < until_ns) {
		cJSON_Delete(reply);
		reply = NULL;
		nanosleep(&pause, NULL);
	}
	return reply;
}

static void add_trigger(cJSON *array, const cJSON *trigger)
{
	static const char *const names[] = {"name", "origin", "what", "hint"};
	cJSON *o = cJSON_CreateObject();

	for (size_t i = 0; i < FR_ARRAY_SIZE(names); i++)
		if (*ctl_string(trigger, names[i]))
			cJSON_AddStringToObject(o, names[i], ctl_string(trigger, names[i]));
	if (is_state(trigger, "arming"))
		cJSON_AddStringToObject(
			o, "hint", "wait until this is done, then see `flightrecctl triggers`");
	cJSON_AddItemToArray(array, o);
}

cJSON *ctl_not_armed(struct fr_client *client, const char *name)
{
	cJSON *reply = wait_for_arming(client, name), *ret = reply ? cJSON_CreateArray() : NULL;
	const cJSON *trigger;

	cJSON_ArrayForEach (trigger, ctl_get(reply, "triggers"))
		if (is_named(trigger, name) && (is_state(trigger, "failed") || is_state(trigger, "arming")))
			add_trigger(ret, trigger);
	cJSON_Delete(reply);
	return ret;
}

int ctl_warn_not_armed(const cJSON *not_armed)
{
	int code = FR_EXIT_OK;
	const cJSON *o;

	cJSON_ArrayForEach (o, not_armed) {
		_cleanup_free_ char *hint = ctl_format("%s", ctl_string(o, "hint")),
				    *text = ctl_format("trigger %s is not armed: %s", ctl_string(o, "name"),
					    ctl_string(o, "what"));

		ctl_replace_control_characters(text);
		ctl_replace_control_characters(hint);
		fprintf(stderr, *hint ? "flightrecctl: %s\n  %s\n" : "flightrecctl: %s\n", text, hint);
		/* A built-in probe that is armed by default has no origin, because no file mentions it. If
		   such a probe is not armed, the configuration is not wrong, so the exit code stays
		   FR_EXIT_OK. */
		if (*ctl_string(o, "origin"))
			code = FR_EXIT_PARTLY;
	}
	return code;
}
