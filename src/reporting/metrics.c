// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The names follow the rules of Prometheus: a prefix, base units, _total for counters. While the recorder
 * runs, the samples of a family always have the same labels. Only flightrec_samples is an exception: its
 * label `cpu` is left out if there would be more than SERIES_MAX series.
 */
#include "base/cleanup.h"
#include "base/loss.h"
#include "metrics/openmetrics.h"
#include "reporting/view.h"
#include "unwind/results.h"

#include <errno.h>
#include <string.h>

/* The largest number of series of the family flightrec_samples. The family normally has one series for each
   event and CPU. If this number would be above the limit, the family has only one series for each event. The
   reasons for the limit: the text has to fit into a reply, and a collector needs memory for each series. */
#define SERIES_MAX 10000

#define NO_LABELS ((const struct fr_metric_label[FR_METRIC_LABELS_MAX]){{0}})
#define LABEL(n, v) ((const struct fr_metric_label[FR_METRIC_LABELS_MAX]){{n, v}})
#define LABELS(n, v, n2, v2) ((const struct fr_metric_label[FR_METRIC_LABELS_MAX]){{n, v}, {n2, v2}})

/* Returns whether an earlier event has the same name as EVENT. If so, the samples of both events are in one
   series. */
static bool is_repeated(const struct fr_capture *c, size_t event)
{
	for (size_t e = 0; e < event; e++)
		if (!strcmp(fr_capture_event_name(c, e), fr_capture_event_name(c, event)))
			return true;
	return false;
}

static uint64_t samples_of(const struct fr_capture *c, const char *name, size_t cpu)
{
	uint64_t sum = 0;

	for (size_t e = 0; e + 1 < fr_capture_n_events(c); e++) {
		struct fr_counter n;

		if (strcmp(fr_capture_event_name(c, e), name))
			continue;
		fr_capture_counter(c, e, cpu, &n);
		sum += n.samples;
	}
	return sum;
}

static void add_event(struct fr_openmetrics *o, const struct fr_capture *c, const char *name, bool by_cpu)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < fr_capture_n_cpus(c); i++) {
		const uint64_t n = samples_of(c, name, i);
		char cpu[16];

		sum += n;
		snprintf(cpu, sizeof(cpu), "%d", fr_capture_cpu_number(c, i));
		if (by_cpu)
			fr_openmetrics_u64(o, LABELS("event", name, "cpu", cpu), n);
	}
	if (!by_cpu)
		fr_openmetrics_u64(o, LABEL("event", name), sum);
}

static void add_events(struct fr_openmetrics *o, const struct fr_capture *c)
{
	const bool by_cpu = fr_capture_n_events(c) * fr_capture_n_cpus(c) <= SERIES_MAX;

	fr_openmetrics_family(
		o, "flightrec_samples", FR_METRIC_COUNTER, NULL, "Samples taken from the kernel's rings.");
	/* The last event is the side-band event, which has no samples. */
	for (size_t e = 0; e + 1 < fr_capture_n_events(c); e++)
		if (!is_repeated(c, e))
			add_event(o, c, fr_capture_event_name(c, e), by_cpu);
}

static void add_losses(struct fr_openmetrics *o, const struct fr_view *v)
{
	fr_openmetrics_family(o, "flightrec_lost", FR_METRIC_COUNTER, NULL,
		"Losses, by cause. The unit is records. For the cause throttled, it is how often the kernel "
		"throttled an event. For causes like restart, it is how often this happened.");
	for (int i = 0; i < _FR_LOSS_MAX; i++)
		fr_openmetrics_u64(o, LABEL("cause", fr_loss_name(i)), v->lost[i]);
}

