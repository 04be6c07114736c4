// SPDX-License-Identifier: GPL-2.0-or-later
#include "base/cleanup.h"
#include "reporting/view.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void add_losses(cJSON *object, const uint64_t lost[static _FR_LOSS_MAX])
{
	cJSON *o = cJSON_AddObjectToObject(object, "lost");

	for (int i = 0; i < _FR_LOSS_MAX; i++)
		if (lost[i])
			cJSON_AddNumberToObject(o, fr_loss_name(i), (double)lost[i]);
}

static cJSON *event_status(const struct fr_view *v, size_t e)
{
	const struct fr_counter_snapshot *base = fr_rates_base(v->rates);
	const size_t n_cpus = fr_capture_n_cpus(v->capture),
		     n_of_event = e + 1 < fr_capture_n_events(v->capture)
					  ? fr_capture_n_sampled_cpus(v->capture)
					  : n_cpus;
	const double seconds = (double)(v->now_ns - base->time_ns) / 1e9;
	uint64_t lost[_FR_LOSS_MAX] = {0}, samples = 0, before = 0;
	cJSON *o = cJSON_CreateObject(), *cpus;

	cJSON_AddStringToObject(o, "name", fr_capture_event_name(v->capture, e));
	cpus = cJSON_AddArrayToObject(o, "cpus");
	for (size_t c = 0; c < n_of_event; c++) {
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
		for (int i = 0; i < _FR_LOSS_MAX; i++)
			lost[i] += counter.lost[i];
	}
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
	cJSON_AddNumberToObject(o, "max", (double)v->objects_max_bytes);
	cJSON_AddNumberToObject(o, "files", (double)s->cache.objects);
	cJSON_AddNumberToObject(o, "bytes", (double)s->cache.bytes);
	cJSON_AddNumberToObject(o, "added", (double)s->cache.added);
	cJSON_AddNumberToObject(o, "evicted", (double)s->cache.evicted);
	cJSON_AddNumberToObject(o, "missed", (double)s->missed);
	cJSON_AddNumberToObject(o, "dropped_dumps", (double)s->dropped);
	if (s->last_errno)
		cJSON_AddStringToObject(o, "error", strerror(s->last_errno));
}

static void add_ring(const struct fr_view *v, cJSON *status)
{
	cJSON *o = cJSON_AddObjectToObject(status, "ring");
	const struct fr_history_stats *s = &v->ring;

	cJSON_AddNumberToObject(o, "size", (double)s->size_bytes);
	cJSON_AddNumberToObject(o, "used", (double)s->used_bytes);
	cJSON_AddNumberToObject(o, "raw", (double)s->raw_bytes);
	cJSON_AddNumberToObject(
		o, "compression", s->used_bytes ? (double)s->raw_bytes / (double)s->used_bytes : 0);
	cJSON_AddNumberToObject(o, "span_s", (double)(s->last_ns - s->first_ns) / 1e9);
	cJSON_AddNumberToObject(o, "first_ns", (double)s->first_ns);
	cJSON_AddNumberToObject(o, "last_ns", (double)s->last_ns);
	cJSON_AddNumberToObject(o, "frames", (double)s->frames);
	cJSON_AddNumberToObject(o, "samples", (double)s->samples);
	cJSON_AddNumberToObject(o, "sideband", (double)s->sideband);
	cJSON_AddNumberToObject(o, "evicted_samples", (double)s->samples_evicted);
	cJSON_AddNumberToObject(o, "dropped_samples", (double)s->samples_dropped);
	cJSON_AddNumberToObject(o, "pinned", (double)s->pinned_bytes);
	cJSON_AddNumberToObject(o, "compress_s", (double)s->compress_ns / 1e9);
}

/* Check whether E is the side-band event. It has no samples, and its losses are part of "sideband". */
static bool is_sideband(const struct fr_view *v, size_t e)
{
	return e + 1 == fr_capture_n_events(v->capture);
}

static void add_sideband_losses(const struct fr_view *v, cJSON *o)
{
	uint64_t lost[_FR_LOSS_MAX] = {0};
	struct fr_counter counter;

	for (size_t c = 0; c < fr_capture_n_cpus(v->capture); c++) {
		fr_capture_counter(v->capture, fr_capture_n_events(v->capture) - 1, c, &counter);
		for (int i = 0; i < _FR_LOSS_MAX; i++)
			lost[i] += counter.lost[i];
	}
	add_losses(o, lost);
}

