// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecd/daemon.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/units.h"
#include "flightrecd/listener.h"
#include "flightrecd/triggers.h"
#include "perfdata/features.h"
#include "perfdata/tracing_data.h"
#include "trigger/arming.h"

#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/stat.h>

static int open_directory(struct fr_daemon *m, struct fr_diag *d)
{
	const char *path = m->config->directory;

	m->dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (m->dirfd < 0 && errno == ENOENT)
		return fr_fail_errno(d, -ENOENT,
			"make it (mkdir -p), or name another one with -o or Directory=",
			"cannot record to %s", path);
	if (m->dirfd < 0)
		return fr_fail_errno(
			d, -errno, "name another one with -o or Directory=", "cannot record to %s", path);
	if (faccessat(m->dirfd, ".", W_OK | X_OK, AT_EACCESS) < 0)
		return fr_fail_errno(d, -errno,
			"run as a user who may write there, or name another one with -o or Directory=",
			"cannot write to %s", path);
	return 0;
}

/* An unprivileged recorder, for a command of one's own, keeps its files to itself where its user is no
 * member.
 */
static bool may_give_to(gid_t gid)
{
	capng_get_caps_process();
	return capng_have_capability(CAPNG_EFFECTIVE, CAP_CHOWN) || gid == getegid() || group_member(gid);
}

static void find_group(struct fr_daemon *m)
{
	struct group *g = m->config->group[0] ? getgrnam(m->config->group) : NULL;

	m->gid = g && may_give_to(g->gr_gid) ? g->gr_gid : (gid_t)-1;
}

int fr_daemon_parse_events(const struct fr_config *c, struct fr_event_list *ret, struct fr_diag *d)
{
	int r;

	for (size_t i = 0; i < c->n_events; i++) {
		r = fr_event_parse(c->events[i].spec, &c->defaults, ret, d);
		if (r == 0 && c->events[i].filter)
			r = fr_event_set_filter(ret, c->events[i].filter, d);
		if (r == 0)
			r = fr_event_set_origin(ret, c->events[i].origin);
		if (r < 0) {
			fr_diag_prefix(d, "%s", c->events[i].origin);
			return r;
		}
	}
	if (c->n_events == 0) {
		r = fr_event_add_default(&c->defaults, ret, d);
		if (r < 0)
			return r;
	}
	if (ret->notice)
		fr_log(LOG_NOTICE, "%s", ret->notice);
	return 0;
}

/* Whether the kernel is asked for build-ids. */
static bool want_build_ids(const struct fr_config *c, pid_t *ret_disturbed)
{
	*ret_disturbed = 0;
	if (c->kernel_build_ids != FR_BUILD_IDS_AUTO)
		return c->kernel_build_ids == FR_BUILD_IDS_YES;
	/* Not able to try is no reason to do without: the open falls back bit by bit. */
	*ret_disturbed = fr_capture_build_ids_leak() > 0 ? fr_capture_find_other() : 0;
	if (*ret_disturbed)
		fr_log(LOG_NOTICE,
			"build-ids are read from files: those of this kernel would disturb pid %d, which has "
			"perf events "
			"open; KernelBuildIDs= in flightrecd.conf(5)",
			(int)*ret_disturbed);
	return !*ret_disturbed;
}

int fr_daemon_open_capture(struct fr_daemon *m, const struct fr_config *c, const struct fr_event_list *events,
	struct fr_capture **ret, pid_t *ret_disturbed, struct fr_diag *d)
{
	const bool follow_command = m->command.pid > 0 && !c->all_cpus;
	const struct fr_capture_config config = {
		.events = events,
		.cpus = c->cpus,
		.pids = follow_command ? &m->command.pid : c->pids,
		.n_pids = follow_command ? 1 : c->n_pids,
		.enable_on_exec = follow_command,
		.cgroup = c->cgroup,
		.no_build_ids = !want_build_ids(c, ret_disturbed),
		.ring_bytes = c->kernel_buffer_bytes,
		.sideband_ring_bytes = c->sideband_buffer_bytes,
	};

	return fr_capture_open(&config, ret, d);
}

static int describe(struct fr_daemon *m, struct fr_diag *d)
{
	const struct fr_clock_pair pair = fr_clock_pair_now();
	const struct fr_event_desc *sideband;
	int r;

	m->started = pair;
	r = fr_capture_describe(m->capture, &m->session);
	if (r < 0)
		return fr_fail_errno(d, r, NULL, "cannot describe the events");
	r = fr_features_gather(&m->session, m->argc, m->argv, &pair, d);
	if (r < 0)
		return r;
	r = fr_tracing_data_gather(&m->session, d);
	if (r < 0)
		return r;
	r = fr_handover_take_over(m);
	if (r < 0)
		return fr_fail_errno(d, r, NULL, "cannot go on with the events of the instance before");
	sideband = &m->session.events[m->session.n_events - 1];
	m->sideband_id = sideband->ids[0];
	return fr_boot_id(m->boot_id);
}

