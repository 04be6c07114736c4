// SPDX-License-Identifier: GPL-2.0-or-later
/* Prints the status: the content of the ring, the losses with their causes, the cost of the recorder, and
   more. A recorder of another version can send a status without some of the members. If the member for a line
   is missing, the line is left out. */
#include "flightrecctl/ctl.h"
#include "base/cleanup.h"
#include "control/interface.h"

#include <stdio.h>
#include <string.h>

#define WRITING_LONG_S 1 /* a dump whose write takes longer is shown */

static void print_head(const cJSON *s)
{
	_cleanup_free_ char *version = ctl_format("%s", ctl_string(s, "version")),
			    *state = ctl_format("%s", ctl_string(s, "state"));
	const bool recording = !strcmp(state, "recording");

	ctl_replace_control_characters(version);
	ctl_replace_control_characters(state);
	printf("flightrecd %s, %s%s%s since %s (%s), pid %.0f\n", version,
		ctl_colour(recording ? CTL_GREEN : CTL_YELLOW), state, ctl_colour(CTL_NORMAL),
		ctl_time(s, "since"), ctl_seconds(s, "uptime_s"), ctl_number(s, "pid"));
	if (*ctl_string(s, "doing"))
		ctl_field("Doing", "%s; flightrecd does not record yet", ctl_string(s, "doing"));
	ctl_text_field("Directory", ctl_string(s, "directory"));
}

static void print_ring(const cJSON *s)
{
	ctl_field("Ring", "the last %s: %s of %s used; it holds %s of records, compressed %.1f times",
		ctl_seconds(s, "ring.span_s"), ctl_size(s, "ring.used"), ctl_size(s, "ring.size"),
		ctl_size(s, "ring.raw"), ctl_number(s, "ring.compression"));
	if (cJSON_IsTrue(ctl_get(s, "ring.memory.used")))
		ctl_field("", "in %s, which survives a crash of %s; saved every %s",
			ctl_string(s, "ring.memory.path"),
			cJSON_IsTrue(ctl_get(s, "ring.memory.survives_crash"))
				? "the machine"
				: "the recorder, but not of the machine",
			ctl_seconds(s, "ring.memory.commit_period_s"));
	if (ctl_number(s, "ring.pinned") > 0)
		ctl_field("", "%s pinned by a dump that is being written or that failed and is kept",
			ctl_size(s, "ring.pinned"));
}

static void print_rings(const cJSON *s)
{
	const cJSON *ring;

	cJSON_ArrayForEach (ring, ctl_get(s, "rings")) {
		char name[64];

		snprintf(name, sizeof(name), "%s", ring->string);
		ctl_replace_control_characters(name);
		ctl_field("", "%s: the last %s, %.0f samples; %s of %s used, %.0f samples evicted", name,
			ctl_seconds(ring, "span_s"), ctl_number(ring, "samples"), ctl_size(ring, "used"),
			ctl_size(ring, "size"), ctl_number(ring, "evicted_samples"));
	}
	if (ctl_get(s, "sideband_ring"))
		ctl_field("", "side-band of all: %s of %s used", ctl_size(s, "sideband_ring.used"),
			ctl_size(s, "sideband_ring.size"));
}

static void print_adopted(const cJSON *s)
{
	const double restarts = ctl_number(s, "adopted.restarts");
	const char *continued = ctl_string(s, "adopted.continued");

	ctl_field("Adopted", "%.0f samples of the previous instance; recorded since %s with %.0f restart%s",
		ctl_number(s, "adopted.samples"), ctl_time(s, "adopted.first_since"), restarts,
		restarts == 1 ? "" : "s");
	if (!strcmp(continued, "all"))
		ctl_field("", "no gap before this instance, but no side-band for %s; all gaps together: %s",
			ctl_seconds(s, "adopted.sideband_gap_s"), ctl_seconds(s, "adopted.gaps_s"));
	else
		ctl_field("", "gap before this instance%s: %s; all gaps together: %s",
			!strcmp(continued, "some") ? ", except for samples of BPF programs" : "",
			ctl_seconds(s, "adopted.gap_s"), ctl_seconds(s, "adopted.gaps_s"));
}