static void add_ring(struct fr_openmetrics *o, const struct fr_view *v)
{
	const struct fr_history_stats *s = &v->ring;

	fr_openmetrics_add_gauge(o, "flightrec_ring_bytes", "bytes", "Size of the ring.", s->size_bytes);
	fr_openmetrics_add_gauge(o, "flightrec_ring_survives_crash", "",
		"1 if the ring survives a crash of the machine.", v->ring_survives);
	fr_openmetrics_add_gauge(
		o, "flightrec_ring_used_bytes", "bytes", "Bytes of the ring in use.", s->used_bytes);
	fr_openmetrics_add_gauge(o, "flightrec_ring_raw_bytes", "bytes",
		"Uncompressed size of the records in the ring.", s->raw_bytes);
	fr_openmetrics_add_gauge(o, "flightrec_ring_pinned_bytes", "bytes",
		"Bytes of the ring that are pinned by dumps.", s->pinned_bytes);
	fr_openmetrics_add_seconds(o, "flightrec_ring_span_seconds", FR_METRIC_GAUGE,
		"Time from the oldest to the newest sample in the ring.", s->last_ns - s->first_ns);
	fr_openmetrics_add_gauge(o, "flightrec_ring_samples", NULL, "Samples in the ring.", s->samples);
	fr_openmetrics_add_counter(o, "flightrec_ring_evicted_samples",
		"Samples that were evicted from the ring to make room for newer samples.",
		s->samples_evicted);
	fr_openmetrics_add_seconds(o, "flightrec_ring_compression_seconds", FR_METRIC_COUNTER,
		"Time spent compressing the ring.", s->compress_ns);
}

/* One series for each ring. The families of add_ring() have the sums. */
static void add_rings(struct fr_openmetrics *o, const struct fr_view *v)
{
	static const struct {
		const char *family, *unit, *help;
		enum fr_metric_type type;
		size_t offset;
	} all[] = {
		{"flightrec_part_bytes", "bytes", "Size of each ring.", FR_METRIC_GAUGE,
			offsetof(struct fr_history_stats, size_bytes)},
		{"flightrec_part_used_bytes", "bytes", "Bytes of each ring in use.", FR_METRIC_GAUGE,
			offsetof(struct fr_history_stats, used_bytes)},
		{"flightrec_part_samples", NULL, "Samples in each ring.", FR_METRIC_GAUGE,
			offsetof(struct fr_history_stats, samples)},
		{"flightrec_part_evicted_samples", NULL,
			"Samples that were evicted from each ring to make room for newer samples.",
			FR_METRIC_COUNTER, offsetof(struct fr_history_stats, samples_evicted)},
	};

	if (v->n_rings < 2)
		return;
	for (size_t k = 0; k < FR_ARRAY_SIZE(all); k++) {
		fr_openmetrics_family(o, all[k].family, all[k].type, all[k].unit, all[k].help);
		for (unsigned i = 0; i < v->n_rings; i++)
			fr_openmetrics_u64(o, LABEL("ring", v->rings[i].name),
				*(const uint64_t *)((const char *)&v->rings[i].stats + all[k].offset));
	}
	fr_openmetrics_family(o, "flightrec_part_span_seconds", FR_METRIC_GAUGE, "seconds",
		"Time from the oldest to the newest sample in each ring.");
	for (unsigned i = 0; i < v->n_rings; i++)
		fr_openmetrics_seconds(o, LABEL("ring", v->rings[i].name),
			v->rings[i].stats.last_ns - v->rings[i].stats.first_ns);
}

static void add_sideband(struct fr_openmetrics *o, const struct fr_view *v)
{
	const struct fr_tracker_stats *s = &v->sideband;

	fr_openmetrics_add_gauge(
		o, "flightrec_auxiliary_bytes", "bytes", "Size of perf.data.auxiliary.", s->file_bytes);
	fr_openmetrics_add_counter(o, "flightrec_sideband_records", "Side-band records written.", s->records);
	fr_openmetrics_add_counter(o, "flightrec_scans", "Scans of /proc.", s->scans);
	fr_openmetrics_add_gauge(
		o, "flightrec_processes", NULL, "Processes that the recorder knows.", s->processes);
	fr_openmetrics_add_gauge(
		o, "flightrec_threads", NULL, "Threads that the recorder knows.", s->threads);
	fr_openmetrics_add_gauge(o, "flightrec_maps", NULL, "Memory maps that the recorder knows.", s->maps);
	fr_openmetrics_add_gauge(
		o, "flightrec_model_bytes", "bytes", "Memory of the process models.", s->model_bytes);
}