static void on_evicted(void *ctx, const struct fr_frame *frame)
{
	struct fr_daemon *m = ctx;

	/* There is none yet while an adopted ring is opened: it will find that in the file, before what the
	   ring has. */
	if (m->tracker && frame->sideband_len > 0)
		(void)fr_tracker_push_evicted(
			m->tracker, frame->sideband, frame->sideband_len, frame->low_watermark_ns);
}

static uint64_t on_freeze(void *ctx)
{
	struct fr_daemon *m = ctx;

	pthread_mutex_lock(&m->hold);
	return fr_history_hold(m->history);
}

static void on_unfreeze(void *ctx)
{
	struct fr_daemon *m = ctx;

	fr_history_release(m->history);
	pthread_mutex_unlock(&m->hold);
}

static void on_sideband(void *ctx, const void *records, size_t len, uint64_t low_watermark_ns)
{
	struct fr_daemon *m = ctx;

	fr_jit_open_files_update(m->jit_open_files, records, len, low_watermark_ns);
}

static int on_inject(
	void *ctx, const void *records, size_t len, uint32_t n, uint64_t first_ns, uint64_t last_ns)
{
	struct fr_daemon *m = ctx;

	return fr_history_append_sideband(m->history, records, len, n, first_ns, last_ns);
}

static int open_memory(struct fr_daemon *m, struct fr_diag *d)
{
	const struct fr_config *c = m->config;
	const struct fr_history_config history = {
		.size_bytes = c->ring_bytes,
		.populate = true,
		.level = c->compression_level,
		.evicted = on_evicted,
		.ctx = m,
	};
	int r = fr_handover_open_history(m, &history, d);

	if (r < 0)
		return r;

	const bool follow_command = m->command.pid > 0 && !c->all_cpus;
	const struct fr_tracker_config tracker = {
		.dirfd = m->dirfd,
		.session = &m->session,
		.sideband_id = m->sideband_id,
		.section_max = FR_MAX(fr_history_section_max(m->history), (size_t)FR_HISTORY_SECTION_MAX),
		.pids = follow_command ? &m->command.pid : c->pids,
		.n_pids = follow_command ? 1 : c->n_pids,
		.file_max_bytes = c->auxiliary_max_bytes,
		.file_max_age_ns = c->auxiliary_max_age_ns,
		.adopt = m->handover.adopted && m->handover.same_directory,
		.adopt_low_watermark_ns = m->handover.what.low_watermark_ns,
		.adopt_first = m->handover.first.data,
		.freeze = on_freeze,
		.inject = on_inject,
		.unfreeze = on_unfreeze,
		.observe = on_sideband,
		.ctx = m,
	};

	m->jit_open_files = fr_jit_open_files_new();
	if (!m->jit_open_files)
		return -ENOMEM;
	return fr_tracker_new(&tracker, &m->tracker, d);
}

/* What is in the kernel's rings goes with the process, and what is in ours does not: where somebody keeps
   that, a round five times a second is cheap. */
#define HANDOVER_PERIOD_MS 200

/* A recorder without copies of object files is better than none. */
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
	if (m->collector)
		ret[n++] = fr_collector_tid(m->collector);
	return n;
}

/*
 * The order matters: side-band flows before /proc is scanned, so that no process falls between the two, and
 * samples flow only after the scan, so that the first one already has a name, and when every thread that
 * could feed back is known.
 */