static void add_sideband(const struct fr_view *v, cJSON *status)
{
	cJSON *o = cJSON_AddObjectToObject(status, "sideband");
	const struct fr_tracker_stats *s = &v->sideband;

	cJSON_AddNumberToObject(o, "file_bytes", (double)s->file_bytes);
	cJSON_AddNumberToObject(o, "records", (double)s->records);
	cJSON_AddNumberToObject(o, "scans", (double)s->scans);
	cJSON_AddNumberToObject(o, "scan_s", (double)s->scan_ns / 1e9);
	cJSON_AddNumberToObject(o, "compactions", (double)s->compactions);
	cJSON_AddNumberToObject(o, "compactions_failed", (double)s->compactions_failed);
	cJSON_AddNumberToObject(o, "checkpoint_bytes", (double)s->checkpoint_bytes);
	cJSON_AddNumberToObject(o, "queue_drops", (double)s->queue_drops);
	cJSON_AddNumberToObject(o, "write_errors", (double)s->write_errors);
	if (s->write_errors || s->compactions_failed)
		cJSON_AddStringToObject(o, "last_error", strerror(s->last_errno));
	cJSON_AddNumberToObject(o, "processes", (double)s->processes);
	cJSON_AddNumberToObject(o, "threads", (double)s->threads);
	cJSON_AddNumberToObject(o, "maps", (double)s->maps);
	cJSON_AddNumberToObject(o, "model_bytes", (double)s->model_bytes);
	add_sideband_losses(v, o);
}