static void add_aux(struct fr_openmetrics *o, const struct fr_view *v)
{
	struct fr_aux_stats s;

	fr_capture_aux_stats(v->capture, &s);
	fr_openmetrics_add_gauge(
		o, "flightrec_aux_area_bytes", "bytes", "Size of all AUX areas.", s.area_bytes);
	fr_openmetrics_add_counter(
		o, "flightrec_aux_copied_bytes", "AUX data that dumps have copied.", s.copied_bytes);
	fr_openmetrics_add_counter(
		o, "flightrec_aux_pauses", "How often a dump stopped an AUX area to copy it.", s.pauses);
	fr_openmetrics_add_seconds(o, "flightrec_aux_gap_seconds", FR_METRIC_COUNTER,
		"Time for which these pauses stopped AUX areas.", s.gap_ns);
	fr_openmetrics_add_seconds(o, "flightrec_aux_longest_gap_seconds", FR_METRIC_GAUGE,
		"The longest of these pauses.", s.longest_gap_ns);
}

static void add_unwind(struct fr_openmetrics *o, const struct fr_view *v)
{
	const struct fr_unwinder_stats *s = &v->unwind;

	fr_openmetrics_family(o, "flightrec_unwound_stacks", FR_METRIC_COUNTER, NULL,
		"User stacks that were unwound by tables, by result.");
	for (int i = 0; i < _FR_UNWIND_RESULTS; i++)
		fr_openmetrics_u64(o, LABEL("result", fr_unwind_result_name(i)), s->walks[i]);
	fr_openmetrics_add_gauge(o, "flightrec_unwind_bytes", "bytes",
		"Memory of the tables and maps for unwinding.", s->memory_bytes);
	fr_openmetrics_add_gauge(
		o, "flightrec_unwind_tables", NULL, "Files that have a table for unwinding.", s->tables);
	fr_openmetrics_add_counter(
		o, "flightrec_unwind_tables_made", "Tables that were made.", s->tables_made);
	fr_openmetrics_add_counter(o, "flightrec_unwind_tables_evicted",
		"Tables that were removed to make room, because they were not needed for the longest time.",
		s->tables_evicted);
	fr_openmetrics_add_counter(o, "flightrec_unwind_tables_held_back",
		"How often tables were wanted, but the CPU time for making tables was used up.",
		s->tables_held_back);
}

static void add_dumps(struct fr_openmetrics *o, const struct fr_view *v)
{
	const struct {
		const char *outcome;
		uint64_t n;
	} outcomes[] = {
		{"done", v->counters->dumps_done},
		{"joined", v->counters->dumps_joined},
		{"failed", v->counters->dumps_failed},
		{"suppressed", v->counters->dumps_suppressed},
		{"canceled", v->counters->dumps_canceled},
		{"rescued", v->counters->dumps_rescued},
		{"given-up", v->counters->dumps_given_up},
	};
	const struct fr_dumper_stats *s = &v->dumper;

	fr_openmetrics_family(o, "flightrec_dumps", FR_METRIC_COUNTER, NULL, "Dumps by outcome.");
	for (size_t i = 0; i < FR_ARRAY_SIZE(outcomes); i++)
		fr_openmetrics_u64(o, LABEL("outcome", outcomes[i].outcome), outcomes[i].n);
	fr_openmetrics_add_counter(
		o, "flightrec_dumps_removed", "Dumps that were removed.", v->counters->dumps_removed);
	fr_openmetrics_add_counter(o, "flightrec_dumps_not_durable",
		"Dumps whose directory could not be synced.", v->counters->dumps_not_durable);
	fr_openmetrics_add_gauge(
		o, "flightrec_dumps_held", NULL, "Dumps that are kept until they are uploaded.", s->held);
	fr_openmetrics_add_gauge(o, "flightrec_dumps_held_bytes", "bytes",
		"Size of the dumps that are kept until they are uploaded.", s->held_bytes);
	fr_openmetrics_add_counter(o, "flightrec_dumps_held_removed",
		"Dumps that were removed before they were uploaded, because the disk had no room.",
		s->held_removed);
	fr_openmetrics_add_counter(o, "flightrec_holds_expired",
		"Dumps that nobody has uploaded within a day.", s->holds_expired);
	fr_openmetrics_add_gauge(
		o, "flightrec_dumps_queued", NULL, "Dumps that wait or are being written.", s->queued);
	fr_openmetrics_add_gauge(o, "flightrec_dumps_kept_bytes", "bytes",
		"Bytes of the ring that are pinned by a kept dump.", s->kept ? s->kept_bytes : 0);
}

