// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"
#include "base/loss.h"
#include "base/units.h"

#include <errno.h>
#include <string.h>

static int latest(const char *directory, char **ret, struct fr_diag *d)
{
	cJSON *dumps;
	int n, r = ctl_dumps_read(directory, &dumps, d);

	if (r < 0)
		return r;
	n = cJSON_GetArraySize(dumps);
	if (n > 0)
		*ret = strdup(ctl_string(cJSON_GetArrayItem(dumps, n - 1), "path"));
	cJSON_Delete(dumps);
	if (n == 0)
		return fr_fail(
			d, -ENOENT, "flightrecctl dump makes one", "there is no dump in %s", directory);
	return *ret ? 0 : -ENOMEM;
}

/* A path as it is; a name alone is here or in the recorder's directory; ".json" names the dump beside it. */
static int find(const struct ctl *ctl, char **ret, struct fr_diag *d)
{
	const char *arg = ctl->n_args ? ctl->args[0] : "latest";
	_cleanup_free_ char *directory = ctl_directory(ctl);
	size_t len = strlen(arg);

	if (!directory)
		return -ENOMEM;
	if (!strcmp(arg, "latest"))
		return latest(directory, ret, d);
	if (len > 5 && !strcmp(arg + len - 5, ".json"))
		len -= 5;
	if (strchr(arg, '/') || access(arg, F_OK) == 0)
		*ret = strndup(arg, len);
	else if (asprintf(ret, "%s/%.*s", directory, (int)len, arg) < 0)
		*ret = NULL;
	return *ret ? 0 : -ENOMEM;
}

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
	const char *path = ctl_string(dump, "path"), *slash = strrchr(path, '/');
	int len = slash ? (int)(slash - path) + 1 : 0;
	_cleanup_free_ char *objects = NULL;

	if (ctl_number(dump, "jit.objects") > 0)
		ctl_field(
			"Run-time code", "%.0f functions in %s.jit", ctl_number(dump, "jit.functions"), path);
	if (asprintf(&objects, "%.*sdebug", len, path) < 0)
		objects = NULL;
	if (objects && access(objects, R_OK) == 0)
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
	print_causes(ctl, dump);
	ctl_field("Size", "%s", fr_size_format((uint64_t)ctl_number(dump, "bytes"), size));
	ctl_field("Samples", "%.0f", ctl_number(dump, "samples"));
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
	int r = find(ctl, &path, &diag);

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
