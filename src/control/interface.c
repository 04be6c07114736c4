// SPDX-License-Identifier: GPL-2.0-or-later
#include "control/interface.h"

#include <errno.h>
#include <string.h>

const char fr_interface_description[] =
	"# A flight recorder for Linux machines: its ring, its dumps.\n"
	"# Times are nanoseconds of CLOCK_MONOTONIC, sizes are bytes.\n"
	"interface " FR_INTERFACE "\n"
	"\n"
	"# Write what the ring holds to a perf.data.sample.TIME: all of it, or the last last_ns, or what "
	"lies between\n"
	"# from_usec and to_usec (microseconds since the epoch); with post_ns, what follows for so long, "
	"too. A call\n"
	"# that asks for what one that waits has asked for gets the same file. With no_compression its "
	"records are plain,\n"
	"# whatever the configuration says. The reply comes when the file is durable, and is what stands in "
	"the JSON\n"
	"# beside it; with wait false it comes when the dump has its number, and has no more. Members may be "
	"added.\n"
	"method Dump(\n"
	"  last_ns: ?int,\n"
	"  from_usec: ?int,\n"
	"  to_usec: ?int,\n"
	"  post_ns: ?int,\n"
	"  reason: ?string,\n"
	"  wait: ?bool,\n"
	"  no_compression: ?bool\n"
	") -> (\n"
	"  id: int,\n"
	"  path: ?string,\n"
	"  window_closed_s: ?float,\n"
	"  window_closed_ns: ?int,\n"
	"  version: ?int,\n"
	"  file: ?string,\n"
	"  boot_id: ?string,\n"
	"  host: ?string,\n"
	"  time: ?string,\n"
	"  monotonic_ns: ?int,\n"
	"  cause: ?object,\n"
	"  causes: ?[]object,\n"
	"  asked: ?(from_ns: int, to_ns: int),\n"
	"  window: ?(from: string, to: string, from_ns: int, to_ns: int, seconds: float),\n"
	"  samples: ?int,\n"
	"  sideband: ?int,\n"
	"  marks: ?int,\n"
	"  bytes: ?int,\n"
	"  compressed: ?bool,\n"
	"  write_seconds: ?float,\n"
	"  written_with: ?string,\n"
	"  damaged_sections: ?int,\n"
	"  not_durable: ?string,\n"
	"  losses: ?[]object,\n"
	"  frequency_steps: ?[]object\n"
	")\n"
	"\n"
	"# Take back dumps that wait, by their numbers, or all that the caller may: root any, a member of "
	"the "
	"group its own,\n"
	"# where no cause of others shares them. Who waits for one is told so. What can be taken back is, "
	"also "
	"where the\n"
	"# reply is an error of another one.\n"
	"method Cancel(ids: ?[]int, all: ?bool) -> (canceled: []int)\n"
	"\n"
	"# The ring, each event's rate and losses per CPU, side-band, own cost, dumps. Members may be "
	"added.\n"
	"method Status() -> (status: object)\n"
	"\n"
	"# The same numbers, for a collector: text in the format of OpenMetrics 1.0.\n"
	"method Metrics() -> (text: string)\n"
	"\n"
	"# The dumps of this run that are still in the recorder's directory, oldest first: what stands in "
	"the JSON\n"
	"# beside each, and its number.\n"
	"method List() -> (directory: string, dumps: []object)\n"
	"\n"
	"# Remove the oldest dumps until these limits hold; the configuration's where one is not given.\n"
	"method Vacuum(max_use: ?int, keep_free: ?int, max_files: ?int, max_age_usec: ?int) -> (\n"
	"  removed: []string,\n"
	"  freed: int,\n"
	"  files: int,\n"
	"  bytes: int\n"
	")\n"
	"\n"
	"# Remove these dumps, named as in their directory, with what belongs to them.\n"
	"method Remove(files: []string) -> (removed: []string, freed: int)\n"
	"\n"
	"# End the recorder; with merge, after all files of its directory became one perf.data.\n"
	"method Stop(merge: ?bool) -> ()\n"
	"\n"
	"# Read the configuration again. changed says what is recorded otherwise now, waiting what could not "
	"be "
	"changed and\n"
	"# why, in words.\n"
	"method Reload() -> (changed: []string, waiting: []string)\n"
	"\n"
	"# What may cause a dump, and how often it did. threshold and last_value are in unit (\"ns\", "
	"\"count\", \"bytes\",\n"
	"# \"percent\" or \"\"), and absent where there is nothing to compare or nothing was seen yet. asked "
	"is fired, joined\n"
	"# and all of suppressed together, where only reasons that occurred are named: \"disabled\", "
	"\"cool-down\", \"min-fill\",\n"
	"# \"rate-limit\", \"busy\". What a source held back itself is in cooled (its own cool-down) and "
	"lost (its buffer was\n"
	"# full), and was not asked about. *_ns that end a name are durations, but last_value_at_ns and "
	"last_fired_at_ns;\n"
	"# the age is the time since then.\n"
	"type Trigger (\n"
	"  name: string,\n"
	"  source: string,\n"
	"  subject: ?string,\n"
	"  state: (armed, disabled, failed, arming),\n"
	"  what: ?string,\n"
	"  hint: ?string,\n"
	"  origin: ?string,\n"
	"  gone: ?string,\n"
	"  unit: string,\n"
	"  threshold: ?int,\n"
	"  last_value: ?int,\n"
	"  last_value_at_ns: ?int,\n"
	"  last_value_age_ns: ?int,\n"
	"  asked: int,\n"
	"  fired: int,\n"
	"  joined: int,\n"
	"  suppressed: [string]int,\n"
	"  cooled: int,\n"
	"  lost: int,\n"
	"  bad: int,\n"
	"  cooldown_ns: int,\n"
	"  cooldown_left_ns: int,\n"
	"  min_fill_ns: int,\n"
	"  window_ns: int,\n"
	"  post_ns: int,\n"
	"  last_fired_at_ns: ?int,\n"
	"  last_fired_age_ns: ?int,\n"
	"  last_file: ?string\n"
	")\n"
	"\n"
	"# What was decided about one anomaly. verdict is \"fire\", \"join\", or a reason of "
	"Trigger.suppressed; why says it in\n"
	"# words. file comes once the dump is written. Of a storm only the first that was suppressed is a "
	"decision: repeats\n"
	"# more followed for the same reason, the newest last_age_ns ago. cause has the members trigger, "
	"source, reason,\n"
	"# detail, value, threshold, unit, pid, tid, uid, comm, cgroup, cpu, time (RFC 3339), monotonic_ns: "
	"those that are\n"
	"# known.\n"
	"type Decision (\n"
	"  id: int,\n"
	"  time: string,\n"
	"  monotonic_ns: int,\n"
	"  age_ns: int,\n"
	"  trigger: string,\n"
	"  verdict: string,\n"
	"  why: string,\n"
	"  dump_id: ?int,\n"
	"  file: ?string,\n"
	"  repeats: int,\n"
	"  last_age_ns: int,\n"
	"  cause: object\n"
	")\n"
	"\n"
	"# All triggers, as the configuration has them; then the built-in probes that nothing arms yet.\n"
	"# tokens of RateLimit= are left of burst (0: no limit), and the next comes in next_token_ns (0: "
	"there is one).\n"
	"method Triggers() -> (triggers: []Trigger, tokens: float, burst: int, interval_ns: int, "
	"next_token_ns: int)\n"
	"\n"
	"# Fire a trigger as if its source had, with a value at its threshold, without a token and whatever "
	"its cool-down.\n"
	"# The reply comes when the dump has its number; Decisions tells its file.\n"
	"method TestTrigger(name: string) -> (id: int)\n"
	"\n"
	"# Arm or disarm a trigger until the configuration is read again.\n"
	"method SetTrigger(name: string, enabled: bool) -> ()\n"
	"\n"
	"# The last decisions, newest first; at most max.\n"
	"method Decisions(max: ?int) -> (decisions: []Decision)\n"
	"\n"
	"# Call it with more: each decision from now on is a reply, until the client goes. A client that "
	"does not read\n"
	"# misses some, and skipped in the next reply says how many.\n"
	"method Watch() -> (decision: Decision, skipped: int)\n"
	"\n"
	"# The caller is neither root nor in the group, or it is in the group and this is root's: Vacuum, "
	"Remove, Stop,\n"
	"# Reload, SetTrigger.\n"
	"error PermissionDenied (what: string, hint: ?string)\n"
	"# The trigger's policy holds dumps back for now.\n"
	"error Suppressed (what: string, hint: ?string)\n"
	"error NoSpace (what: string, hint: ?string)\n"
	"error Failed (what: string, hint: ?string)\n";