static void add_suppressed(struct fr_openmetrics *o, const struct fr_trigger_info *i)
{
	for (int v = FR_VERDICT_DISABLED; v < FR_VERDICTS; v++)
		fr_openmetrics_u64(o, LABELS("trigger", i->name, "reason", fr_verdict_name(v)), i->counts[v]);
}

static void add_triggers(struct fr_openmetrics *o, const struct fr_view *v)
{
	enum {
		COUNT,	    /* how often the policy has returned the verdict `value` for the trigger */
		SUPPRESSED, /* how often the trigger made no dump, for each reason; `value` is not used */
		STATE,	    /* 1 if the trigger is in the state `value`, else 0 */
	};
	static const struct {
		const char *name, *help;
		int kind, value; /* `kind`: COUNT, SUPPRESSED or STATE */
	} families[] = {
		{"flightrec_trigger_fired", "Anomalies that made a dump.", COUNT, FR_VERDICT_FIRE},
		{"flightrec_trigger_joined", "Anomalies that joined a dump that was waiting.", COUNT,
			FR_VERDICT_COALESCE},
		{"flightrec_trigger_suppressed", "Anomalies that made no dump, by reason.", SUPPRESSED, 0},
		{"flightrec_trigger_armed", "1 if a trigger is armed, else 0.", STATE, FR_TRIGGER_ARMED},
		{"flightrec_trigger_failed", "1 if a trigger could not be armed, else 0.", STATE,
			FR_TRIGGER_FAILED},
		{"flightrec_trigger_arming", "1 if a trigger is still being armed, else 0.", STATE,
			FR_TRIGGER_ARMING},
	};
	const size_t n = v->triggers ? fr_triggers_count(v->triggers) : 0;

	for (size_t f = 0; f < FR_ARRAY_SIZE(families); f++) {
		const int kind = families[f].kind, value = families[f].value;

		fr_openmetrics_family(o, families[f].name,
			kind == STATE ? FR_METRIC_GAUGE : FR_METRIC_COUNTER, NULL, families[f].help);
		for (size_t i = 0; i < n; i++) {
			struct fr_trigger_info info;

			fr_triggers_get_info(v->triggers, i, &info);
			if (kind == SUPPRESSED)
				add_suppressed(o, &info);
			else
				fr_openmetrics_u64(o, LABEL("trigger", info.name),
					kind == STATE ? (int)info.state == value : info.counts[value]);
		}
	}
}

/* Returns the clock of the kernel for the CPU time of the thread TID of this process. This is the clock that
   pthread_getcpuclockid() returns for this thread. */
static clockid_t cpu_clock_of(pid_t tid)
{
	return (clockid_t)(~(unsigned)tid << 3 | 6);
}