static int start_threads(struct fr_daemon *m, struct fr_diag *d)
{
	const struct fr_recorder_config recorder = {
		m->capture, m->history, m->tracker, m->handover.on ? HANDOVER_PERIOD_MS : 0};
	pid_t tids[FR_OWN_TIDS_MAX];
	int r;

	fr_frequency_init(m);
	r = fr_recorder_start(&recorder, &m->recorder, d);
	if (r < 0)
		return r;
	r = fr_capture_enable(m->capture, FR_CAPTURE_SIDEBAND, d);
	if (r < 0)
		return r;
	fr_start_does(m, "reads the processes of this machine");
	r = fr_tracker_start(m->tracker, d);
	if (r < 0)
		return r;
	if (r > 0)
		fr_log(LOG_NOTICE,
			"records before all processes of this machine are known: their number, or one "
			"that cannot be read, takes its time");
	start_collector(m);

	const struct fr_dumper_config dumper = {
		.recorder = m->recorder,
		.tracker = m->tracker,
		.session = &m->session,
		.dirfd = m->dirfd,
		.directory = m->config->directory,
		.section_max = FR_MAX(fr_history_section_max(m->history), (size_t)FR_HISTORY_SECTION_MAX),
		.level = m->config->compression_level,
		.strip_rounds = fr_capture_has_overwrite(m->capture),
		.jit_open_files = m->jit_open_files,
		.vdso_kept = m->collector != NULL,
		.gid = m->gid,
		.settings = {m->config->retention, m->config->keep_failed},
		.add_losses = fr_status_add_losses,
		.add_steps = fr_frequency_add_steps,
		.ctx = m,
	};
	r = fr_dumper_start(&dumper, &m->dumper, d);
	for (int i = 0; r >= 0 && i < FR_ARMING_LANES; i++)
		r = fr_arming_start(&m->arming[i], d);
	if (r < 0)
		return r;

	r = fr_capture_exclude_tids(m->capture, tids, fr_daemon_own_tids(m, tids), d);
	if (r < 0)
		return r;
	fr_handover_store(m);
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

static int open_stages(struct fr_daemon *m, struct fr_diag *d)
{
	const struct fr_config *c = m->config;
	int r;

	fr_start_does(m, "opens the output directory");
	r = open_directory(m, d);
	if (r >= 0)
		r = fr_daemon_parse_events(c, &m->events, d);
	if (r >= 0 && c->command)
		r = fr_command_fork(&m->command, c->command, d);
	fr_start_does(m, "opens the events");
	if (r >= 0)
		r = fr_daemon_open_capture(m, c, &m->events, &m->capture, &m->disturbed_pid, d);
	if (r >= 0)
		r = describe(m, d);
	fr_start_does(m, "takes the memory of the ring, opens the auxiliary file");
	if (r >= 0)
		r = open_memory(m, d);
	if (r >= 0)
		r = start_threads(m, d);
	if (r >= 0)
		fr_daemon_fit_ring(m);
	return r;
}

static void close_stages(struct fr_daemon *m)
{
	fr_dumper_stop(m->dumper);
	m->dumper = fr_dumper_free(m->dumper);
	m->collector = fr_collector_stop(m->collector);
	for (int i = 0; i < FR_ARMING_LANES; i++)
		m->arming[i] = fr_arming_stop(m->arming[i]);
	if (m->capture)
		fr_capture_disable(m->capture);
	m->recorder = fr_recorder_stop(m->recorder);
	if (m->tracker)
		fr_tracker_stop(m->tracker);
	m->history = fr_history_free(m->history);
	m->tracker = fr_tracker_free(m->tracker);
	m->jit_open_files = fr_jit_open_files_free(m->jit_open_files);
	fr_handover_close(m);
	pthread_mutex_destroy(&m->hold);
	pthread_rwlock_destroy(&m->parts);
	m->capture = fr_capture_free(m->capture);
	fr_command_deinit(&m->command);
	fr_session_deinit(&m->session);
	fr_frequency_deinit(m);
	fr_event_list_deinit(&m->events);
	memset(m->lost_before, 0, sizeof(m->lost_before));
	fr_closep(&m->dirfd);
	m->dirfd = -1;
}

int fr_daemon_open(struct fr_daemon *m, struct fr_diag *d)
{
	int r;

	fr_log_set_level(m->config->log_level);
	m->next_job_id = 1;
	pthread_rwlock_init(&m->parts, NULL);
	pthread_mutex_init(&m->hold, NULL);
	find_group(m);
	fr_handover_receive(m);
	r = open_stages(m, d);
	if (r < 0)
		close_stages(m);
	else
		m->is_open = true;
	return r;
}

void fr_daemon_close(struct fr_daemon *m)
{
	fr_start_end(m);
	fr_daemon_triggers_close(m);
	/* Jobs that wait are finished, and who asked for them hears of it, before the socket goes. */
	fr_dumper_stop(m->dumper);
	if (m->dumper)
		fr_daemon_reap(m);
	m->dumper = fr_dumper_free(m->dumper);
	/* What is queued still: processes may go with us, and a merge takes the dumps away. */
	m->collector = fr_collector_stop(m->collector);
	fr_listener_http_close(m);
	m->server = fr_server_free(m->server);
	free(TAKE_PTR(m->socket));
	free(TAKE_PTR(m->group));
	fr_watchers_free(m);
	if (m->is_open)
		close_stages(m);
	m->is_open = false;
	fr_hotplug_close(m);
	m->event = sd_event_unref(m->event);
	for (size_t i = 0; i < FR_ARRAY_SIZE(m->rate); i++)
		free(TAKE_PTR(m->rate[i].samples));
	cJSON_Delete(TAKE_PTR(m->last_dump));
	cJSON_Delete(TAKE_PTR(m->dumps));
}
