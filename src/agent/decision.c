// SPDX-License-Identifier: GPL-2.0-or-later
#include "agent/decision.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"

#include <errno.h>
#include <string.h>

#define LIMIT_NS (30 * FR_NSEC_PER_SEC)

static uint64_t number(const cJSON *o, const char *name)
{
	const double v = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(o, name));

	return v > 0 && v < 0x1p63 ? (uint64_t)v : 0;
}

static bool is_word(const char *text, size_t size)
{
	for (const char *s = text; *s; s++)
		if (*s <= ' ' || *s > '~')
			return false;
	return *text && strlen(text) < size;
}

static int read_selectors(const cJSON *list, struct fr_agent_decision *ret)
{
	const cJSON *item;

	cJSON_ArrayForEach (item, list) {
		const char *selector = cJSON_GetStringValue(item);

		if (!selector || ret->n == FR_AGENT_SELECTORS_MAX || fr_selector_check(selector, NULL) < 0)
			return -EBADMSG;
		fr_selector_normalize(selector, ret->selectors[ret->n++]);
	}
	return ret->n > 0 ? 1 : 0;
}

int fr_decision_read(const cJSON *json, const char *boot_id, struct fr_agent_decision *ret)
{
	const cJSON *list = cJSON_GetObjectItemCaseSensitive(json, "fleet");
	const cJSON *cause = cJSON_GetObjectItemCaseSensitive(json, "cause");
	const char *trigger = fr_json_text(json, "trigger"), *reason = fr_json_text(cause, "reason");
	const char *verdict = fr_json_text(json, "verdict");
	struct fr_agent_decision d = {.at_ns = number(json, "monotonic_ns"),
		.from_ns = number(json, "from_ns"),
		.to_ns = number(json, "to_ns")};
	int r;

	if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) == 0 ||
		(strcmp(verdict, "fire") != 0 && strcmp(verdict, "join") != 0))
		return 0;
	if (!is_word(trigger, sizeof(d.trigger)) || !d.at_ns || d.to_ns < d.from_ns || !d.to_ns)
		return -EBADMSG;
	strcpy(d.trigger, trigger);
	snprintf(d.reason, sizeof(d.reason), "%s", reason);
	snprintf(d.key, sizeof(d.key), "%s/%s/%" PRIu64, boot_id, trigger, d.at_ns);
	r = read_selectors(list, &d);
	if (r > 0)
		*ret = d;
	return r;
}

int fr_decision_command(const struct fr_agent_decision *d, const char *selector, const char *by,
	const struct fr_fleet_clock *clock, struct fr_fleet_command *ret)
{
	const uint64_t at_ns = fr_fleet_clock_to_fleet(clock, d->at_ns);
	struct fr_fleet_command c = {.limit_ns = LIMIT_NS};
	int r = fr_fleet_id_new(at_ns, c.id);

	if (r < 0)
		return r;
	snprintf(c.selector, sizeof(c.selector), "%s", selector);
	snprintf(c.trigger, sizeof(c.trigger), "%s", d->trigger);
	snprintf(c.reason, sizeof(c.reason), "%s", d->reason);
	snprintf(c.by, sizeof(c.by), "%s", by);
	/* The whole ring is relative to the time at which the broker stores the command. */
	if (d->from_ns) {
		c.from_ns = fr_fleet_clock_to_fleet(clock, d->from_ns);
		c.to_ns = fr_fleet_clock_to_fleet(clock, d->to_ns);
	} else {
		c.post_ns = d->to_ns > d->at_ns ? d->to_ns - d->at_ns : 0;
	}
	*ret = c;
	return 0;
}

/* FNV-1a: the selectors of a fleet come from its own configuration, so nobody looks for collisions. */
void fr_incident_token(const char *selector, char ret[20])
{
	uint64_t hash = 0xcbf29ce484222325ULL;

	for (const char *s = selector; *s; s++)
		hash = (hash ^ (unsigned char)*s) * 0x100000001b3ULL;
	snprintf(ret, 20, "%016" PRIx64, hash);
}

bool fr_incident_lasts(uint64_t stored_ns, uint64_t now_ns, uint64_t incident_ns)
{
	return stored_ns >= now_ns || now_ns - stored_ns < incident_ns;
}
