// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecd/daemon.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/loss.h"
#include "base/service.h"
#include "base/units.h"
#include "flightrecd/listener.h"
#include "flightrecd/triggers.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <systemd/sd-daemon.h>

/* How often within WatchdogSec=: one that comes late for want of a CPU is not the last. */
#define WATCHDOG_FEEDS 4
#define WATCHDOG_SLACK_NS (2 * FR_NSEC_PER_SEC)

void fr_daemon_notify_status(struct fr_daemon *m)
{
	const size_t n = m->triggers ? fr_triggers_count_arming(m->triggers) : 0;
	struct fr_history_stats stats;
	char used[FR_UNIT_SIZE], span[FR_UNIT_SIZE], adopted[80] = "", arming[80] = "",
						     refused[sizeof(m->refused.what) + 64] = "";

	fr_history_stats(m->history, &stats);
	if (m->handover.adopted)
		snprintf(adopted, sizeof(adopted), "; went on %llu times with the history of before",
			(unsigned long long)m->handover.state.restarts);
	if (m->refused.code)
		snprintf(refused, sizeof(refused),
			" with the configuration of before, as that of now is refused (%s)", m->refused.what);
	if (n)
		snprintf(arming, sizeof(arming), "; %zu trigger%s still being armed", n, n > 1 ? "s" : "");
	sd_notifyf(0, "STATUS=recording%s; %s of history in %s; %llu dumps, %llu lost%s%s", refused,
		fr_duration_format(stats.last_ns - stats.first_ns, span),
		fr_size_format(stats.used_bytes, used), (unsigned long long)m->dumps_done,
		(unsigned long long)fr_status_total_losses(m), arming, adopted);
}

/* The last dump before the end: what a person would miss who stopped a recorder to look at what it had. */
static void submit_final_dump(struct fr_daemon *m, const char *reason)
{
	struct fr_cause cause = {
		.trigger = "stop", .source = "stop", .time_ns = fr_monotonic_ns(), .cpu = -1};
	const struct fr_dump_request q = {
		.cause = &cause, .uid = (uid_t)-1, .asked = fr_daemon_asked(m, cause.trigger)};

	if (m->final_submitted)
		return;
	m->final_submitted = true;
	snprintf(cause.reason, sizeof(cause.reason), "%s", reason);
	if (fr_daemon_dump(m, &q, NULL) < 0) {
		fr_log(LOG_ERR, "no memory for the last dump");
		sd_event_exit(m->event, 1);
	}
}

/* With the end of the service what the ring holds would go, too; a restart hands it on. Where nobody tells
   which of them this is, a dump too many does less harm. */
bool fr_daemon_service_ends(void)
{
	enum fr_service_job job;

	if (!getenv("NOTIFY_SOCKET") || !getenv("INVOCATION_ID"))
		return false;
	return fr_service_job(&job) < 0 || job != FR_SERVICE_RESTART;
}

void fr_daemon_stop(struct fr_daemon *m, enum fr_stop how)
{
	if (m->stop != FR_STOP_NO)
		return;
	sd_notify(0, "STOPPING=1");
	if (how == FR_STOP_CLEAN && fr_daemon_service_ends())
		how = FR_STOP_DUMP;
	m->stop = how;
	fr_daemon_triggers_close(m); /* the last dump is the stop's */
	if (how == FR_STOP_MERGE)
		submit_final_dump(m, "stop and merge");
	else if (how == FR_STOP_DUMP)
		submit_final_dump(m, "end of the service");
	else
		sd_event_exit(m->event, 0);
}

static int on_dumps_done(sd_event_source *source, int fd, uint32_t revents, void *ctx)
{
	struct fr_daemon *m = ctx;
	uint64_t count;

	(void)!read(fd, &count, sizeof(count));
	fr_daemon_reap(m);
	fr_handover_update(m);
	fr_daemon_notify_status(m);
	return 0;
}

/* With -p: as perf record -p ends with its tasks. A command's end is told by its exit. */
static int on_tasks_ended(sd_event_source *source, int fd, uint32_t revents, void *ctx)
{
	struct fr_daemon *m = ctx;

	sd_event_source_set_enabled(source, SD_EVENT_OFF);
	if (m->config->n_pids) {
		fr_log(LOG_INFO, "all tasks that were recorded have ended");
		fr_daemon_stop(m, FR_STOP_MERGE);
	}
	return 0;
}

