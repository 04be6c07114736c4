// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecd/stages.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/worker.h"
#include "config/saved.h"
#include "dumper/destination.h"
#include "flightrecd/ring_memory.h"
#include "flightrecd/rings.h"
#include "flightrecd/stacks.h"
#include "flightrecd/takeover.h"
#include "trigger/arming.h"

#include <errno.h>
#include <string.h>

struct fr_recording_config fr_daemon_recording_config(struct fr_daemon *m)
{
	return (struct fr_recording_config){
		.config = m->config,
		.cpus = m->config->cpus,
		.previous = m->recording.capture,
		.sleeps_fd = fr_bpf_store_sleeps(&m->handover.bpf),
		.switches = m->switches,
		.unwinder = fr_daemon_unwinder,
		.ctx = m,
		.command_pid = m->recorded_pid,
		.argc = m->argc,
		.argv = m->argv,
	};
}

static int open_recording(struct fr_daemon *m, struct fr_diag *d)
{
	const struct fr_recording_config config = fr_daemon_recording_config(m);
	int r;

	m->started = fr_clock_pair_now();
	r = fr_recording_open(&config, &m->recording, d);
	if (r < 0)
		return r;
	r = fr_handover_unite_session(&m->handover, &m->recording.session, &m->counters, m->lost_before);
	fr_daemon_count_rescued(m);
	return r < 0 ? fr_fail_errno(d, r, NULL, "cannot adopt the events of the previous instance") : 0;
}

static void on_evicted(void *ctx, const struct fr_frame *frame)
{
	const struct fr_daemon *m = ctx;

	if (!m->rings.sideband)
		fr_daemon_sideband_evicted(ctx, frame);
}

/* The tracker's thread holds freeze_lock from this function to on_unfreeze(). */
static uint64_t on_freeze(void *ctx) FR_NO_THREAD_SAFETY_ANALYSIS
{
	struct fr_daemon *m = ctx;

	fr_lock(&m->freeze_lock);
	return fr_history_freeze(fr_rings_sideband(&m->rings));
}

static void on_unfreeze(void *ctx) FR_NO_THREAD_SAFETY_ANALYSIS
{
	struct fr_daemon *m = ctx;

	fr_history_unfreeze(fr_rings_sideband(&m->rings));
	fr_unlock(&m->freeze_lock);
}

static void on_sideband(void *ctx, const void *records, size_t len, uint64_t low_watermark_ns)
{
	struct fr_daemon *m = ctx;

	fr_jit_open_files_update(m->jit_open_files, records, len, low_watermark_ns);
	fr_daemon_unwind_records(m, records, len);
}

static void on_modules_changed(void *ctx)
{
	fr_daemon_modules_changed(ctx);
}

static int on_inject(
	void *ctx, const void *records, size_t len, uint32_t n, uint64_t first_ns, uint64_t last_ns)
{
	struct fr_daemon *m = ctx;

	return fr_history_append_sideband(fr_rings_sideband(&m->rings), records, len, n, first_ns, last_ns);
}

static size_t section_max(const struct fr_daemon *m)
{
	return FR_MAX(fr_rings_section_max(&m->rings), (size_t)FR_HISTORY_SECTION_MAX);
}

static int open_history(struct fr_daemon *m, struct fr_diag *d)
{
	struct fr_history_config history = {
		.size_bytes = m->config->ring_bytes,
		.memory = fr_daemon_ring_memory(m),
		.populate = true,
		.level = m->config->compression_level,
		.evicted = on_evicted,
		.ctx = m,
	};
	const struct fr_handover_ring ring = {
		.bytes = m->config->ring_bytes,
		.origin = m->config->ring_origin,
		.later = atomic_load(&m->unwinder) ? m->config->unwind_memory_bytes : 0,
		.dirfd = m->dirfd,
		.last_try = m->refused.code != 0,
	};

	int r = fr_handover_open_history(&m->handover, &history, &ring, &m->rings.ring[0], d);

	if (r < 0)
		return r;
	m->rings.n = 1;
	history.evicted = fr_daemon_sideband_evicted;
	r = fr_daemon_open_rings(m, &history, d);
	if (r == 0)
		r = fr_handover_read_rings(&m->handover, &m->rings, d);
	return r < 0 ? r : fr_daemon_open_tail(m, d);
}

