// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/cleanup.h"
#include "base/json.h"
#include "reporting/losses.h"
#include "reporting/view.h"
#include "unwind/results.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void add_seconds(cJSON *o, const char *name, uint64_t ns)
{
	cJSON_AddNumberToObject(o, name, (double)ns / 1e9);
}

static void add_losses(cJSON *object, const uint64_t lost[static _FR_LOSS_MAX])
{
	cJSON *o = cJSON_AddObjectToObject(object, "lost");

	for (int i = 0; i < _FR_LOSS_MAX; i++)
		if (lost[i])
			cJSON_AddNumberToObject(o, fr_loss_name(i), (double)lost[i]);
}

/* Adds whether the event E is recorded and, if it is not as configured, why. */
static void add_switch(const struct fr_view *v, size_t e, cJSON *event)
{
	const uint32_t slot = fr_capture_slot(v->capture, e);
	const struct fr_switched *s = slot == FR_SWITCH_NONE ? NULL : fr_switching_find(v->switching, slot);
	cJSON *o;

	cJSON_AddBoolToObject(event, "enabled", !fr_switches_is_off(v->switching->switches, slot));
	if (!s)
		return;
	o = cJSON_AddObjectToObject(event, "switched");
	cJSON_AddStringToObject(o, "by", s->by);
	if (s->why[0])
		cJSON_AddStringToObject(o, "why", s->why);
	if (s->rate)
		fr_json_add_u64(o, "rate", s->rate);
	fr_json_add_time(o, "since", fr_clock_to_realtime(&v->started, s->since_ns));
	FR_JSON_ADD_NUMBERS(o, {"since_ns", s->since_ns},
		{"age_ns", v->now_ns > s->since_ns ? v->now_ns - s->since_ns : 0});
	if (!s->until_ns)
		return;
	fr_json_add_time(o, "until", fr_clock_to_realtime(&v->started, s->until_ns));
	FR_JSON_ADD_NUMBERS(o, {"until_ns", s->until_ns},
		{"left_ns", s->until_ns > v->now_ns ? s->until_ns - v->now_ns : 0});
}

static cJSON *event_status(const struct fr_view *v, size_t e)
{
	const struct fr_counter_snapshot *base = fr_rates_base(v->rates);
	const size_t n_cpus = fr_capture_n_cpus(v->capture);
	const double seconds = (double)(v->now_ns - base->time_ns) / 1e9;
	uint64_t lost[_FR_LOSS_MAX] = {0}, samples = 0, before = 0;
	cJSON *o = cJSON_CreateObject(), *cpus;

	cJSON_AddStringToObject(o, "name", fr_capture_event_name(v->capture, e));
	add_switch(v, e, o);
	cpus = cJSON_AddArrayToObject(o, "cpus");
	for (size_t c = 0; c < fr_capture_n_sampled_cpus(v->capture); c++) {
		const uint64_t old = base->samples ? base->samples[e * n_cpus + c] : 0;
		struct fr_counter counter;
		cJSON *cpu = cJSON_CreateObject();

		fr_capture_counter(v->capture, e, c, &counter);
		cJSON_AddNumberToObject(cpu, "cpu", fr_capture_cpu_number(v->capture, c));
		cJSON_AddNumberToObject(cpu, "samples", (double)counter.samples);
		cJSON_AddNumberToObject(
			cpu, "rate_per_s", seconds > 0 ? (double)(counter.samples - old) / seconds : 0);
		add_losses(cpu, counter.lost);
		cJSON_AddItemToArray(cpus, cpu);
		samples += counter.samples;
		before += old;
	}
	fr_losses_add_event(v->capture, e, lost);
	cJSON_AddNumberToObject(o, "samples", (double)samples);
	cJSON_AddNumberToObject(o, "rate_per_s", seconds > 0 ? (double)(samples - before) / seconds : 0);
	add_losses(o, lost);
	return o;
}