static void print_sideband(const cJSON *s)
{
	ctl_field("Side-band",
		"%s in perf.data.auxiliary; %.0f processes, %.0f threads, %.0f maps; %.0f scans",
		ctl_size(s, "sideband.file_bytes"), ctl_number(s, "sideband.processes"),
		ctl_number(s, "sideband.threads"), ctl_number(s, "sideband.maps"),
		ctl_number(s, "sideband.scans"));
	if (*ctl_string(s, "sideband.last_error"))
		ctl_field("", "last error when perf.data.auxiliary was written: %s",
			ctl_string(s, "sideband.last_error"));
}

static double sum_members(const cJSON *object)
{
	const cJSON *item;
	double ret = 0;

	cJSON_ArrayForEach (item, object)
		ret += cJSON_IsNumber(item) ? item->valuedouble : 0;
	return ret;
}

static void print_stacks(const cJSON *s)
{
	const cJSON *walks = ctl_get(s, "unwind.walks"), *walk;
	const double all = sum_members(walks);

	ctl_field("Stacks", "%.0f unwound, %.1f %% of them whole; %.0f tables, %s of %s", all,
		all > 0 ? 100 * ctl_number(walks, "whole") / all : 100, ctl_number(s, "unwind.tables"),
		ctl_size(s, "unwind.memory"), ctl_size(s, "unwind.memory_max"));
	if (ctl_number(s, "unwind.tables_evicted") > 0)
		ctl_field("", "%.0f tables were removed to make room; a larger UnwindMemory= keeps more",
			ctl_number(s, "unwind.tables_evicted"));
	if (cJSON_IsTrue(ctl_get(s, "unwind.holds_back")))
		ctl_field("",
			"new tables wait, because making tables may take at most 5 %% of a CPU, and at most "
			"half of CPUBudget=; until then, new programs have frame pointers");
	if (ctl.verbose && cJSON_IsFalse(ctl_get(s, "unwind.notes_changes")))
		ctl_field("",
			"the kernel does not tell when a process changes its maps: for up to a second, a "
			"stack can be walked by the old ones");
	if (ctl.verbose)
		ctl_field("",
			"not counted: samples of clocks and hardware events that the kernel drops because "
			"another BPF program runs on their CPU");
	cJSON_ArrayForEach (walk, walks) {
		const char *advice = ctl_explain_walk(walk->string);

		if (cJSON_IsNumber(walk) && walk->valuedouble > 0 && strcmp(walk->string, "whole") != 0 &&
			(ctl.verbose || walk->valuedouble > all / 100))
			ctl_field("", "%.0f %s%s%s", walk->valuedouble, walk->string, *advice ? ": " : "",
				advice);
	}
}

static void print_off_cpu(const cJSON *s)
{
	const uint64_t ns = (uint64_t)ctl_number(s, "frequency.off_cpu_threshold_ns");
	const uint64_t full_ns = (uint64_t)ctl_number(s, "frequency.full_off_cpu_threshold_ns");
	char now[FR_UNIT_SIZE], full[FR_UNIT_SIZE];

	fr_duration_format(ns, now);
	fr_duration_format(full_ns, full);
	if (ns > full_ns)
		ctl_field("Off-CPU", "waits of %s or longer, instead of %s, to keep within CPUBudget=", now,
			full);
	else
		ctl_field("Off-CPU", "waits of %s or longer", now);
}

static void print_aux(const cJSON *s)
{
	ctl_field("AUX", "%.0f areas, %s; dumps copied %s in %.0f pauses of together %s, the longest %s",
		ctl_number(s, "aux.areas"), ctl_size(s, "aux.area_bytes"), ctl_size(s, "aux.copied_bytes"),
		ctl_number(s, "aux.pauses"), ctl_seconds(s, "aux.gap_s"),
		ctl_seconds(s, "aux.longest_gap_s"));
}

