// SPDX-License-Identifier: GPL-2.0-or-later
/* For a person at 3 a.m.: what it holds, what it lost and why, what it costs. Members that an older or newer
 * daemon does not send are left out. */
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"
#include "base/loss.h"
#include "base/units.h"
#include "control/interface.h"

#include <stdio.h>
#include <string.h>

static const char *size(const cJSON *s, const char *path, char *ret)
{
	double v = ctl_number(s, path);

	return fr_size_format(v > 0 && v < 0x1p63 ? (uint64_t)v : 0, ret);
}

static const char *span(const cJSON *s, const char *path, char *ret)
{
	double v = ctl_number(s, path);

	return fr_duration_format(v > 0 && v < 1e9 ? (uint64_t)(v * 1e9) : 0, ret);
}

static void print_head(const struct ctl *ctl, const cJSON *s)
{
	bool recording = !strcmp(ctl_string(s, "state"), "recording");
	char text[FR_UNIT_SIZE], version[64], state[64], since[FR_UNIT_SIZE];

	snprintf(version, sizeof(version), "%s", ctl_string(s, "version"));
	snprintf(state, sizeof(state), "%s", ctl_string(s, "state"));
	ctl_clean(version);
	ctl_clean(state);
	printf("flightrecd %s, %s%s%s since %s (%s), pid %.0f\n", version,
		ctl_colour(recording ? CTL_GREEN : CTL_YELLOW), state, ctl_colour(CTL_NORMAL),
		ctl_time(ctl, ctl_string(s, "since"), false, since), span(s, "uptime_s", text),
		ctl_number(s, "pid"));
}

static void print_ring(const cJSON *s)
{
	char used[FR_UNIT_SIZE], of[FR_UNIT_SIZE], raw[FR_UNIT_SIZE], time[FR_UNIT_SIZE],
		pinned[FR_UNIT_SIZE];

	if (!ctl_get(s, "ring"))
		return;
	ctl_field("Ring", "the last %s: %s of %s used, %s of records at %.1fx", span(s, "ring.span_s", time),
		size(s, "ring.used", used), size(s, "ring.size", of), size(s, "ring.raw", raw),
		ctl_number(s, "ring.compression"));
	if (ctl_number(s, "ring.pinned") > 0)
		ctl_field("", "%s held by a dump that is being written, or waits for space",
			size(s, "ring.pinned", pinned));
}

static void print_adopted(const struct ctl *ctl, const cJSON *s)
{
	char gap[FR_UNIT_SIZE], gaps[FR_UNIT_SIZE], first[FR_UNIT_SIZE];
	const double restarts = ctl_number(s, "adopted.restarts");

	if (!ctl_get(s, "adopted"))
		return;
	ctl_field("Adopted", "%.0f samples of the instance before; recorded since %s with %.0f restart%s",
		ctl_number(s, "adopted.samples"),
		ctl_time(ctl, ctl_string(s, "adopted.first_since"), false, first), restarts,
		restarts == 1 ? "" : "s");
	ctl_field("", "nothing was recorded for %s before this instance, %s in all",
		span(s, "adopted.gap_s", gap), span(s, "adopted.gaps_s", gaps));
}

static void print_sideband(const cJSON *s)
{
	char bytes[FR_UNIT_SIZE];

	if (!ctl_get(s, "sideband"))
		return;
	ctl_field("Side-band",
		"%s in perf.data.auxiliary; %.0f processes, %.0f threads, %.0f maps; %.0f scans",
		size(s, "sideband.file_bytes", bytes), ctl_number(s, "sideband.processes"),
		ctl_number(s, "sideband.threads"), ctl_number(s, "sideband.maps"),
		ctl_number(s, "sideband.scans"));
	if (*ctl_string(s, "sideband.last_error"))
		ctl_field("", "last error of writing it: %s", ctl_string(s, "sideband.last_error"));
}