static void on_hangup(struct fr_daemon *m)
{
	struct fr_reloaded what;
	struct fr_diag diag = {0};

	(void)fr_daemon_reload(m, &what, &diag);
	fr_reloaded_deinit(&what);
	fr_daemon_notify_status(m);
}

void fr_daemon_take_signal(struct fr_daemon *m, const struct signalfd_siginfo *si)
{
	if (fr_start_signalled(m, si))
		return;
	switch (si->ssi_signo) {
	case SIGUSR1:
		if (m->stop == FR_STOP_NO)
			fr_daemon_signalled(m, si);
		break;
	case SIGHUP:
		on_hangup(m);
		break;
	case SIGINT:
		/* Ctrl-C on a terminal: a command that is recorded gets it too, and its end is ours. */
		if (m->command.pid == 0)
			fr_daemon_stop(m, FR_STOP_CLEAN);
		break;
	default:
		fr_daemon_stop(m, si->ssi_signo == SIGUSR2 ? FR_STOP_MERGE : FR_STOP_CLEAN);
	}
}

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *si, void *ctx)
{
	fr_daemon_take_signal(ctx, si);
	return 0;
}

static int on_command_ended(sd_event_source *source, const siginfo_t *si, void *ctx)
{
	struct fr_daemon *m = ctx;

	/* As a shell would tell it. */
	m->command.pid = 0;
	m->command_exit = si->si_code == CLD_EXITED ? si->si_status : 128 + si->si_status;
	fr_daemon_stop(m, FR_STOP_MERGE);
	return 0;
}

static void log_new_losses(struct fr_daemon *m)
{
	const uint64_t total = fr_status_total_losses(m);

	if (total > m->losses_told)
		fr_log_struct(LOG_WARNING, FR_MSG_LOSS, NULL, 0,
			"%llu records or intervals were lost since the last report; `flightrecctl status` "
			"has the causes",
			(unsigned long long)(total - m->losses_told));
	m->losses_told = total;
}

static void log_compaction(struct fr_daemon *m)
{
	struct fr_tracker_stats s;

	fr_tracker_stats(m->tracker, &s);
	if (s.compaction_errno && s.compaction_errno != m->compaction_told)
		fr_log(LOG_WARNING,
			"perf.data.auxiliary grows, as it cannot be compacted: %s; it is tried again",
			strerror(s.compaction_errno));
	m->compaction_told = s.compaction_errno;
}

/* Only while the kernel's rings are really drained; a disk that is stuck is no reason to kill a recorder,
   whose dump waits in memory. */
static bool is_draining(struct fr_daemon *m)
{
	return fr_monotonic_ns() - fr_recorder_last_round_ns(m->recorder) <
	       2 * FR_RECORDER_PERIOD_NS + WATCHDOG_SLACK_NS;
}

void fr_daemon_feed_watchdog(struct fr_daemon *m)
{
	if (is_draining(m))
		sd_notify(0, "WATCHDOG=1");
}

