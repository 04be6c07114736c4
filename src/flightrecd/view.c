// SPDX-License-Identifier: GPL-2.0-or-later
/* Collects the numbers of all parts for `status` and the metrics. src/reporting/ makes text of them. */
#include "flightrecd/view.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/units.h"
#include "flightrecd/stages.h"
#include "reporting/dump_report.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <systemd/sd-daemon.h>

void fr_daemon_view(struct fr_daemon *m, struct fr_view *ret)
{
	const struct fr_loss_counters losses = fr_daemon_losses(m);
	struct fr_unwinder *u = atomic_load(&m->unwinder);

	fr_thread_assert(FR_THREAD_MAIN);
	*ret = (struct fr_view){
		.now_ns = fr_monotonic_ns(),
		.started = m->started,
		.boot_id = m->boot_id,
		.directory = m->config->directory,
		.ring_memory = m->config->ring_memory,
		.ring_survives = m->memory && fr_crashmem_survives_crash(m->memory),
		.ring_period_ns = fr_daemon_period_ms(m) * FR_NSEC_PER_MSEC,
		.stopping = m->stop != FR_STOP_NO,
		.capture = m->recording.capture,
		.rates = &m->rates,
		.frequency = &m->frequency,
		.switching = &m->switching,
		.counters = &m->counters,
		.handover = &m->handover,
		.triggers = m->triggers,
		.has_objects = m->collector != NULL,
		.objects_max_bytes = m->config->cache_bytes,
		.threads = {{"main", getpid()}, {"recorder", fr_recorder_tid(m->recorder)},
			{"tracker", fr_tracker_tid(m->tracker)}, {"dumper", fr_dumper_tid(m->dumper)},
			{"collector", m->collector ? fr_collector_tid(m->collector) : 0},
			{"unwinder", u ? fr_unwinder_tid(u) : 0}},
		.writer = m->recent_dumps.writer,
		.last_dump = m->recent_dumps.last,
		.refused = &m->refused,
		.ring_kept = &m->ring_kept,
		.no_memory = &m->no_memory,
		.no_collector = &m->no_collector,
		.notices = {m->recording.events.notice, fr_http_notice(m->http),
			m->server ? fr_server_notice(m->server) : NULL},
	};
	fr_losses_sum(&losses, ret->lost);
	fr_rings_stats(&m->rings, &ret->ring);
	if (m->rings.sideband)
		fr_history_stats(m->rings.sideband, &ret->sideband_ring);
	ret->n_rings = m->rings.n;
	for (unsigned i = 0; i < m->rings.n; i++) {
		ret->rings[i].name = m->rings.name[i];
		fr_history_stats(m->rings.ring[i], &ret->rings[i].stats);
	}
	fr_tracker_stats(m->tracker, &ret->sideband);
	if (m->tail)
		fr_tail_stats(m->tail, &ret->tail);
	fr_dumper_stats(m->dumper, &ret->dumper);
	if (m->collector)
		fr_collector_stats(m->collector, &ret->objects);
	ret->unwinds = u != NULL;
	if (u)
		fr_unwinder_stats(u, &ret->unwind);
	fr_lock(&m->parts_lock);
	ret->no_unwinder = m->no_unwinder;
	fr_unlock(&m->parts_lock);
}

cJSON *fr_daemon_status(struct fr_daemon *m)
{
	struct fr_view view;

	fr_daemon_view(m, &view);
	view.waiting = fr_waiting_dumps_json(m->dumper);
	fr_recorder_rounds(m->recorder, &view.rounds);
	return fr_status(&view);
}

void fr_daemon_notify_status(struct fr_daemon *m)
{
	struct fr_view view;

	fr_daemon_view(m, &view);
	fr_notify_status(&view);
}

static void log_new_losses(struct fr_daemon *m)
{
	const struct fr_loss_counters losses = fr_daemon_losses(m);
	const uint64_t total = fr_losses_total(&losses);

	if (total > m->losses_reported)
		fr_log_struct(LOG_WARNING, FR_MSG_LOSS, NULL, 0,
			"%llu records or intervals were lost since the last report; `flightrecctl status` "
			"has the causes",
			(unsigned long long)(total - m->losses_reported));
	m->losses_reported = total;
}

static void log_compaction(struct fr_daemon *m)
{
	struct fr_tracker_stats s;

	fr_tracker_stats(m->tracker, &s);
	if (s.compaction_errno && s.compaction_errno != m->compaction_reported)
		fr_log(LOG_WARNING,
			"perf.data.auxiliary grows, because it cannot be compacted: %s; flightrecd tries "
			"again",
			strerror(s.compaction_errno));
	m->compaction_reported = s.compaction_errno;
}

void fr_daemon_log_news(struct fr_daemon *m)
{
	log_new_losses(m);
	log_compaction(m);
}