static void print_self(const cJSON *s)
{
	const double budget = ctl_number(s, "frequency.budget_percent");

	if (ctl_get(s, "self"))
		ctl_field("Self", "%.2f %% of a CPU, %s of CPU time since the start; memory %s, peak %s",
			ctl_number(s, "self.cpu_percent"), ctl_seconds(s, "self.cpu_s"),
			ctl_size(s, "self.rss_bytes"), ctl_size(s, "self.peak_rss_bytes"));
	if (budget > 0)
		ctl_field("Budget",
			"used %.2f %% of a CPU over the last 10 s, of %g %% that CPUBudget= allows%s",
			ctl_number(s, "frequency.used_percent"), budget,
			cJSON_IsTrue(ctl_get(s, "frequency.exhausted"))
				? ": too much, and no frequency can be reduced further; record fewer events"
				: "");
	if (ctl_number(s, "frequency.divisor") > 1 && ctl_number(s, "frequency.full_hz") > 0)
		ctl_field("", "samples at %.0f Hz instead of %.0f Hz, to keep within CPUBudget=",
			ctl_number(s, "frequency.hz"), ctl_number(s, "frequency.full_hz"));
}

/* Prints a line for each event that is not as configured. */
static void print_switches(const cJSON *s)
{
	const char *label = "Switched";
	const cJSON *event;

	cJSON_ArrayForEach (event, ctl_get(s, "events")) {
		const cJSON *o = ctl_get(event, "switched");
		const char *reason = ctl_string(o, "why");
		const bool has_end = ctl_is_countable(o, "left_ns");
		char rate[32] = "";

		if (!o)
			continue;
		if (ctl_number(o, "rate") > 0)
			snprintf(rate, sizeof(rate), ", rate %.0f", ctl_number(o, "rate"));
		ctl_field(label, "%s: %s%s since %s%s%s, by %s%s%s", ctl_string(event, "name"),
			cJSON_IsFalse(ctl_get(event, "enabled")) ? "off" : "on", rate, ctl_ns(o, "age_ns"),
			has_end ? ", for another " : "", has_end ? ctl_ns(o, "left_ns") : "",
			ctl_string(o, "by"), *reason ? ": " : "", reason);
		label = "";
	}
}

static void print_dumps_in_progress(const cJSON *s)
{
	ctl_print_waiting(ctl_get(s, "dumps"));
	if (ctl_number(s, "dumps.writing.seconds") > WRITING_LONG_S)
		ctl_field("", "writing %s for %s: the disk is slow or stuck",
			ctl_string(s, "dumps.writing.file"), ctl_seconds(s, "dumps.writing.seconds"));
	if (ctl_get(s, "dumps.kept"))
		ctl_field("",
			"1 failed dump is kept (%s in memory, triggered %s ago) and tried again; the error: "
			"%s",
			ctl_size(s, "dumps.kept.bytes"), ctl_seconds(s, "dumps.kept.age_s"),
			ctl_string(s, "dumps.kept.why"));
}

/* Prints the dumps that wait for the store of the fleet. */
static void print_held(const cJSON *s)
{
	if (ctl_number(s, "dumps.held") > 0)
		ctl_field("", "%.0f held until they are uploaded: %s", ctl_number(s, "dumps.held"),
			ctl_size(s, "dumps.held_bytes"));
	if (ctl_number(s, "dumps.held_removed") > 0)
		ctl_field("", "%.0f removed before they were uploaded, because the disk had no room",
			ctl_number(s, "dumps.held_removed"));
	if (ctl_number(s, "dumps.holds_expired") > 0)
		ctl_field("", "%.0f were not uploaded within a day, and are no longer held",
			ctl_number(s, "dumps.holds_expired"));
}

static void print_dumps(const cJSON *s)
{
	const char *last = ctl_string(s, "dumps.last.file"),
		   *writer = ctl_string(s, "dumps.last.written_with");

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
	print_held(s);
	print_dumps_in_progress(s);
	ctl_text_field("Writer", *writer ? writer : ctl_string(s, "writer"));
}

static void print_triggers(const cJSON *s)
{
	_cleanup_free_ char *suppressed = ctl_describe_suppressed(ctl_get(s, "triggers.suppressed"));
	const double failed = ctl_number(s, "triggers.failed"), arming = ctl_number(s, "triggers.arming");

	ctl_field("Triggers", "%.0f armed; %.0f fired, %.0f joined, suppressed %s",
		ctl_number(s, "triggers.armed"), ctl_number(s, "triggers.fired"),
		ctl_number(s, "triggers.joined"), suppressed);
	if (arming > 0)
		ctl_field("", "%.0f still being armed; `flightrecctl triggers` shows the reason", arming);
	if (failed > 0)
		ctl_field("", "%.0f cannot be armed; `flightrecctl triggers` shows the reason", failed);
}

