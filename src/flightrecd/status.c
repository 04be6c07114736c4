// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecd/daemon.h"
#include "base/cleanup.h"
#include "base/loss.h"
#include "flightrecd/listener.h"
#include "flightrecd/triggers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

static uint64_t own_cpu_ns(void)
{
	return fr_now_ns(CLOCK_PROCESS_CPUTIME_ID);
}

void fr_status_tick(struct fr_daemon *m)
{
	const size_t n_events = fr_capture_n_events(m->capture), n_cpus = fr_capture_n_cpus(m->capture);
	struct fr_counter_snapshot *s;
	struct fr_counter counter;

	if (m->rate[1].time_ns) { /* the newer becomes the older one, whose room is used again */
		const struct fr_counter_snapshot older = m->rate[0];

		m->rate[0] = m->rate[1];
		m->rate[1] = older;
	}
	s = &m->rate[1];
	if (!s->samples)
		s->samples = calloc(n_events * n_cpus, sizeof(*s->samples));
	if (!s->samples)
		return;
	for (size_t e = 0; e < n_events; e++)
		for (size_t c = 0; c < n_cpus; c++) {
			fr_capture_counter(m->capture, e, c, &counter);
			s->samples[e * n_cpus + c] = counter.samples;
		}
	s->cpu_ns = own_cpu_ns();
	s->time_ns = fr_monotonic_ns();
}

/* The base of rates: the older snapshot, or the start's where there is only one. */
static const struct fr_counter_snapshot *rate_base(const struct fr_daemon *m)
{
	return m->rate[0].time_ns ? &m->rate[0] : &m->rate[1];
}

static void add_losses(cJSON *object, const uint64_t lost[static _FR_LOSS_MAX])
{
	cJSON *o = cJSON_AddObjectToObject(object, "lost");

	for (int i = 0; i < _FR_LOSS_MAX; i++)
		if (lost[i])
			cJSON_AddNumberToObject(o, fr_loss_name(i), (double)lost[i]);
}

/* Losses that belong to no event: of the ring and of the side-band tracker. */
static void common_losses(struct fr_daemon *m, uint64_t ret[static _FR_LOSS_MAX])
{
	struct fr_history_stats history;
	struct fr_tracker_stats tracker;
	struct fr_dumper_stats dumper;

	fr_history_stats(m->history, &history);
	fr_tracker_stats(m->tracker, &tracker);
	if (m->dumper) { /* it is the one that asks, when it has just begun */
		fr_dumper_stats(m->dumper, &dumper);
		ret[FR_LOSS_FAILED_DUMP] += dumper.samples_given_up;
	}
	for (int i = 0; i < _FR_LOSS_MAX; i++)
		ret[i] += m->lost_before[i];
	ret[FR_LOSS_BACK_PRESSURE] += history.samples_dropped;
	ret[FR_LOSS_SIDEBAND] += history.sideband_dropped;
	ret[FR_LOSS_SIDEBAND_QUEUE] += tracker.queue_drops;
	ret[FR_LOSS_AUXILIARY] += tracker.write_errors;
}

void fr_status_losses(struct fr_daemon *m, uint64_t ret[static _FR_LOSS_MAX])
{
	struct fr_counter counter;

	memset(ret, 0, sizeof(*ret) * _FR_LOSS_MAX);
	for (size_t e = 0; e < fr_capture_n_events(m->capture); e++)
		for (size_t c = 0; c < fr_capture_n_cpus(m->capture); c++) {
			fr_capture_counter(m->capture, e, c, &counter);
			for (int i = 0; i < _FR_LOSS_MAX; i++)
				ret[i] += counter.lost[i];
		}
	common_losses(m, ret);
}

uint64_t fr_status_total_losses(struct fr_daemon *m)
{
	uint64_t lost[_FR_LOSS_MAX], sum = 0;

	fr_status_losses(m, lost);
	for (int i = 0; i < _FR_LOSS_MAX; i++)
		sum += lost[i];
	return sum;
}