static void add_objects(const struct fr_view *v, cJSON *status)
{
	const struct fr_collector_stats *s = &v->objects;
	cJSON *o;

	if (!v->has_objects)
		return;
	o = cJSON_AddObjectToObject(status, "objects");
	FR_JSON_ADD_NUMBERS(o, {"max", v->objects_max_bytes}, {"files", s->cache.objects},
		{"bytes", s->cache.bytes}, {"added", s->cache.added}, {"evicted", s->cache.evicted},
		{"missed", s->missed}, {"dropped_dumps", s->dropped});
	if (s->last_errno)
		cJSON_AddStringToObject(o, "error", strerror(s->last_errno));
}

/* Adds what a crash of the machine leaves. */
static void add_memory(const struct fr_view *v, cJSON *ring)
{
	const struct fr_tail_stats *t = &v->tail;
	cJSON *o;

	if (!*v->ring_memory)
		return;
	o = cJSON_AddObjectToObject(ring, "memory");
	cJSON_AddStringToObject(o, "path", v->ring_memory);
	cJSON_AddBoolToObject(o, "used", !v->no_memory->code);
	if (v->no_memory->code) {
		cJSON_AddStringToObject(o, "error", v->no_memory->what);
		return;
	}
	cJSON_AddBoolToObject(o, "survives_crash", v->ring_survives);
	add_seconds(o, "commit_period_s", v->ring_period_ns);
	FR_JSON_ADD_NUMBERS(o, {"checkpoints", t->checkpoints}, {"checkpoint_bytes", t->checkpoint_bytes},
		{"checkpoint_max", t->slot_bytes}, {"checkpoints_failed", t->checkpoints_failed},
		{"log_bytes", t->log_bytes}, {"log_used", t->log_used_bytes},
		{"sections_lost", t->sections_lost});
}

static void add_ring(const struct fr_view *v, cJSON *status)
{
	cJSON *o = cJSON_AddObjectToObject(status, "ring");
	const struct fr_history_stats *s = &v->ring;

	FR_JSON_ADD_NUMBERS(o, {"size", s->size_bytes}, {"used", s->used_bytes}, {"raw", s->raw_bytes},
		{"first_ns", s->first_ns}, {"last_ns", s->last_ns}, {"frames", s->frames},
		{"samples", s->samples}, {"sideband", s->sideband}, {"evicted_samples", s->samples_evicted},
		{"dropped_samples", s->samples_dropped}, {"pinned", s->pinned_bytes});
	cJSON_AddNumberToObject(
		o, "compression", s->used_bytes ? (double)s->raw_bytes / (double)s->used_bytes : 0);
	add_seconds(o, "span_s", s->last_ns - s->first_ns);
	add_seconds(o, "compress_s", s->compress_ns);
	add_memory(v, o);
}

/* If there is more than one ring, "ring" has the sums, and "rings" has each ring. */
static void add_rings(const struct fr_view *v, cJSON *status)
{
	cJSON *rings = v->n_rings > 1 ? cJSON_AddObjectToObject(status, "rings") : NULL;

	for (unsigned i = 0; rings && i < v->n_rings; i++) {
		const struct fr_history_stats *s = &v->rings[i].stats;
		cJSON *o = cJSON_AddObjectToObject(rings, v->rings[i].name);

		FR_JSON_ADD_NUMBERS(o, {"size", s->size_bytes}, {"used", s->used_bytes},
			{"raw", s->raw_bytes}, {"first_ns", s->first_ns}, {"last_ns", s->last_ns},
			{"samples", s->samples}, {"evicted_samples", s->samples_evicted},
			{"dropped_samples", s->samples_dropped}, {"pinned", s->pinned_bytes});
		add_seconds(o, "span_s", s->last_ns - s->first_ns);
	}
	if (v->sideband_ring.size_bytes) {
		const struct fr_history_stats *s = &v->sideband_ring;
		cJSON *o = cJSON_AddObjectToObject(status, "sideband_ring");

		FR_JSON_ADD_NUMBERS(o, {"size", s->size_bytes}, {"used", s->used_bytes},
			{"records", s->sideband}, {"low_watermark_ns", s->low_watermark_ns});
	}
}