static const cJSON *param(const cJSON *parameters, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(parameters, name);

	return cJSON_IsNull(item) ? NULL : item;
}

int fr_param_u64(const cJSON *parameters, const char *name, uint64_t *ret)
{
	const cJSON *item = param(parameters, name);

	if (!item)
		return 0;
	if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble <= 0x1p53) ||
		(double)(uint64_t)item->valuedouble != item->valuedouble)
		return -EINVAL;
	*ret = (uint64_t)item->valuedouble;
	return 1;
}

int fr_param_string(const cJSON *parameters, const char *name, const char **ret)
{
	const cJSON *item = param(parameters, name);

	if (!item)
		return 0;
	if (!cJSON_IsString(item))
		return -EINVAL;
	*ret = item->valuestring;
	return 1;
}

int fr_param_bool(const cJSON *parameters, const char *name, bool *ret)
{
	const cJSON *item = param(parameters, name);

	if (!item)
		return 0;
	if (!cJSON_IsBool(item))
		return -EINVAL;
	*ret = cJSON_IsTrue(item);
	return 1;
}

const char *fr_param_unknown(const cJSON *parameters, const char *const *names)
{
	const cJSON *item;

	cJSON_ArrayForEach (item, parameters) {
		size_t i = 0;

		while (names[i] && strcmp(names[i], item->string))
			i++;
		if (!names[i])
			return item->string;
	}
	return NULL;
}