uint64_t fr_resident_bytes(void)
{
	unsigned long long size, resident;
	_cleanup_fclose_ FILE *f = fopen("/proc/self/statm", "re");

	if (!f || fscanf(f, "%llu %llu", &size, &resident) != 2)
		return 0;
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void add_self(const struct fr_view *v, cJSON *status)
{
	const struct fr_counter_snapshot *base = fr_rates_base(v->rates);
	const uint64_t cpu_ns = fr_now_ns(CLOCK_PROCESS_CPUTIME_ID);
	const double elapsed_ns = (double)(v->now_ns - base->time_ns);
	cJSON *o = cJSON_AddObjectToObject(status, "self");
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	cJSON_AddNumberToObject(o, "cpu_s", (double)cpu_ns / 1e9);
	cJSON_AddNumberToObject(o, "cpu_percent",
		v->now_ns > base->time_ns ? 100.0 * (double)(cpu_ns - base->cpu_ns) / elapsed_ns : 0);
	cJSON_AddNumberToObject(o, "rss_bytes", (double)fr_resident_bytes());
	cJSON_AddNumberToObject(o, "peak_rss_bytes", (double)ru.ru_maxrss * 1024);
	cJSON_AddNumberToObject(o, "rounds", (double)v->rounds.rounds);
	cJSON_AddNumberToObject(o, "longest_round_s", (double)v->rounds.longest_ns / 1e9);
	cJSON_AddNumberToObject(o, "longest_period_s", (double)v->rounds.longest_period_ns / 1e9);
}

static void add_frequency(const struct fr_view *v, cJSON *status)
{
	const struct fr_frequency *f = v->frequency;
	const struct fr_budget *b = &f->budget;
	cJSON *o = cJSON_AddObjectToObject(status, "frequency");

	cJSON_AddNumberToObject(o, "budget_percent", (double)b->ppm / FR_PPM_PER_PERCENT);
	cJSON_AddNumberToObject(o, "used_percent", (double)b->used_ppm / FR_PPM_PER_PERCENT);
	cJSON_AddNumberToObject(o, "full_hz", (double)f->full_hz);
	cJSON_AddNumberToObject(o, "hz", (double)fr_frequency_hz(f));
	cJSON_AddNumberToObject(o, "divisor", b->divisor);
	cJSON_AddNumberToObject(o, "steps_down", (double)f->down);
	cJSON_AddNumberToObject(o, "steps_up", (double)f->up);
	cJSON_AddBoolToObject(o, "exhausted", b->is_exhausted);
}

static void add_kept(cJSON *dumps, const struct fr_dumper_stats *s, uint64_t now_ns)
{
	cJSON *o;

	if (!s->kept)
		return;
	o = cJSON_AddObjectToObject(dumps, "kept");
	cJSON_AddNumberToObject(o, "bytes", (double)s->kept_bytes);
	cJSON_AddNumberToObject(o, "age_s", (double)(now_ns - s->kept_trigger_ns) / 1e9);
	cJSON_AddStringToObject(o, "why", s->kept_why);
}

static void add_writing(cJSON *dumps, const struct fr_dumper_stats *s, uint64_t now_ns)
{
	cJSON *o;

	if (!s->writing_since_ns)
		return;
	o = cJSON_AddObjectToObject(dumps, "writing");
	cJSON_AddStringToObject(o, "file", s->writing_name);
	/* The write may have begun after NOW_NS was read. */
	cJSON_AddNumberToObject(o, "seconds",
		now_ns > s->writing_since_ns ? (double)(now_ns - s->writing_since_ns) / 1e9 : 0);
}

static void add_dumps(const struct fr_view *v, cJSON *status)
{
	cJSON *o = cJSON_AddObjectToObject(status, "dumps");
	const struct fr_dumper_stats *s = &v->dumper;

	cJSON_AddNumberToObject(o, "done", (double)v->counters->dumps_done);
	cJSON_AddNumberToObject(o, "joined", (double)v->counters->dumps_joined);
	cJSON_AddNumberToObject(o, "failed", (double)v->counters->dumps_failed);
	cJSON_AddNumberToObject(o, "suppressed", (double)v->counters->dumps_suppressed);
	cJSON_AddNumberToObject(o, "canceled", (double)v->counters->dumps_canceled);
	cJSON_AddNumberToObject(o, "queued", s->queued);
	cJSON_AddNumberToObject(o, "waiting_post_trigger", s->waiting_post);
	cJSON_AddNumberToObject(o, "rescued", (double)v->counters->dumps_rescued);
	cJSON_AddNumberToObject(o, "given_up", (double)v->counters->dumps_given_up);
	cJSON_AddNumberToObject(o, "removed", (double)v->counters->dumps_removed);
	cJSON_AddNumberToObject(o, "not_durable", (double)v->counters->dumps_not_durable);
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
	char stamp[FR_STAMP_SIZE];
	cJSON *o;

	if (!v->handover->adopted)
		return;
	o = cJSON_AddObjectToObject(status, "adopted");
	fr_rfc3339_format(fr_clock_to_realtime(&v->started, s->first_started_ns), stamp);
	cJSON_AddStringToObject(o, "first_since", stamp);
	cJSON_AddNumberToObject(o, "restarts", (double)s->restarts);
	cJSON_AddNumberToObject(o, "gap_s", (double)(s->gap_to_ns - s->gap_from_ns) / 1e9);
	cJSON_AddNumberToObject(o, "gaps_s", (double)s->gap_ns / 1e9);
	cJSON_AddNumberToObject(o, "gap_from_ns", (double)s->gap_from_ns);
	cJSON_AddNumberToObject(o, "gap_to_ns", (double)s->gap_to_ns);
	cJSON_AddNumberToObject(o, "samples", (double)a->samples);
	cJSON_AddNumberToObject(o, "frames", (double)a->frames);
	cJSON_AddNumberToObject(o, "frames_left_out", (double)a->frames_left_out);
	cJSON_AddNumberToObject(o, "first_ns", (double)a->first_ns);
	cJSON_AddNumberToObject(o, "last_ns", (double)a->last_ns);
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
	cJSON_AddNumberToObject(o, "armed", (double)states[FR_TRIGGER_ARMED]);
	cJSON_AddNumberToObject(o, "arming", (double)states[FR_TRIGGER_ARMING]);
	cJSON_AddNumberToObject(o, "disabled", (double)states[FR_TRIGGER_DISABLED]);
	cJSON_AddNumberToObject(o, "failed", (double)states[FR_TRIGGER_FAILED]);
	cJSON_AddNumberToObject(o, "fired", (double)counts[FR_VERDICT_FIRE]);
	cJSON_AddNumberToObject(o, "joined", (double)counts[FR_VERDICT_COALESCE]);
	suppressed = cJSON_AddObjectToObject(o, "suppressed");
	for (int i = FR_VERDICT_DISABLED; i < FR_VERDICTS; i++)
		cJSON_AddNumberToObject(suppressed, fr_verdict_name(i), (double)counts[i]);
}

cJSON *fr_status(const struct fr_view *v)
{
	char stamp[FR_STAMP_SIZE];
	cJSON *status = cJSON_CreateObject(), *events, *losses;

	cJSON_AddStringToObject(status, "version", FR_VERSION);
	cJSON_AddNumberToObject(status, "pid", getpid());
	cJSON_AddStringToObject(status, "boot_id", v->boot_id);
	fr_rfc3339_format(v->started.realtime_ns, stamp);
	cJSON_AddStringToObject(status, "since", stamp);
	cJSON_AddNumberToObject(status, "uptime_s", (double)(v->now_ns - v->started.monotonic_ns) / 1e9);
	cJSON_AddStringToObject(status, "directory", v->directory);
	cJSON_AddStringToObject(status, "state", v->stopping ? "stopping" : "recording");
	add_ring(v, status);
	add_adopted(v, status);
	add_objects(v, status);
	events = cJSON_AddArrayToObject(status, "events");
	for (size_t e = 0; e < fr_capture_n_events(v->capture); e++)
		if (!is_sideband(v, e))
			cJSON_AddItemToArray(events, event_status(v, e));
	losses = cJSON_AddObjectToObject(status, "losses");
	for (int i = 0; i < _FR_LOSS_MAX; i++)
		cJSON_AddNumberToObject(losses, fr_loss_name(i), (double)v->lost[i]);
	add_sideband(v, status);
	add_self(v, status);
	add_frequency(v, status);
	add_dumps(v, status);
	add_triggers(v, status);
	fr_status_add_notices(v, status);
	return status;
}

cJSON *fr_status_of_start(const struct fr_clock_pair *begun, const char *doing)
{
	cJSON *reply = cJSON_CreateObject(), *status = cJSON_AddObjectToObject(reply, "status");
	char stamp[FR_STAMP_SIZE];

	cJSON_AddStringToObject(status, "version", FR_VERSION);
	cJSON_AddNumberToObject(status, "pid", getpid());
	cJSON_AddStringToObject(status, "state", "starting");
	cJSON_AddStringToObject(status, "doing", doing);
	fr_rfc3339_format(begun->realtime_ns, stamp);
	cJSON_AddStringToObject(status, "since", stamp);
	cJSON_AddNumberToObject(status, "uptime_s", (double)(fr_monotonic_ns() - begun->monotonic_ns) / 1e9);
	return reply;
}