static void add_sideband(const struct fr_view *v, cJSON *status)
{
	cJSON *o = cJSON_AddObjectToObject(status, "sideband");
	const struct fr_tracker_stats *s = &v->sideband;
	uint64_t lost[_FR_LOSS_MAX] = {0};

	FR_JSON_ADD_NUMBERS(o, {"file_bytes", s->file_bytes}, {"records", s->records}, {"scans", s->scans},
		{"compactions", s->compactions}, {"compactions_failed", s->compactions_failed},
		{"checkpoint_bytes", s->checkpoint_bytes}, {"queue_drops", s->queue_drops},
		{"write_errors", s->write_errors}, {"processes", s->processes}, {"threads", s->threads},
		{"maps", s->maps}, {"model_bytes", s->model_bytes});
	add_seconds(o, "scan_s", s->scan_ns);
	if (s->write_errors || s->compactions_failed)
		cJSON_AddStringToObject(o, "last_error", strerror(s->last_errno));
	fr_losses_add_event(v->capture, fr_capture_n_events(v->capture) - 1, lost);
	add_losses(o, lost);
}

uint64_t fr_resident_bytes(void)
{
	unsigned long long size, resident;
	_cleanup_fclose_ FILE *f = fopen("/proc/self/statm", "re");

	if (!f || fscanf(f, "%llu %llu", &size, &resident) != 2)
		return 0;
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void add_aux(const struct fr_view *v, cJSON *status)
{
	struct fr_aux_stats s;
	cJSON *o;

	fr_capture_aux_stats(v->capture, &s);
	if (s.areas == 0)
		return;
	o = cJSON_AddObjectToObject(status, "aux");
	FR_JSON_ADD_NUMBERS(o, {"areas", s.areas}, {"area_bytes", s.area_bytes}, {"pauses", s.pauses},
		{"copied_bytes", s.copied_bytes}, {"looks", s.looks});
	add_seconds(o, "gap_s", s.gap_ns);
	add_seconds(o, "longest_gap_s", s.longest_gap_ns);
	add_seconds(o, "longest_look_s", s.longest_look_ns);
}

static void add_unwind(const struct fr_view *v, cJSON *status)
{
	const struct fr_unwinder_stats *s = &v->unwind;
	cJSON *o, *walks;

	if (!v->unwinds)
		return;
	o = cJSON_AddObjectToObject(status, "unwind");
	walks = cJSON_AddObjectToObject(o, "walks");
	for (int i = 0; i < _FR_UNWIND_RESULTS; i++)
		cJSON_AddNumberToObject(walks, fr_unwind_result_name(i), (double)s->walks[i]);
	FR_JSON_ADD_NUMBERS(o, {"frames", s->frames}, {"memory", s->memory_bytes},
		{"memory_max", s->memory_max_bytes}, {"processes", s->processes}, {"objects", s->objects},
		{"tables", s->tables}, {"tables_made", s->tables_made}, {"tables_evicted", s->tables_evicted},
		{"tables_failed", s->tables_failed}, {"tables_held_back", s->tables_held_back},
		{"processes_dropped", s->processes_dropped}, {"queue_drops", s->queue_drops});
	cJSON_AddBoolToObject(o, "notes_changes", s->notes_changes);
	cJSON_AddBoolToObject(o, "holds_back", s->holds_back);
	add_seconds(o, "tables_s", s->tables_ns);
}

static void add_self(const struct fr_view *v, cJSON *status)
{
	const struct fr_counter_snapshot *base = fr_rates_base(v->rates);
	const uint64_t cpu_ns = fr_now_ns(CLOCK_PROCESS_CPUTIME_ID);
	const double elapsed_ns = (double)(v->now_ns - base->time_ns);
	cJSON *o = cJSON_AddObjectToObject(status, "self");
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	add_seconds(o, "cpu_s", cpu_ns);
	cJSON_AddNumberToObject(o, "cpu_percent",
		v->now_ns > base->time_ns ? 100.0 * (double)(cpu_ns - base->cpu_ns) / elapsed_ns : 0);
	FR_JSON_ADD_NUMBERS(o, {"rss_bytes", fr_resident_bytes()},
		{"peak_rss_bytes", (uint64_t)ru.ru_maxrss * 1024}, {"rounds", v->rounds.rounds});
	add_seconds(o, "longest_round_s", v->rounds.longest_ns);
	add_seconds(o, "longest_period_s", v->rounds.longest_period_ns);
}

static void add_frequency(const struct fr_view *v, cJSON *status)
{
	const struct fr_frequency *f = v->frequency;
	const struct fr_budget *b = &f->budget;
	cJSON *o = cJSON_AddObjectToObject(status, "frequency");

	cJSON_AddNumberToObject(o, "budget_percent", (double)b->ppm / FR_PPM_PER_PERCENT);
	cJSON_AddNumberToObject(o, "used_percent", (double)b->used_ppm / FR_PPM_PER_PERCENT);
	FR_JSON_ADD_NUMBERS(o, {"full_hz", f->full_hz}, {"hz", fr_frequency_hz(f)}, {"divisor", b->divisor},
		{"steps_down", f->down}, {"steps_up", f->up});
	if (f->full_threshold_ns)
		FR_JSON_ADD_NUMBERS(o, {"full_off_cpu_threshold_ns", f->full_threshold_ns},
			{"off_cpu_threshold_ns", fr_frequency_threshold_ns(f)});
	cJSON_AddBoolToObject(o, "exhausted", b->is_exhausted);
}

static void add_switches(const struct fr_view *v, cJSON *status)
{
	cJSON *o = cJSON_AddObjectToObject(status, "switches");

	FR_JSON_ADD_NUMBERS(o, {"now", v->switching->n_entries}, {"count", v->switching->count},
		{"records_lost", v->switching->lost});
}

static void add_kept(cJSON *dumps, const struct fr_dumper_stats *s, uint64_t now_ns)
{
	cJSON *o;

	if (!s->kept)
		return;
	o = cJSON_AddObjectToObject(dumps, "kept");
	cJSON_AddNumberToObject(o, "bytes", (double)s->kept_bytes);
	add_seconds(o, "age_s", now_ns - s->kept_trigger_ns);
	cJSON_AddStringToObject(o, "why", s->kept_why);
}

static void add_writing(cJSON *dumps, const struct fr_dumper_stats *s, uint64_t now_ns)
{
	cJSON *o;

	if (!s->writing_since_ns)
		return;
	o = cJSON_AddObjectToObject(dumps, "writing");
	cJSON_AddStringToObject(o, "file", s->writing_name);
	/* The write can have begun after now_ns was read. */
	cJSON_AddNumberToObject(o, "seconds",
		now_ns > s->writing_since_ns ? (double)(now_ns - s->writing_since_ns) / 1e9 : 0);
}

static void add_dumps(const struct fr_view *v, cJSON *status)
{
	cJSON *o = cJSON_AddObjectToObject(status, "dumps");
	const struct fr_dumper_stats *s = &v->dumper;

	FR_JSON_ADD_NUMBERS(o, {"done", v->counters->dumps_done}, {"joined", v->counters->dumps_joined},
		{"failed", v->counters->dumps_failed}, {"suppressed", v->counters->dumps_suppressed},
		{"canceled", v->counters->dumps_canceled}, {"queued", s->queued},
		{"waiting_post_trigger", s->waiting_post}, {"rescued", v->counters->dumps_rescued},
		{"given_up", v->counters->dumps_given_up}, {"removed", v->counters->dumps_removed},
		{"not_durable", v->counters->dumps_not_durable}, {"held", s->held},
		{"held_bytes", s->held_bytes}, {"held_removed", s->held_removed},
		{"holds_expired", s->holds_expired});
	cJSON_AddItemToObject(o, "waiting", v->waiting);
	add_writing(o, s, v->now_ns);
	add_kept(o, s, v->now_ns);
	if (v->last_dump)
		cJSON_AddItemToObject(o, "last", cJSON_Duplicate(v->last_dump, true));
	if (v->writer[0])
		cJSON_AddStringToObject(status, "writer", v->writer);
}

static void add_adopted(const struct fr_view *v, cJSON *status)
{
	const struct fr_history_adopted *a = &v->handover->history;
	const struct fr_state *s = &v->handover->state;
	static const char *const continued[] = {"none", "some", "all"};
	cJSON *o;

	if (!v->handover->adopted)
		return;
	o = cJSON_AddObjectToObject(status, "adopted");
	fr_json_add_time(o, "first_since", fr_clock_to_realtime(&v->started, s->first_started_ns));
	add_seconds(o, "gap_s", s->gap_to_ns - s->gap_from_ns);
	add_seconds(o, "gaps_s", s->gap_ns);
	if (a->drained_ns)
		add_seconds(o, "sideband_gap_s", v->handover->sideband_ns - a->drained_ns);
	cJSON_AddStringToObject(o, "continued", continued[v->handover->continued]);
	FR_JSON_ADD_NUMBERS(o, {"restarts", s->restarts}, {"gap_from_ns", s->gap_from_ns},
		{"gap_to_ns", s->gap_to_ns}, {"samples", a->samples}, {"frames", a->frames},
		{"frames_left_out", a->frames_left_out}, {"first_ns", a->first_ns}, {"last_ns", a->last_ns});
	cJSON_AddBoolToObject(o, "in_place", a->in_place);
}

static void add_triggers(const struct fr_view *v, cJSON *status)
{
	cJSON *o = cJSON_AddObjectToObject(status, "triggers"), *suppressed;
	const size_t n = v->triggers ? fr_triggers_count(v->triggers) : 0;
	uint64_t counts[FR_VERDICTS] = {0}, states[FR_TRIGGER_STATES] = {0};

	for (size_t i = 0; i < n; i++) {
		struct fr_trigger_info info;

		fr_triggers_get_info(v->triggers, i, &info);
		states[info.state]++;
		for (int k = 0; k < FR_VERDICTS; k++)
			counts[k] += info.counts[k];
	}
	FR_JSON_ADD_NUMBERS(o, {"armed", states[FR_TRIGGER_ARMED]}, {"arming", states[FR_TRIGGER_ARMING]},
		{"disabled", states[FR_TRIGGER_DISABLED]}, {"failed", states[FR_TRIGGER_FAILED]},
		{"fired", counts[FR_VERDICT_FIRE]}, {"joined", counts[FR_VERDICT_COALESCE]});
	suppressed = cJSON_AddObjectToObject(o, "suppressed");
	for (int i = FR_VERDICT_DISABLED; i < FR_VERDICTS; i++)
		cJSON_AddNumberToObject(suppressed, fr_verdict_name(i), (double)counts[i]);
}

static void add_head(cJSON *status, const struct fr_clock_pair *begun, uint64_t now_ns)
{
	cJSON_AddStringToObject(status, "version", FR_VERSION);
	cJSON_AddNumberToObject(status, "pid", getpid());
	fr_json_add_time(status, "since", begun->realtime_ns);
	add_seconds(status, "uptime_s", now_ns - begun->monotonic_ns);
}

cJSON *fr_status(const struct fr_view *v)
{
	cJSON *status = cJSON_CreateObject(), *events, *losses;

	add_head(status, &v->started, v->now_ns);
	cJSON_AddStringToObject(status, "boot_id", v->boot_id);
	cJSON_AddStringToObject(status, "directory", v->directory);
	cJSON_AddStringToObject(status, "state", v->stopping ? "stopping" : "recording");
	add_ring(v, status);
	add_rings(v, status);
	add_adopted(v, status);
	add_objects(v, status);
	events = cJSON_AddArrayToObject(status, "events");
	/* The last event is the side-band event. It has no samples, and add_sideband() adds its losses. */
	for (size_t e = 0; e + 1 < fr_capture_n_events(v->capture); e++)
		cJSON_AddItemToArray(events, event_status(v, e));
	losses = cJSON_AddObjectToObject(status, "losses");
	for (int i = 0; i < _FR_LOSS_MAX; i++)
		cJSON_AddNumberToObject(losses, fr_loss_name(i), (double)v->lost[i]);
	add_sideband(v, status);
	add_aux(v, status);
	add_unwind(v, status);
	add_self(v, status);
	add_frequency(v, status);
	add_switches(v, status);
	add_dumps(v, status);
	add_triggers(v, status);
	fr_status_add_notices(v, status);
	return status;
}

cJSON *fr_status_of_start(const struct fr_clock_pair *begun, const char *doing)
{
	cJSON *reply = cJSON_CreateObject(), *status = cJSON_AddObjectToObject(reply, "status");

	add_head(status, begun, fr_monotonic_ns());
	cJSON_AddStringToObject(status, "state", "starting");
	cJSON_AddStringToObject(status, "doing", doing);
	return reply;
}