static void print_notices(const cJSON *s)
{
	const cJSON *notice;

	cJSON_ArrayForEach (notice, ctl_get(s, "notices"))
		if (cJSON_IsString(notice))
			ctl_field("Notice", "%s", notice->valuestring);
}

static void add_event_row(struct fr_table *t, const char *name, const char *cpu, const cJSON *o)
{
	const double samples = ctl_number(o, "samples"),
		     /* The pauses are no records. print_losses() has them. */
		lost = sum_members(ctl_get(o, "lost")) - ctl_number(o, "lost.aux-paused");

	fr_table_texts(t, name, cpu, NULL);
	fr_table_cell(t, "%.0f", samples);
	fr_table_cell(t, "%.1f", ctl_number(o, "rate_per_s"));
	fr_table_cell(t, "%.0f", lost);
	fr_table_cell(t, "%.3f%%", samples + lost > 0 ? 100 * lost / (samples + lost) : 0);
}

static void print_events(const cJSON *s)
{
	struct fr_table *t = fr_table_new("EVENT|>CPU|>SAMPLES|>RATE/S|>LOST|>LOST%");
	const cJSON *event, *cpu;

	cJSON_ArrayForEach (event, ctl_get(s, "events")) {
		const cJSON *cpus = ctl.verbose ? ctl_get(event, "cpus") : NULL;

		add_event_row(t, ctl_string(event, "name"), "all", event);
		cJSON_ArrayForEach (cpu, cpus) {
			char number[32];

			snprintf(number, sizeof(number), "%.0f", ctl_number(cpu, "cpu"));
			add_event_row(t, "", number, cpu);
		}
	}
	if (fr_table_rows(t) > 0 && !ctl.no_legend)
		putchar('\n');
	ctl_table_print(t, !ctl.no_legend);
}

/* Prints each cause of loss with advice. A newer recorder can send a cause that this program does not know;
   that cause is printed without advice. */
static void print_losses(const cJSON *s)
{
	const cJSON *loss, *losses = ctl_get(s, "losses");
	bool any = false;

	cJSON_ArrayForEach (loss, losses) {
		_cleanup_free_ char *name = ctl_format("%s", loss->string);
		const char *advice = ctl_explain_loss(loss->string);

		if (!cJSON_IsNumber(loss) || (loss->valuedouble <= 0 && !ctl.verbose))
			continue;
		if (!any)
			printf("\n%sLost since the start%s\n", ctl_colour(CTL_BOLD), ctl_colour(CTL_NORMAL));
		any = true;
		ctl_replace_control_characters(name);
		printf("%s%12.0f%s  %s%s%s\n", ctl_colour(loss->valuedouble > 0 ? CTL_RED : CTL_NORMAL),
			loss->valuedouble, ctl_colour(CTL_NORMAL), name, *advice ? ": " : "", advice);
	}
	if (!any && losses && !ctl.no_legend)
		printf("\nNothing was lost.\n");
}

static void print_status(const cJSON *s)
{
	/* A section of the output is printed if the status has the member `member`; "": it is always
	   printed. */
	static const struct {
		const char *member;
		void (*print)(const cJSON *s);
	} sections[] = {{"", print_head}, {"ring", print_ring}, {"rings", print_rings},
		{"adopted", print_adopted}, {"sideband", print_sideband}, {"unwind", print_stacks},
		{"frequency.off_cpu_threshold_ns", print_off_cpu}, {"aux", print_aux}, {"", print_self},
		{"switches", print_switches}, {"dumps", print_dumps}, {"triggers", print_triggers},
		{"notices", print_notices}, {"", print_events}, {"", print_losses}};

	for (size_t i = 0; i < FR_ARRAY_SIZE(sections); i++)
		if (ctl_get(s, sections[i].member))
			sections[i].print(s);
}

static int run(void)
{
	return ctl_call_and_print(FR_METHOD(Status), NULL, "status", print_status);
}

CTL_VERB(status, CTL_RECORDER, "status", NULL, "the ring, rates and losses per event, own cost, dumps",
	.pages = true, .run = run);