static int open_tracker(struct fr_daemon *m, struct fr_diag *d)
{
	const struct fr_config *c = m->config;
	const bool follow_command = m->recorded_pid > 0 && !c->all_cpus;
	const struct fr_tracker_config tracker = {
		.dirfd = m->dirfd,
		.session = &m->recording.session,
		.sideband_id = fr_session_sideband_id(&m->recording.session),
		.section_max = section_max(m),
		.pids = follow_command ? &m->recorded_pid : c->pids,
		.n_pids = follow_command ? 1 : c->n_pids,
		.file_max_bytes = c->auxiliary_max_bytes,
		.file_max_age_ns = c->auxiliary_max_age_ns,
		.adopt = m->handover.adopted && m->handover.same_directory,
		.adopt_low_watermark_ns = m->handover.history.low_watermark_ns,
		.tail = m->tail,
		.evicted_seq = fr_history_oldest_seq(fr_rings_sideband(&m->rings)) - 1,
		.adopt_first = m->handover.first_sideband.data,
		.freeze = on_freeze,
		.inject = on_inject,
		.unfreeze = on_unfreeze,
		.observe = on_sideband,
		.observed = fr_daemon_unwind_round,
		.lost = fr_daemon_unwind_lost,
		.scanned = fr_daemon_unwind_scanned,
		.modules_changed = on_modules_changed,
		.ctx = m,
	};

	m->jit_open_files = fr_jit_open_files_new();
	return m->jit_open_files ? fr_tracker_new(&tracker, &m->tracker, d) : -ENOMEM;
}

/* The longest time between two rounds (passes over all kernel rings) if there is a descriptor store. With a
   descriptor store, a restart keeps the records in the ring of the recorder, but still loses the records in
   the kernel rings. So the recorder drains the kernel rings more often than without a store. */
#define HANDOVER_PERIOD_MS 200
/* The same for a ring in memory that survives a crash of the machine, which nobody can announce. A round
   takes about 10 µs if there are no records. */
#define MEMORY_PERIOD_MS 50

unsigned fr_daemon_period_ms(const struct fr_daemon *m)
{
	return m->memory ? MEMORY_PERIOD_MS : m->handover.on ? HANDOVER_PERIOD_MS : 0;
}

/* If the collector cannot be started, the recorder runs without copies of object files. */
static void start_collector(struct fr_daemon *m)
{
	const struct fr_object_cache_config config = {
		.dirfd = m->dirfd,
		.name = FR_COLLECTOR_DIRECTORY,
		.bytes_max = m->config->cache_bytes,
		.object_max = m->config->cache_object_bytes,
		.gid = m->gid,
	};

	if (config.bytes_max && fr_collector_start(&config, &m->collector, &m->no_collector) < 0)
		fr_log_diag(LOG_WARNING, &m->no_collector, m->no_collector.code);
}

size_t fr_daemon_own_tids(const struct fr_daemon *m, pid_t ret[static FR_OWN_TIDS_MAX])
{
	size_t n = 0;

	ret[n++] = getpid(); /* the main thread */
	ret[n++] = fr_recorder_tid(m->recorder);
	ret[n++] = fr_tracker_tid(m->tracker);
	ret[n++] = fr_dumper_tid(m->dumper);
	for (int i = 0; i < FR_ARMING_LANES; i++)
		ret[n++] = fr_arming_tid(m->arming[i]);
	ret[n++] = fr_worker_tid(m->change_worker);
	if (atomic_load(&m->unwinder))
		ret[n++] = fr_unwinder_tid(atomic_load(&m->unwinder));
	if (m->collector)
		ret[n++] = fr_collector_tid(m->collector);
	return n;
}

static void add_losses(void *ctx, cJSON *meta)
{
	struct fr_daemon *m = ctx;
	struct fr_loss_counters losses;

	fr_lock(&m->parts_lock);
	losses = fr_daemon_losses(m);
	fr_losses_add_json(&losses, m->handover.state.gap_ns, meta);
	fr_unlock(&m->parts_lock);
}

static void add_steps(void *ctx, uint64_t from_ns, uint64_t to_ns, cJSON *meta)
{
	struct fr_daemon *m = ctx;

	fr_frequency_add_steps(&m->frequency, from_ns, to_ns, meta);
	fr_switching_add_steps(&m->switching, from_ns, to_ns, meta);
}

static int ref_aux(void *ctx, struct fr_aux_areas *ret)
{
	struct fr_daemon *m = ctx;
	int r;

	fr_lock(&m->parts_lock);
	r = fr_capture_ref_aux(m->recording.capture, ret);
	fr_unlock(&m->parts_lock);
	return r;
}

static int open_waits(void *ctx)
{
	struct fr_daemon *m = ctx;
	int fd;

	fr_lock(&m->parts_lock);
	fd = fr_capture_open_waits(m->recording.capture);
	fr_unlock(&m->parts_lock);
	return fd;
}