static void add_self(struct fr_openmetrics *o, const struct fr_view *v)
{
	fr_openmetrics_family(o, "flightrec_cpu_seconds", FR_METRIC_COUNTER, "seconds",
		"CPU time of the recorder's threads.");
	for (size_t i = 0; i < FR_VIEW_THREADS; i++)
		if (v->threads[i].tid)
			fr_openmetrics_seconds(o, LABEL("thread", v->threads[i].name),
				fr_now_ns(cpu_clock_of(v->threads[i].tid)));
	fr_openmetrics_add_seconds(o, "flightrec_process_cpu_seconds", FR_METRIC_COUNTER,
		"CPU time of the recorder, including the kernel threads that do its writes.",
		fr_now_ns(CLOCK_PROCESS_CPUTIME_ID));
	fr_openmetrics_add_gauge(o, "flightrec_resident_bytes", "bytes", "Resident memory of the recorder.",
		fr_resident_bytes());
}

static void add_frequency(struct fr_openmetrics *o, const struct fr_view *v)
{
	const struct fr_frequency *f = v->frequency;

	fr_openmetrics_add_gauge(o, "flightrec_frequency_divisor", NULL,
		"Number by which the configured sampling frequencies are divided now, to keep CPUBudget=.",
		f->budget.divisor);
	fr_openmetrics_family(o, "flightrec_frequency_steps", FR_METRIC_COUNTER, NULL,
		"How often the sampling frequencies were lowered or raised, to keep CPUBudget=.");
	fr_openmetrics_u64(o, LABEL("direction", "down"), f->down);
	fr_openmetrics_u64(o, LABEL("direction", "up"), f->up);
	fr_openmetrics_add_gauge(o, "flightrec_over_budget", NULL,
		"1 if the recorder takes more than CPUBudget= and no sampling frequency can be lowered any "
		"more, else 0.",
		f->budget.is_exhausted);
}

static void add_switches(struct fr_openmetrics *o, const struct fr_view *v)
{
	fr_openmetrics_family(o, "flightrec_event_enabled", FR_METRIC_GAUGE, NULL,
		"1 if the event is recorded, 0 if it is switched off.");
	for (size_t e = 0; e + 1 < fr_capture_n_events(v->capture); e++)
		if (!is_repeated(v->capture, e))
			fr_openmetrics_u64(o, LABEL("event", fr_capture_event_name(v->capture, e)),
				!fr_switches_is_off(v->switching->switches, fr_capture_slot(v->capture, e)));
	fr_openmetrics_add_gauge(o, "flightrec_events_switched", NULL,
		"Events that are switched, so that they are not as configured.", v->switching->n_entries);
	fr_openmetrics_add_counter(o, "flightrec_event_switches",
		"How often an event was switched, for any reason.", v->switching->count);
	fr_openmetrics_add_counter(o, "flightrec_event_switches_unexplained",
		"Switches by BPF programs whose records were lost, so that it is not known which program "
		"it was.",
		v->switching->lost);
}

int fr_metrics(const struct fr_view *v, struct fr_buf *ret)
{
	struct fr_openmetrics o = {0};
	int r;

	fr_openmetrics_family(&o, "flightrec_build", FR_METRIC_INFO, NULL, "The recorder's version.");
	fr_openmetrics_u64(&o, LABEL("version", FR_VERSION), 1);
	fr_openmetrics_add_seconds(&o, "flightrec_start_time_seconds", FR_METRIC_GAUGE,
		"Time when this recorder was started, in seconds since the epoch.", v->started.realtime_ns);
	add_events(&o, v->capture);
	add_losses(&o, v);
	add_ring(&o, v);
	add_rings(&o, v);
	add_sideband(&o, v);
	add_unwind(&o, v);
	add_aux(&o, v);
	add_dumps(&o, v);
	add_triggers(&o, v);
	add_self(&o, v);
	add_frequency(&o, v);
	add_switches(&o, v);
	r = fr_openmetrics_end(&o);
	if (r < 0)
		fr_buf_deinit(&o.text);
	else
		*ret = o.text;
	return r;
}