static void print_frequency(const cJSON *s)
{
	const double budget = ctl_number(s, "frequency.budget_percent");

	if (budget > 0)
		ctl_field("Budget", "%.2f %% of %g %% of a CPU over the last 10 s%s",
			ctl_number(s, "frequency.used_percent"), budget,
			cJSON_IsTrue(ctl_get(s, "frequency.exhausted"))
				? ": too much, and nothing is left to step down; record fewer events"
				: "");
	if (ctl_number(s, "frequency.divisor") > 1)
		ctl_field("", "samples at %.0f Hz instead of %.0f Hz, to keep it",
			ctl_number(s, "frequency.hz"), ctl_number(s, "frequency.full_hz"));
}

static void print_self(const cJSON *s)
{
	char cpu[FR_UNIT_SIZE], rss[FR_UNIT_SIZE], peak[FR_UNIT_SIZE];

	if (!ctl_get(s, "self"))
		return;
	ctl_field("Self", "%.2f %% of a CPU, %s since the start; memory %s, peak %s",
		ctl_number(s, "self.cpu_percent"), span(s, "self.cpu_s", cpu), size(s, "self.rss_bytes", rss),
		size(s, "self.peak_rss_bytes", peak));
}

/* From then on whoever looks should not have to wonder what is going on. */
#define WRITING_LONG_S 1

static void print_writing(const cJSON *s)
{
	char span_text[FR_UNIT_SIZE];

	if (ctl_number(s, "dumps.writing.seconds") > WRITING_LONG_S)
		ctl_field("", "writing %s for %s: the disk is slow or stuck",
			ctl_string(s, "dumps.writing.file"), span(s, "dumps.writing.seconds", span_text));
}

static void print_dumps(const struct ctl *ctl, const cJSON *s)
{
	const char *last = ctl_string(s, "dumps.last.file");
	char bytes[FR_UNIT_SIZE], age[FR_UNIT_SIZE];

	if (!ctl_get(s, "dumps"))
		return;
	if (!*last)
		last = ctl_string(s, "dumps.last.path");
	ctl_field("Dumps",
		"%.0f done, %.0f joined, %.0f failed, %.0f suppressed, %.0f canceled, %.0f queued%s%s",
		ctl_number(s, "dumps.done"), ctl_number(s, "dumps.joined"), ctl_number(s, "dumps.failed"),
		ctl_number(s, "dumps.suppressed"), ctl_number(s, "dumps.canceled"),
		ctl_number(s, "dumps.queued"), *last ? "; last: " : "", last);
	if (ctl_number(s, "dumps.not_durable") > 0)
		ctl_field("", "%.0f not durable: the directory could not be synced, see journalctl -k",
			ctl_number(s, "dumps.not_durable"));
	ctl_print_waiting(ctl, ctl_get(s, "dumps"));
	print_writing(s);
	if (ctl_get(s, "dumps.kept"))
		ctl_field("", "1 dump waits for space, %s in memory, triggered %s ago: %s",
			size(s, "dumps.kept.bytes", bytes), span(s, "dumps.kept.age_s", age),
			ctl_string(s, "dumps.kept.why"));
	if (*ctl_string(s, "dumps.last.written_with"))
		ctl_field("Writer", "%s", ctl_string(s, "dumps.last.written_with"));
	else if (*ctl_string(s, "writer"))
		ctl_field("Writer", "%s", ctl_string(s, "writer"));
}

static void print_triggers(const cJSON *s)
{
	_cleanup_free_ char *held = ctl_suppressed(ctl_get(s, "triggers.suppressed"));
	const double failed = ctl_number(s, "triggers.failed"), arming = ctl_number(s, "triggers.arming");

	if (!ctl_get(s, "triggers"))
		return;
	ctl_field("Triggers", "%.0f armed; %.0f fired, %.0f joined, suppressed %s",
		ctl_number(s, "triggers.armed"), ctl_number(s, "triggers.fired"),
		ctl_number(s, "triggers.joined"), held ? held : "-");
	if (arming > 0)
		ctl_field("", "%.0f still being armed: flightrecctl triggers says why", arming);
	if (failed > 0)
		ctl_field("", "%.0f cannot be armed: flightrecctl triggers says why", failed);
}

static double sum(const cJSON *object)
{
	const cJSON *item;
	double ret = 0;

	cJSON_ArrayForEach (item, object)
		ret += cJSON_IsNumber(item) ? item->valuedouble : 0;
	return ret;
}