static int start_dumper(struct fr_daemon *m, struct fr_diag *d)
{
	const struct fr_dumper_config dumper = {
		.recorder = m->recorder,
		.tracker = m->tracker,
		.session = &m->recording.session,
		.dirfd = m->dirfd,
		.directory = m->config->directory,
		.section_max = section_max(m),
		.level = m->config->compression_level,
		.no_rounds = fr_capture_has_overwrite(m->recording.capture),
		.jit_open_files = m->jit_open_files,
		.vdso_kept = m->collector != NULL,
		.gid = m->gid,
		.settings = {m->config->retention, m->config->keep_failed, m->config->aux_window_ns},
		.add_losses = add_losses,
		.add_steps = add_steps,
		.ref_aux = ref_aux,
		.open_waits = open_waits,
		.ctx = m,
	};

	return fr_dumper_start(&dumper, &m->dumper, d);
}

/* If the store has no room for all descriptors, those of the ring matter most, so they go first. If the store
   has them already, the programs of the events go first, and then the state gets the events (takeover.c:
   has_all_events()). */
static void store_all(struct fr_daemon *m)
{
	const bool is_stored = m->handover.adopted && m->handover.history.in_place;
	unsigned programs;

	if (!is_stored)
		fr_daemon_store(m);
	programs = fr_daemon_store_bpf(m, m->recording.capture);
	if (is_stored)
		fr_daemon_store(m);
	fr_daemon_use_bpf(m, programs);
}

/*
 * The order matters. Side-band must flow before /proc is scanned. Otherwise, a process that is created after
 * the scan and before side-band flows would be missing. Samples must flow only after the scan, so that the
 * process of the first sample has a name, and only after each thread of the daemon is excluded.
 */
static int start_threads(struct fr_daemon *m, fr_progress progress, struct fr_diag *d)
{
	const struct fr_recorder_config recorder = {
		m->recording.capture, m->rings, m->tracker, fr_daemon_period_ms(m)};
	pid_t tids[FR_OWN_TIDS_MAX];
	int r;

	fr_frequency_init(&m->frequency, m->recording.capture, m->config->cpu_budget_ppm);
	r = fr_switching_init(&m->switching, m->switches, m->config->switch_limit_ns);
	if (r >= 0)
		r = fr_recorder_start(&recorder, &m->recorder, d);
	if (r >= 0)
		r = fr_capture_enable(m->recording.capture, FR_CAPTURE_SIDEBAND, d);
	m->handover.sideband_ns = fr_monotonic_ns();
	progress(m, "reads the processes of this machine");
	if (r >= 0)
		r = fr_tracker_start(m->tracker, d);
	if (r < 0)
		return r;
	if (r > 0)
		fr_log(LOG_NOTICE,
			"records before all processes of this machine are known: their number, or one "
			"that cannot be read, takes its time");
	start_collector(m);
	r = start_dumper(m, d);
	for (int i = 0; r >= 0 && i < FR_ARMING_LANES; i++)
		r = fr_arming_start(&m->arming[i], d);
	if (r >= 0)
		r = fr_worker_new(FR_THREAD_CHANGE, &m->change_worker, d);
	if (r >= 0)
		r = fr_capture_exclude_tids(m->recording.capture, tids, fr_daemon_own_tids(m, tids), d);
	if (r < 0)
		return r;
	if (!m->refused.code)
		fr_daemon_save_config(m);
	store_all(m);
	return 0;
}

void fr_daemon_init(struct fr_daemon *m, struct fr_config *config, int argc, char *argv[])
{
	*m = (struct fr_daemon){.config = config,
		.argc = argc,
		.argv = argv,
		.begun = fr_clock_pair_now(),
		.tester = FR_UID_MACHINE};
	m->dirfd = m->command.go_fd = m->command.error_fd = -1;
}

static struct fr_handover_facts facts_of(const struct fr_daemon *m, const uint64_t *lost)
{
	struct fr_handover_facts facts = {
		.dirfd = m->dirfd,
		.boot_id = m->boot_id,
		.started_ns = m->started.monotonic_ns,
		.counters = &m->counters,
		.session = &m->recording.session,
		.history = m->rings.ring[0],
		.lost = lost,
		.memory = m->config->ring_memory,
		.period_ns = fr_daemon_period_ms(m) * FR_NSEC_PER_MSEC,
	};

	for (unsigned i = 1; i < m->rings.n; i++, facts.n_parts++) {
		facts.parts[facts.n_parts].ring = m->rings.name[i];
		facts.parts[facts.n_parts].history = m->rings.ring[i];
	}
	if (m->rings.sideband) {
		facts.parts[facts.n_parts].ring = FR_STATE_SIDEBAND;
		facts.parts[facts.n_parts++].history = m->rings.sideband;
	}
	return facts;
}