/* NULL: there is none. */
static cJSON *add_loss(cJSON *array, enum fr_loss cause, const char *event, int cpu, uint64_t count)
{
	cJSON *o;

	if (!count)
		return NULL;
	o = cJSON_CreateObject();
	cJSON_AddStringToObject(o, "cause", fr_loss_name(cause));
	if (event) {
		cJSON_AddStringToObject(o, "event", event);
		cJSON_AddNumberToObject(o, "cpu", cpu);
	}
	cJSON_AddNumberToObject(o, "count", (double)count);
	cJSON_AddItemToArray(array, o);
	return o;
}

void fr_status_add_losses(void *daemon, cJSON *meta)
{
	struct fr_daemon *m = daemon;
	cJSON *array = cJSON_AddArrayToObject(meta, "losses");
	uint64_t common[_FR_LOSS_MAX] = {0};
	struct fr_counter counter;

	pthread_rwlock_rdlock(&m->parts);
	for (size_t e = 0; e < fr_capture_n_events(m->capture); e++)
		for (size_t c = 0; c < fr_capture_n_cpus(m->capture); c++) {
			fr_capture_counter(m->capture, e, c, &counter);
			for (int i = 0; i < _FR_LOSS_MAX; i++)
				add_loss(array, i, fr_capture_event_name(m->capture, e),
					fr_capture_cpu_number(m->capture, c), counter.lost[i]);
		}
	common_losses(m, common);
	pthread_rwlock_unlock(&m->parts);
	for (int i = 0; i < _FR_LOSS_MAX; i++) {
		cJSON *loss = add_loss(array, i, NULL, -1, common[i]);

		if (loss && i == FR_LOSS_RESTART)
			fr_handover_add_gap(m, loss);
	}
}

