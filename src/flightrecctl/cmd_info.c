// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"
#include "base/loss.h"
#include "base/units.h"

#include <errno.h>
#include <string.h>

/* The name in the file, explained where it is one of ours. */
static const char *explain(const char *cause)
{
	for (int i = 0; i < _FR_LOSS_MAX; i++)
		if (!strcmp(cause, fr_loss_name(i)))
			return fr_loss_explain(i);
	return "";
}

static void print_losses(const cJSON *dump)
{
	const cJSON *losses = ctl_get(dump, "losses"), *loss;

	if (!losses)
		return;
	if (cJSON_GetArraySize(losses) == 0) {
		ctl_field("Losses", "none");
		return;
	}
	cJSON_ArrayForEach (loss, losses) {
		const char *event = ctl_string(loss, "event"), *cause = ctl_string(loss, "cause");
		char where[160] = "";

		if (*event)
			snprintf(where, sizeof(where), " of %.100s on CPU %.0f", event,
				ctl_number(loss, "cpu"));
		ctl_field(loss == losses->child ? "Losses" : "", "%.0f %s%s: %s", ctl_number(loss, "count"),
			cause, where, explain(cause));
	}
}

/* What a reader of the dump needs besides it: the recorder's copies, where there are any. */
static void print_objects(const cJSON *dump)
{
	const char *path = ctl_string(dump, "path");
	_cleanup_free_ char *objects = ctl_dump_objects(path);

	if (ctl_number(dump, "jit.objects") > 0)
		ctl_field(
			"Run-time code", "%.0f functions in %s.jit", ctl_number(dump, "jit.functions"), path);
	if (ctl_number(dump, "jit.cut") > 0)
		ctl_field("", "%.0f perf maps or jitdumps were cut or left out, as they are too large",
			ctl_number(dump, "jit.cut"));
	if (objects)
		ctl_field("Objects", "in %s: perf --buildid-dir %s report -i %s", objects, objects, path);
}

/* Who asked is known of a call; else it is who was in trouble. */
static void print_cause(const struct ctl *ctl, const char *label, const cJSON *cause)
{
	_cleanup_free_ char *what = ctl_cause_what(cause), *who = ctl_cause_who(cause);
	const char *trigger = ctl_string(cause, "trigger"), *cgroup = ctl_string(cause, "cgroup");
	char time[FR_UNIT_SIZE];

	ctl_field(label, "%s%s%s", what ? what : "-", *trigger ? ", trigger " : "", trigger);
	if (ctl_get(cause, "uid"))
		ctl_field("", "asked by %s, user %.0f", who ? who : "-", ctl_number(cause, "uid"));
	else if (ctl_get(cause, "pid"))
		ctl_field("", "%s%s%s", who ? who : "-", *cgroup ? " in " : "", cgroup);
	if (*ctl_string(cause, "time"))
		ctl_field("", "at %s", ctl_time(ctl, ctl_string(cause, "time"), true, time));
}

static void print_causes(const struct ctl *ctl, const cJSON *dump)
{
	const cJSON *causes = ctl_get(dump, "causes"), *cause;

	if (cJSON_GetArraySize(causes) == 0)
		print_cause(ctl, "Cause", ctl_get(dump, "cause"));
	cJSON_ArrayForEach (cause, causes)
		print_cause(ctl, cause == causes->child ? "Cause" : "and", cause);
}

static void print_info(const struct ctl *ctl, const cJSON *dump)
{
	char time[FR_UNIT_SIZE], to[FR_UNIT_SIZE], size[FR_UNIT_SIZE], window[FR_UNIT_SIZE];

	ctl_field("File", "%s", ctl_string(dump, "path"));
	ctl_field("Time", "%s", ctl_dump_time(ctl, dump, time));
	if (ctl_dump_is_merged(dump) && ctl_get(dump, "inputs"))
		ctl_field("Merged", "from %.0f files", ctl_number(dump, "inputs"));
	print_causes(ctl, dump);
	ctl_field("Size", "%s", fr_size_format((uint64_t)ctl_number(dump, "bytes"), size));
	if (ctl_get(dump, "samples"))
		ctl_field("Samples", "%.0f", ctl_number(dump, "samples"));
	else
		ctl_field("Samples", "not known: there is no %s.json, which the recorder writes beside it",
			ctl_string(dump, "path"));
	ctl_field("Window", "%s", ctl_dump_window(dump, window));
	if (*ctl_string(dump, "window.from"))
		ctl_field("", "from %s to %s", ctl_time(ctl, ctl_string(dump, "window.from"), true, time),
			ctl_time(ctl, ctl_string(dump, "window.to"), true, to));
	if (cJSON_IsTrue(ctl_get(dump, "compressed")))
		ctl_field("Compressed", "a plain copy: flightrec-merge --keep -o plain.data %s",
			ctl_string(dump, "path"));
	if (*ctl_string(dump, "written_with"))
		ctl_field("Written", "in %.3fs with %s", ctl_number(dump, "write_seconds"),
			ctl_string(dump, "written_with"));
	if (*ctl_string(dump, "not_durable"))
		ctl_field("", "not durable: its directory could not be synced: %s",
			ctl_string(dump, "not_durable"));
	if (ctl_number(dump, "damaged_sections") > 0)
		ctl_field("Damaged", "%.0f sections of the ring were not readable",
			ctl_number(dump, "damaged_sections"));
	if (*ctl_string(dump, "host"))
		ctl_field("Host", "%s", ctl_string(dump, "host"));
	if (*ctl_string(dump, "boot_id"))
		ctl_field("Boot", "%s", ctl_string(dump, "boot_id"));
	print_losses(dump);
	print_objects(dump);
	if (!ctl->no_legend)
		printf("\nperf report -i %s\n", ctl_string(dump, "path"));
}

int ctl_cmd_info(const struct ctl *ctl)
{
	_cleanup_free_ char *path = NULL;
	struct fr_diag diag = {0};
	cJSON *dump = NULL;
	int r = ctl_dump_find(ctl, &path, &diag);

	if (r == 0)
		r = ctl_dump_read(path, &dump, &diag);
	if (r < 0)
		return ctl_fail(&diag, r);
	if (ctl->json != FR_JSON_OFF)
		ctl_print_json(ctl, dump);
	else
		print_info(ctl, dump);
	cJSON_Delete(dump);
	return FR_EXIT_OK;
}