static int open_parts(struct fr_daemon *m, fr_progress progress, struct fr_diag *d)
{
	const struct fr_config *c = m->config;
	int r;

	progress(m, "opens the output directory");
	r = fr_destination_open(c->directory, &m->dirfd, d);
	if (r >= 0)
		fr_daemon_open_memory(m, progress);
	if (r >= 0 && c->command)
		r = fr_command_fork(&m->command, c->command, d);
	m->recorded_pid = m->command.pid;
	progress(m, "opens the events");
	if (r >= 0)
		r = fr_switches_new(&m->switches);
	if (r >= 0)
		r = open_recording(m, d);
	progress(m, "takes the memory of the ring, opens the auxiliary file");
	if (r >= 0)
		r = open_history(m, d);
	if (r >= 0)
		fr_daemon_adopt_bpf(m);
	if (r >= 0)
		r = open_tracker(m, d);
	/* The tracker has its own copy of the session, and finds the auxiliary file by the older ids. */
	fr_session_drop_closed_events(&m->recording.session, m->handover.history.low_watermark_ns);
	if (r >= 0)
		r = fr_handover_announce_sideband(&m->handover, &m->recording.session);
	return r < 0 ? r : start_threads(m, progress, d);
}

static void close_parts(struct fr_daemon *m)
{
	fr_dumper_stop(m->dumper);
	m->dumper = fr_dumper_free(m->dumper);
	m->collector = fr_collector_stop(m->collector);
	for (int i = 0; i < FR_ARMING_LANES; i++)
		m->arming[i] = fr_arming_stop(m->arming[i]);
	m->change_worker = fr_worker_free(m->change_worker);
	if (m->recording.capture)
		fr_capture_leave(m->recording.capture);
	m->recorder = fr_recorder_stop(m->recorder);
	if (m->tracker)
		fr_tracker_stop(m->tracker);
	fr_daemon_close_rings(m);
	m->tracker = fr_tracker_free(m->tracker);
	fr_daemon_close_memory(m);
	m->jit_open_files = fr_jit_open_files_free(m->jit_open_files);
	fr_handover_close(&m->handover);
	fr_lock_deinit(&m->freeze_lock);
	fr_lock_deinit(&m->parts_lock);
	fr_recording_close(&m->recording);
	fr_switching_deinit(&m->switching);
	m->switches = fr_switches_free(m->switches);
	atomic_store(&m->unwinder, fr_unwinder_stop(atomic_load(&m->unwinder)));
	fr_command_deinit(&m->command);
	fr_frequency_deinit(&m->frequency);
	memset(m->lost_before, 0, sizeof(m->lost_before));
	fr_closep(&m->dirfd);
	m->dirfd = -1;
}

int fr_stages_open(struct fr_daemon *m, fr_progress progress, struct fr_diag *d)
{
	int r = fr_boot_id_read(m->boot_id);

	if (r < 0)
		return fr_fail_errno(d, r, NULL, "cannot read the boot id of this machine");
	fr_log_set_level(m->config->log_level);
	m->counters.next_job_id = 1;
	fr_lock_init(&m->parts_lock);
	fr_lock_init(&m->freeze_lock);
	m->gid = fr_destination_group(m->config->group);
	fr_handover_receive(&m->handover, !m->config->command, m->boot_id);
	r = open_parts(m, progress, d);
	if (r < 0)
		close_parts(m);
	m->is_open = r >= 0;
	return r < 0 ? r : 0;
}

void fr_stages_close(struct fr_daemon *m)
{
	if (m->is_open)
		close_parts(m);
	m->is_open = false;
}

void fr_daemon_store(struct fr_daemon *m)
{
	const struct fr_handover_facts facts = facts_of(m, NULL);

	fr_handover_store(&m->handover, &facts);
}

void fr_daemon_update_state(struct fr_daemon *m)
{
	const struct fr_loss_counters losses = fr_daemon_losses(m);
	uint64_t lost[_FR_LOSS_MAX] = {0};
	const struct fr_handover_facts facts = facts_of(m, lost);

	if (!m->handover.on && !m->memory)
		return;
	fr_losses_sum(&losses, lost);
	fr_handover_update(&m->handover, &facts);
}

void fr_daemon_save_config(struct fr_daemon *m)
{
	_cleanup_buf_ struct fr_buf config = {0};

	/* If there is no memory, the previous configuration stays saved. */
	if (m->handover.on && fr_config_save(m->config, m->argc, m->argv, &config) == 0)
		fr_handover_set_config(&m->handover, &config);
}

struct fr_loss_counters fr_daemon_losses(struct fr_daemon *m)
{
	return (struct fr_loss_counters){
		.capture = m->recording.capture,
		.rings = &m->rings,
		.tracker = m->tracker,
		.dumper = m->dumper,
		.lost_before = m->lost_before,
	};
}