static cJSON *event_status(struct fr_daemon *m, size_t e, uint64_t now_ns)
{
	const struct fr_counter_snapshot *base = rate_base(m);
	const size_t n_cpus = fr_capture_n_cpus(m->capture),
		     n_of_event = e + 1 < fr_capture_n_events(m->capture) ? fr_capture_n_sampled_cpus(m->capture)
									  : n_cpus;
	const double seconds = (double)(now_ns - base->time_ns) / 1e9;
	uint64_t lost[_FR_LOSS_MAX] = {0}, samples = 0, before = 0;
	cJSON *o = cJSON_CreateObject(), *cpus;

	cJSON_AddStringToObject(o, "name", fr_capture_event_name(m->capture, e));
	cpus = cJSON_AddArrayToObject(o, "cpus");
	for (size_t c = 0; c < n_of_event; c++) {
		const uint64_t old = base->samples ? base->samples[e * n_cpus + c] : 0;
		struct fr_counter counter;
		cJSON *cpu = cJSON_CreateObject();

		fr_capture_counter(m->capture, e, c, &counter);
		cJSON_AddNumberToObject(cpu, "cpu", fr_capture_cpu_number(m->capture, c));
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

static void add_objects(struct fr_daemon *m, cJSON *status)
{
	struct fr_collector_stats s;
	cJSON *o;

	if (!m->collector)
		return;
	o = cJSON_AddObjectToObject(status, "objects");
	fr_collector_stats(m->collector, &s);
	cJSON_AddNumberToObject(o, "max", (double)m->config->cache_bytes);
	cJSON_AddNumberToObject(o, "files", (double)s.cache.objects);
	cJSON_AddNumberToObject(o, "bytes", (double)s.cache.bytes);
	cJSON_AddNumberToObject(o, "added", (double)s.cache.added);
	cJSON_AddNumberToObject(o, "evicted", (double)s.cache.evicted);
	cJSON_AddNumberToObject(o, "missed", (double)s.missed);
	cJSON_AddNumberToObject(o, "dropped_dumps", (double)s.dropped);
	if (s.last_errno)
		cJSON_AddStringToObject(o, "error", strerror(s.last_errno));
}

static void add_ring(struct fr_daemon *m, cJSON *status)
{
	cJSON *o = cJSON_AddObjectToObject(status, "ring");
	struct fr_history_stats s;

	fr_history_stats(m->history, &s);
	cJSON_AddNumberToObject(o, "size", (double)s.size_bytes);
	cJSON_AddNumberToObject(o, "used", (double)s.used_bytes);
	cJSON_AddNumberToObject(o, "raw", (double)s.raw_bytes);
	cJSON_AddNumberToObject(
		o, "compression", s.used_bytes ? (double)s.raw_bytes / (double)s.used_bytes : 0);
	cJSON_AddNumberToObject(o, "span_s", (double)(s.last_ns - s.first_ns) / 1e9);
	cJSON_AddNumberToObject(o, "first_ns", (double)s.first_ns);
	cJSON_AddNumberToObject(o, "last_ns", (double)s.last_ns);
	cJSON_AddNumberToObject(o, "frames", (double)s.frames);
	cJSON_AddNumberToObject(o, "samples", (double)s.samples);
	cJSON_AddNumberToObject(o, "sideband", (double)s.sideband);
	cJSON_AddNumberToObject(o, "evicted_samples", (double)s.samples_evicted);
	cJSON_AddNumberToObject(o, "dropped_samples", (double)s.samples_dropped);
	cJSON_AddNumberToObject(o, "pinned", (double)s.pinned_bytes);
	cJSON_AddNumberToObject(o, "compress_s", (double)s.compress_ns / 1e9);
}

/* The event that carries no samples; its losses are told with the side-band. */
static bool is_sideband(const struct fr_daemon *m, size_t e)
{
	return e + 1 == fr_capture_n_events(m->capture);
}

static void add_sideband_losses(struct fr_daemon *m, cJSON *o)
{
	uint64_t lost[_FR_LOSS_MAX] = {0};
	struct fr_counter counter;

	for (size_t c = 0; c < fr_capture_n_cpus(m->capture); c++) {
		fr_capture_counter(m->capture, fr_capture_n_events(m->capture) - 1, c, &counter);
		for (int i = 0; i < _FR_LOSS_MAX; i++)
			lost[i] += counter.lost[i];
	}
	add_losses(o, lost);
}

static void add_sideband(struct fr_daemon *m, cJSON *status)
{
	cJSON *o = cJSON_AddObjectToObject(status, "sideband");
	struct fr_tracker_stats s;

	fr_tracker_stats(m->tracker, &s);
	cJSON_AddNumberToObject(o, "file_bytes", (double)s.file_bytes);
	cJSON_AddNumberToObject(o, "records", (double)s.records);
	cJSON_AddNumberToObject(o, "scans", (double)s.scans);
	cJSON_AddNumberToObject(o, "scan_s", (double)s.scan_ns / 1e9);
	cJSON_AddNumberToObject(o, "compactions", (double)s.compactions);
	cJSON_AddNumberToObject(o, "compactions_failed", (double)s.compactions_failed);
	cJSON_AddNumberToObject(o, "checkpoint_bytes", (double)s.checkpoint_bytes);
	cJSON_AddNumberToObject(o, "queue_drops", (double)s.queue_drops);
	cJSON_AddNumberToObject(o, "write_errors", (double)s.write_errors);
	if (s.write_errors || s.compactions_failed)
		cJSON_AddStringToObject(o, "last_error", strerror(s.last_errno));
	cJSON_AddNumberToObject(o, "processes", (double)s.processes);
	cJSON_AddNumberToObject(o, "threads", (double)s.threads);
	cJSON_AddNumberToObject(o, "maps", (double)s.maps);
	cJSON_AddNumberToObject(o, "model_bytes", (double)s.model_bytes);
	add_sideband_losses(m, o);
}

uint64_t fr_status_resident_bytes(void)
{
	unsigned long long size, resident;
	_cleanup_fclose_ FILE *f = fopen("/proc/self/statm", "re");

	if (!f || fscanf(f, "%llu %llu", &size, &resident) != 2)
		return 0;
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void add_self(struct fr_daemon *m, cJSON *status, uint64_t now_ns)
{
	const struct fr_counter_snapshot *base = rate_base(m);
	const uint64_t cpu_ns = own_cpu_ns();
	cJSON *o = cJSON_AddObjectToObject(status, "self");
	struct fr_recorder_rounds rounds;
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	fr_recorder_rounds(m->recorder, &rounds);
	cJSON_AddNumberToObject(o, "cpu_s", (double)cpu_ns / 1e9);
	cJSON_AddNumberToObject(o, "cpu_percent",
		now_ns > base->time_ns
			? 100.0 * (double)(cpu_ns - base->cpu_ns) / (double)(now_ns - base->time_ns)
			: 0);
	cJSON_AddNumberToObject(o, "rss_bytes", (double)fr_status_resident_bytes());
	cJSON_AddNumberToObject(o, "peak_rss_bytes", (double)ru.ru_maxrss * 1024);
	cJSON_AddNumberToObject(o, "rounds", (double)rounds.rounds);
	cJSON_AddNumberToObject(o, "longest_round_s", (double)rounds.longest_ns / 1e9);
	cJSON_AddNumberToObject(o, "longest_period_s", (double)rounds.longest_period_ns / 1e9);
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
	/* NOW_NS was taken first. */
	cJSON_AddNumberToObject(o, "seconds",
		now_ns > s->writing_since_ns ? (double)(now_ns - s->writing_since_ns) / 1e9 : 0);
}

static void add_dumps(struct fr_daemon *m, cJSON *status, uint64_t now_ns)
{
	cJSON *o = cJSON_AddObjectToObject(status, "dumps");
	struct fr_dumper_stats s;

	fr_dumper_stats(m->dumper, &s);
	cJSON_AddNumberToObject(o, "done", (double)m->dumps_done);
	cJSON_AddNumberToObject(o, "joined", (double)m->dumps_joined);
	cJSON_AddNumberToObject(o, "failed", (double)m->dumps_failed);
	cJSON_AddNumberToObject(o, "suppressed", (double)m->dumps_suppressed);
	cJSON_AddNumberToObject(o, "canceled", (double)m->dumps_canceled);
	cJSON_AddNumberToObject(o, "queued", s.queued);
	cJSON_AddNumberToObject(o, "waiting_post_trigger", s.waiting_post);
	cJSON_AddNumberToObject(o, "rescued", (double)m->dumps_rescued);
	cJSON_AddNumberToObject(o, "given_up", (double)m->dumps_given_up);
	cJSON_AddNumberToObject(o, "removed", (double)m->dumps_removed);
	cJSON_AddNumberToObject(o, "not_durable", (double)m->dumps_not_durable);
	cJSON_AddItemToObject(o, "waiting", fr_daemon_waiting(m));
	add_writing(o, &s, now_ns);
	add_kept(o, &s, now_ns);
	if (m->last_dump)
		cJSON_AddItemToObject(o, "last", cJSON_Duplicate(m->last_dump, true));
	if (m->writer[0])
		cJSON_AddStringToObject(status, "writer", m->writer);
}

/* "config_error", and as a notice. */
static void add_refused(const struct fr_daemon *m, cJSON *status, cJSON *notices)
{
	char text[sizeof(m->refused.what) + sizeof(m->refused.hint) + 160];
	cJSON *o;

	if (!m->refused.code)
		return;
	o = cJSON_AddObjectToObject(status, "config_error");
	cJSON_AddStringToObject(o, "what", m->refused.what);
	cJSON_AddStringToObject(o, "hint", m->refused.hint);
	snprintf(text, sizeof(text),
		"the configuration cannot be used, that of before is in force: %s%s%s; mend it, then "
		"`flightrecctl reload`",
		m->refused.what, m->refused.hint[0] ? ": " : "", m->refused.hint);
	cJSON_AddItemToArray(notices, cJSON_CreateString(text));
}

static void add_notices(struct fr_daemon *m, cJSON *status)
{
	cJSON *a = cJSON_AddArrayToObject(status, "notices");
	struct fr_tracker_stats tracker;

	add_refused(m, status, a);
	if (m->ring_kept.code) {
		char text[sizeof(m->ring_kept.what) + sizeof(m->ring_kept.hint) + 64];

		snprintf(text, sizeof(text), "RingSize= is not what was asked for: %s%s%s", m->ring_kept.what,
			m->ring_kept.hint[0] ? ": " : "", m->ring_kept.hint);
		cJSON_AddItemToArray(a, cJSON_CreateString(text));
	}

	fr_tracker_stats(m->tracker, &tracker);
	if (tracker.is_late)
		cJSON_AddItemToArray(a,
			cJSON_CreateString("the processes of this machine are still being read: some have no "
					   "names yet"));
	if (tracker.kernel_is_hidden)
		cJSON_AddItemToArray(
			a, cJSON_CreateString(
				   "the kernel's addresses are hidden, its functions will have no names: "
				   "CAP_SYSLOG, or kernel.kptr_restrict=0"));
	if (tracker.processes_are_hidden)
		cJSON_AddItemToArray(a,
			cJSON_CreateString(
				"/proc hides processes (hidepid=): those that ran before the recorder have "
				"no names: CAP_SYS_PTRACE, or the group of its option gid="));
	if (tracker.maps_hidden) {
		char text[160];

		snprintf(text, sizeof(text),
			"the maps of %llu processes cannot be read, their functions have no names: "
			"CAP_SYS_PTRACE",
			(unsigned long long)tracker.maps_hidden);
		cJSON_AddItemToArray(a, cJSON_CreateString(text));
	}
	if (tracker.compaction_errno) {
		char text[160];

		snprintf(text, sizeof(text), "perf.data.auxiliary grows, as it cannot be compacted: %s",
			strerror(tracker.compaction_errno));
		cJSON_AddItemToArray(a, cJSON_CreateString(text));
	}
	if (m->handover.refused[0]) {
		char text[sizeof(m->handover.refused) + 64];

		snprintf(text, sizeof(text), "the history of the instance before is lost: %s",
			m->handover.refused);
		cJSON_AddItemToArray(a, cJSON_CreateString(text));
	}
	if (m->no_collector.code) {
		char text[sizeof(m->no_collector.what) + sizeof(m->no_collector.hint) + 64];

		snprintf(text, sizeof(text), "no copies of object files are kept: %s (%s)",
			m->no_collector.what, m->no_collector.hint);
		cJSON_AddItemToArray(a, cJSON_CreateString(text));
	}
	if (m->disturbed_pid) {
		char text[160];

		snprintf(text, sizeof(text),
			"build-ids are read from files: the kernel's would have disturbed pid %d "
			"(KernelBuildIDs=)",
			(int)m->disturbed_pid);
		cJSON_AddItemToArray(a, cJSON_CreateString(text));
	}
	if (m->events.notice)
		cJSON_AddItemToArray(a, cJSON_CreateString(m->events.notice));
	if (fr_listener_http_notice(m))
		cJSON_AddItemToArray(a, cJSON_CreateString(fr_listener_http_notice(m)));
	if (m->server && fr_server_notice(m->server))
		cJSON_AddItemToArray(a, cJSON_CreateString(fr_server_notice(m->server)));
}

cJSON *fr_status(struct fr_daemon *m)
{
	const uint64_t now_ns = fr_monotonic_ns();
	uint64_t lost[_FR_LOSS_MAX];
	char stamp[FR_STAMP_SIZE];
	cJSON *status = cJSON_CreateObject(), *events, *losses;

	cJSON_AddStringToObject(status, "version", FR_VERSION);
	cJSON_AddNumberToObject(status, "pid", getpid());
	cJSON_AddStringToObject(status, "boot_id", m->boot_id);
	fr_rfc3339_format(m->started.realtime_ns, stamp);
	cJSON_AddStringToObject(status, "since", stamp);
	cJSON_AddNumberToObject(status, "uptime_s", (double)(now_ns - m->started.monotonic_ns) / 1e9);
	cJSON_AddStringToObject(status, "directory", m->config->directory);
	cJSON_AddStringToObject(status, "state", m->stop == FR_STOP_NO ? "recording" : "stopping");
	add_ring(m, status);
	fr_handover_add_status(m, status);
	add_objects(m, status);
	events = cJSON_AddArrayToObject(status, "events");
	for (size_t e = 0; e < fr_capture_n_events(m->capture); e++)
		if (!is_sideband(m, e))
			cJSON_AddItemToArray(events, event_status(m, e, now_ns));
	fr_status_losses(m, lost);
	losses = cJSON_AddObjectToObject(status, "losses");
	for (int i = 0; i < _FR_LOSS_MAX; i++)
		cJSON_AddNumberToObject(losses, fr_loss_name(i), (double)lost[i]);
	add_sideband(m, status);
	add_self(m, status, now_ns);
	fr_frequency_status(m, status);
	add_dumps(m, status, now_ns);
	fr_status_add_triggers(m, status);
	add_notices(m, status);
	return status;
}