static void event_row(struct ctl_table *t, const char *name, const char *cpu, const cJSON *o)
{
	double lost = sum(ctl_get(o, "lost")), samples = ctl_number(o, "samples");

	ctl_table_cell(t, "%s", name);
	ctl_table_cell(t, "%s", cpu);
	ctl_table_cell(t, "%.0f", samples);
	ctl_table_cell(t, "%.1f", ctl_number(o, "rate_per_s"));
	ctl_table_cell(t, "%.0f", lost);
	ctl_table_cell(t, "%.3f%%", samples + lost > 0 ? 100 * lost / (samples + lost) : 0);
}

static void print_events(const struct ctl *ctl, const cJSON *s)
{
	struct ctl_table *t = ctl_table_new("EVENT|>CPU|>SAMPLES|>RATE/S|>LOST|>LOST%");
	const cJSON *event, *cpu;

	cJSON_ArrayForEach (event, ctl_get(s, "events")) {
		const cJSON *cpus = ctl->verbose ? ctl_get(event, "cpus") : NULL;

		event_row(t, ctl_string(event, "name"), "all", event);
		cJSON_ArrayForEach (cpu, cpus) {
			char number[32];

			snprintf(number, sizeof(number), "%.0f", ctl_number(cpu, "cpu"));
			event_row(t, "", number, cpu);
		}
	}
	if (ctl_table_rows(t) > 0 && !ctl->no_legend)
		putchar('\n');
	ctl_table_print(t, !ctl->no_legend);
}

/* Each cause with what to do about it; a cause that this program does not know, by its name. */
static void print_losses(const struct ctl *ctl, const cJSON *s)
{
	const cJSON *loss, *losses = ctl_get(s, "losses");
	bool any = false;

	cJSON_ArrayForEach (loss, losses) {
		const char *explain = "";
		char name[64];

		if (!cJSON_IsNumber(loss) || (loss->valuedouble <= 0 && !ctl->verbose))
			continue;
		for (int i = 0; i < _FR_LOSS_MAX; i++)
			if (!strcmp(loss->string, fr_loss_name(i)))
				explain = fr_loss_explain(i);
		if (!any)
			printf("\n%sLost since the start%s\n", ctl_colour(CTL_BOLD), ctl_colour(CTL_NORMAL));
		any = true;
		snprintf(name, sizeof(name), "%s", loss->string);
		ctl_clean(name);
		printf("%s%12.0f%s  %s%s%s\n", ctl_colour(loss->valuedouble > 0 ? CTL_RED : CTL_NORMAL),
			loss->valuedouble, ctl_colour(CTL_NORMAL), name, *explain ? ": " : "", explain);
	}
	if (!any && losses && !ctl->no_legend)
		printf("\nNothing was lost.\n");
}

static void print_status(const struct ctl *ctl, const cJSON *s)
{
	const cJSON *notice;

	print_head(ctl, s);
	if (*ctl_string(s, "doing"))
		ctl_field("Doing", "%s; it does not record yet", ctl_string(s, "doing"));
	if (*ctl_string(s, "directory"))
		ctl_field("Directory", "%s", ctl_string(s, "directory"));
	print_ring(s);
	print_adopted(ctl, s);
	print_sideband(s);
	print_self(s);
	print_frequency(s);
	print_dumps(ctl, s);
	print_triggers(s);
	cJSON_ArrayForEach (notice, ctl_get(s, "notices")) {
		if (cJSON_IsString(notice))
			ctl_field("Notice", "%s", notice->valuestring);
	}
	print_events(ctl, s);
	print_losses(ctl, s);
}

int ctl_cmd_status(const struct ctl *ctl)
{
	const cJSON *status;
	cJSON *reply;
	int code = ctl_call(ctl, FR_METHOD_STATUS, NULL, &reply);

	if (code != FR_EXIT_OK)
		return code;
	status = ctl_get(reply, "status");
	if (ctl->json != FR_JSON_OFF)
		ctl_print_json(ctl, status);
	else
		print_status(ctl, status);
	cJSON_Delete(reply);
	return FR_EXIT_OK;
}
