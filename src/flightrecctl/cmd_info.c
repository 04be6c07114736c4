// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"

#include <stdio.h>
#include <string.h>

static void print_losses(const cJSON *dump)
{
	const cJSON *losses = ctl_get(dump, "losses"), *loss;

	if (losses && cJSON_GetArraySize(losses) == 0)
		ctl_field("Losses", "none");
	cJSON_ArrayForEach (loss, losses) {
		const char *event = ctl_string(loss, "event"), *cause = ctl_string(loss, "cause");
		char where[160] = "";

		if (*event)
			snprintf(where, sizeof(where), " of %.100s on CPU %.0f", event,
				ctl_number(loss, "cpu"));
		ctl_field(loss == losses->child ? "Losses" : "", "%.0f %s%s: %s", ctl_number(loss, "count"),
			cause, where, ctl_explain_loss(cause));
	}
}

/* Prints the other files that a reader of the dump needs. */
static void print_objects(const cJSON *dump)
{
	const char *path = ctl_string(dump, "path");
	_cleanup_free_ char *objects = ctl_dump_objects(path);

	if (ctl_number(dump, "jit.objects") > 0)
		ctl_field(
			"Run-time code", "%.0f functions in %s.jit", ctl_number(dump, "jit.functions"), path);
	if (ctl_number(dump, "jit.cut") > 0)
		ctl_field("",
			"%.0f perf maps or jitdumps are incomplete or missing, because they are too large",
			ctl_number(dump, "jit.cut"));
	if (objects)
		ctl_field("Objects", "in %s: perf --buildid-dir %s report -i %s", objects, objects, path);
}

/* If a cause has a uid, the process in the cause has asked the recorder for the dump. Otherwise, the process
   in the cause is the process with the anomaly. */
static void print_cause(const char *label, const cJSON *cause)
{
	_cleanup_free_ char *text = ctl_describe_cause(cause), *process = ctl_describe_process(cause);
	const char *trigger = ctl_string(cause, "trigger"), *cgroup = ctl_string(cause, "cgroup");

	ctl_field(label, "%s%s%s", text, *trigger ? ", trigger " : "", trigger);
	if (ctl_get(cause, "uid"))
		ctl_field("", "asked by %s%suser %.0f", strcmp(process, "-") ? process : "",
			strcmp(process, "-") ? ", " : "", ctl_number(cause, "uid"));
	else if (ctl_get(cause, "pid"))
		ctl_field("", "%s%s%s", process, *cgroup ? " in " : "", cgroup);
	if (*ctl_string(cause, "time"))
		ctl_field("", "at %s", ctl_exact_time(cause, "time"));
}

static void print_causes(const cJSON *dump)
{
	const cJSON *causes = ctl_get(dump, "causes"), *cause;

	if (cJSON_GetArraySize(causes) == 0)
		print_cause("Cause", ctl_get(dump, "cause"));
	cJSON_ArrayForEach (cause, causes)
		print_cause(cause == causes->child ? "Cause" : "and", cause);
}

/* Prints what is known about the crash of the machine that has caused the dump. */
static void print_crash(const cJSON *dump)
{
	const cJSON *crash = ctl_get(dump, "crash"), *log = ctl_get(crash, "log"), *last = NULL;
	_cleanup_free_ char *symbols = ctl_dump_symbols(ctl_string(dump, "path"));

	if (!crash)
		return;
	if (*ctl_string(crash, "kind"))
		ctl_field("Crash", "%s of Linux %s at %s", ctl_string(crash, "kind"),
			ctl_string(crash, "release"), ctl_exact_time(crash, "time"));
	else
		ctl_field("Ended", "at an unknown time after %s", ctl_exact_time(crash, "recorded_until"));
	if (ctl_get(crash, "missing_seconds"))
		ctl_field("", "the last %s before it are missing", ctl_seconds(crash, "missing_seconds"));
	else
		ctl_field("", "about the last %s before it are missing",
			ctl_seconds(crash, "missing_seconds_about"));
	if (!cJSON_IsTrue(ctl_get(crash, "names_are_whole")))
		ctl_field("", "processes that began before the dump may have no names");
	cJSON_ArrayForEach (last, log)
		if (last->next == NULL)
			ctl_field("", "the log of the kernel, %d lines, is in the JSON; it ends with: %s",
				cJSON_GetArraySize(log), last->valuestring);
	if (symbols)
		ctl_text_field("Symbols", symbols);
}

static void print_aux(const cJSON *dump)
{
	double bytes = 0, longest_ns = 0, n = 0;
	char size[FR_UNIT_SIZE], gap[FR_UNIT_SIZE];
	const cJSON *area;

	cJSON_ArrayForEach (area, ctl_get(dump, "aux")) {
		bytes += ctl_number(area, "bytes");
		longest_ns = FR_MAX(longest_ns, ctl_number(area, "gap_ns"));
		n++;
	}
	if (n > 0)
		ctl_field("AUX", "%s of %.0f areas; the copy paused them for at most %s",
			fr_size_format((uint64_t)bytes, size), n,
			fr_duration_format((uint64_t)longest_ns, gap));
}

static void print_writing(const cJSON *dump)
{
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
}

static void print_info(const cJSON *dump)
{
	ctl_text_field("File", ctl_string(dump, "path"));
	ctl_field("Time", "%s", ctl_dump_time(dump));
	if (ctl_dump_is_merged(dump) && ctl_get(dump, "inputs"))
		ctl_field("Merged", "from %.0f files", ctl_number(dump, "inputs"));
	print_causes(dump);
	print_crash(dump);
	ctl_field("Size", "%s", ctl_size(dump, "bytes"));
	if (ctl_get(dump, "samples"))
		ctl_field("Samples", "%.0f", ctl_number(dump, "samples"));
	else
		ctl_field("Samples", "not known: there is no %s.json, which the recorder writes beside it",
			ctl_string(dump, "path"));
	ctl_field("Window", "%s", ctl_dump_window(dump));
	if (*ctl_string(dump, "window.from"))
		ctl_field("", "from %s to %s", ctl_exact_time(dump, "window.from"),
			ctl_exact_time(dump, "window.to"));
	print_aux(dump);
	print_writing(dump);
	ctl_text_field("Host", ctl_string(dump, "host"));
	ctl_text_field("Boot", ctl_string(dump, "boot_id"));
	print_losses(dump);
	print_objects(dump);
	if (!ctl.no_legend)
		printf("\nperf report -i %s\n", ctl_string(dump, "path"));
}

static int run(void)
{
	_cleanup_free_ char *path = NULL;
	struct fr_diag diag = {0};
	cJSON *dump = NULL;
	int r = ctl_dump_find(&path, &diag);

	if (r == 0)
		r = ctl_dump_read(path, &dump, &diag);
	if (r < 0)
		return ctl_fail(&diag, r);
	if (ctl.json != FR_JSON_OFF)
		ctl_print_json(dump);
	else
		print_info(dump);
	cJSON_Delete(dump);
	return FR_EXIT_OK;
}

CTL_VERB(info, CTL_DUMPS, "info", "[FILE|latest]", "what the JSON beside a dump says", .most_args = 1,
	.pages = true, .run = run);