static int on_watchdog(sd_event_source *source, uint64_t usec, void *ctx)
{
	struct fr_daemon *m = ctx;

	fr_daemon_feed_watchdog(m);
	sd_event_source_set_time_relative(source, m->watchdog_usec / WATCHDOG_FEEDS);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* WatchdogSec=, where the service manager asks for it. */
static int add_watchdog(struct fr_daemon *m)
{
	if (sd_watchdog_enabled(0, &m->watchdog_usec) <= 0)
		return 0;
	return sd_event_add_time_relative(m->event, NULL, CLOCK_MONOTONIC, m->watchdog_usec / WATCHDOG_FEEDS,
		m->watchdog_usec / (4 * WATCHDOG_FEEDS), on_watchdog, m);
}

static int on_tick(sd_event_source *source, uint64_t usec, void *ctx)
{
	struct fr_daemon *m = ctx;

	fr_hotplug_tick(m);
	fr_cgroup_tick(m);
	if (m->triggers)
		fr_triggers_rearm_stale(m->triggers);
	fr_status_tick(m);
	fr_frequency_tick(m);
	log_new_losses(m);
	log_compaction(m);
	fr_handover_update(m);
	fr_daemon_notify_status(m);
	/* Relative to now and not to the plan: a machine that slept needs no burst of ticks. */
	sd_event_source_set_time_relative(source, FR_RATE_PERIOD_NS / FR_NSEC_PER_USEC);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* What is heeded from the begin of a start. */
static int open_loop(struct fr_daemon *m, struct fr_diag *d)
{
	static const int signals[] = {SIGUSR1, SIGUSR2, SIGTERM, SIGINT, SIGHUP};
	int r = sd_event_new(&m->event);

	for (size_t i = 0; r >= 0 && i < FR_ARRAY_SIZE(signals); i++)
		r = sd_event_add_signal(m->event, NULL, signals[i], on_signal, m);
	if (r < 0)
		return fr_fail_errno(d, r, NULL, "cannot set up the main loop");
	return fr_verbs_serve(m, d);
}

static int add_sources(struct fr_daemon *m, struct fr_diag *d)
{
	int r = sd_event_add_io(m->event, NULL, fr_dumper_done_fd(m->dumper), EPOLLIN, on_dumps_done, m);

	if (r >= 0)
		r = sd_event_add_io(
			m->event, NULL, fr_recorder_ended_fd(m->recorder), EPOLLIN, on_tasks_ended, m);
	if (r >= 0)
		r = sd_event_add_time_relative(m->event, NULL, CLOCK_MONOTONIC,
			FR_RATE_PERIOD_NS / FR_NSEC_PER_USEC, 500 * FR_NSEC_PER_MSEC / FR_NSEC_PER_USEC,
			on_tick, m);
	if (r >= 0)
		r = add_watchdog(m);
	if (r >= 0 && m->command.pid > 0)
		r = sd_event_add_child(m->event, NULL, m->command.pid, WEXITED, on_command_ended, m);
	if (r < 0)
		return fr_fail_errno(d, r, NULL, "cannot set up the main loop");
	fr_start_does(m, "arms the triggers");
	r = fr_daemon_triggers_open(m, d);
	if (r < 0)
		return r;
	fr_hotplug_open(m);
	fr_listener_http_open(m);
	return 0;
}

static void say_ready(struct fr_daemon *m)
{
	char ring[FR_UNIT_SIZE];

	fr_size_format(m->config->ring_bytes, ring);
	fr_log_struct(LOG_INFO, FR_MSG_STARTED, NULL, 0,
		"recording %s%s on %zu CPUs into %s of memory; dumps go to %s",
		fr_capture_event_name(m->capture, 0), fr_capture_n_events(m->capture) > 2 ? " and more" : "",
		fr_capture_n_sampled(m->capture), ring, m->config->directory);
	sd_notify(0, "READY=1");
	fr_daemon_notify_status(m);
}

int fr_daemon_go(struct fr_daemon *m, struct fr_diag *d)
{
	int r = fr_capture_enable(m->capture, FR_CAPTURE_SAMPLES, d);

	if (r >= 0)
		fr_handover_record(m);
	if (r >= 0 && m->config->command)
		r = fr_command_go(&m->command, m->config->command[0], d);
	if (r >= 0)
		r = add_sources(m, d);
	if (r < 0)
		return r;
	fr_status_tick(m);
	say_ready(m);
	return 0;
}

int fr_daemon_run(struct fr_daemon *m, struct fr_buf *kept, bool inherited)
{
	struct fr_diag diag = {0};
	int r = open_loop(m, &diag);

	if (r >= 0)
		r = fr_start_begin(m, kept, inherited, &diag);
	if (r < 0) {
		fr_start_say_why_not(&diag, r);
		return inherited ? FR_EXIT_AGAIN : fr_exit_code(r);
	}
	r = sd_event_loop(m->event);
	if (m->is_open)
		fr_log_struct(LOG_INFO, FR_MSG_STOPPED, NULL, 0, "stopped");
	return r < 0 ? FR_EXIT_AGAIN : r;
}
