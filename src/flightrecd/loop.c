// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecd/loop.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/units.h"
#include "base/worker.h"
#include "capture/aux.h"
#include "capture/aux_window.h"
#include "flightrecd/change.h"
#include "flightrecd/dumps.h"
#include "flightrecd/reload.h"
#include "flightrecd/reopen.h"
#include "flightrecd/ring_memory.h"
#include "flightrecd/stages.h"
#include "flightrecd/start.h"
#include "flightrecd/stop.h"
#include "flightrecd/switches.h"
#include "flightrecd/takeover.h"
#include "flightrecd/triggers.h"
#include "flightrecd/verbs.h"
#include "flightrecd/view.h"
#include "flightrecd/watchdog.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <systemd/sd-daemon.h>

/* With AuxWindow=all, the looks are for dumps with another window. */
#define AUX_WINDOW_DEFAULT_NS (10 * FR_NSEC_PER_SEC)
#define AUX_LOOK_MIN_NS (100 * FR_NSEC_PER_MSEC)

static int on_dumps_done(sd_event_source *source, int fd, uint32_t revents, void *ctx)
{
	struct fr_daemon *m = ctx;
	uint64_t count;

	(void)!read(fd, &count, sizeof(count));
	fr_daemon_reap(m);
	fr_daemon_update_state(m);
	fr_daemon_notify_status(m);
	return 0;
}

/* With -p, the recorder ends when the recorded tasks have ended, as perf record -p does. The end of a
   recorded command is handled in on_command_ended(). */
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

static void handle_signal(struct fr_daemon *m, const struct signalfd_siginfo *si)
{
	if (fr_start_defers_signal(m, si))
		return;
	switch (si->ssi_signo) {
	case SIGUSR1:
		if (m->stop == FR_STOP_NO)
			fr_daemon_dump_by_signal(m, si);
		break;
	case SIGHUP:
		fr_daemon_reload(m, NULL);
		break;
	case SIGINT:
		/* While a recorded command runs, SIGINT does nothing here: Ctrl-C on a terminal also sends
		   SIGINT to the command, and the recorder ends when the command has ended. */
		if (m->command.pid == 0)
			fr_daemon_stop(m, FR_STOP_CLEAN);
		break;
	default:
		fr_daemon_stop(m, si->ssi_signo == SIGUSR2 ? FR_STOP_MERGE : FR_STOP_CLEAN);
	}
}

static int on_signal(sd_event_source *source, const struct signalfd_siginfo *si, void *ctx)
{
	handle_signal(ctx, si);
	return 0;
}

static int on_command_ended(sd_event_source *source, const siginfo_t *si, void *ctx)
{
	struct fr_daemon *m = ctx;

	/* Set the exit code that a shell would report for the command. */
	m->command.pid = 0;
	m->command_exit = si->si_code == CLD_EXITED ? si->si_status : 128 + si->si_status;
	fr_daemon_stop(m, FR_STOP_MERGE);
	return 0;
}

static int on_tick(sd_event_source *source, uint64_t usec, void *ctx)
{
	struct fr_daemon *m = ctx;

	fr_daemon_reopen_tick(m);
	if (m->triggers)
		fr_triggers_rearm_stale(m->triggers);
	fr_rates_tick(&m->rates, m->recording.capture);
	fr_frequency_tick(&m->frequency, m->recording.capture);
	fr_daemon_switches_tick(m);
	fr_daemon_log_news(m);
	fr_daemon_update_state(m);
	fr_daemon_notify_status(m);
	/* The next time is relative to the current time, so that there is no burst of ticks after a
	   suspend. */
	sd_event_source_set_time_relative(source, FR_RATE_PERIOD_NS / FR_NSEC_PER_USEC);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* Looks at the AUX areas, so that a dump can leave out what is older than AuxWindow=. */
static int on_aux_look(sd_event_source *source, uint64_t usec, void *ctx)
{
	struct fr_daemon *m = ctx;
	const uint64_t window_ns =
		m->config->aux_window_ns ? m->config->aux_window_ns : AUX_WINDOW_DEFAULT_NS;

	fr_capture_look_at_aux(m->recording.capture);
	sd_event_source_set_time_relative(
		source, FR_MAX(window_ns / FR_AUX_LOOKS_PER_WINDOW, AUX_LOOK_MIN_NS) / FR_NSEC_PER_USEC);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* Opens what the main loop handles even before recording has begun: signals and the control socket. */
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

static int make_metrics(void *ctx, struct fr_buf *ret)
{
	struct fr_view view;

	fr_daemon_view(ctx, &view);
	return fr_metrics(&view, ret);
}

static int open_http(struct fr_daemon *m)
{
	const char *address = m->config->metrics_listen;

	if (!address || !*address)
		return 0;
	return fr_http_open(m->event, address,
		"the service's sandbox has no network: flightrecd.conf(5) has the drop-in", make_metrics, m,
		&m->http);
}

static int add_sources(struct fr_daemon *m, struct fr_diag *d)
{
	int r = sd_event_add_io(m->event, NULL, fr_dumper_done_fd(m->dumper), EPOLLIN, on_dumps_done, m);

	if (r >= 0)
		r = fr_worker_attach(m->change_worker, m->event);
	if (r >= 0)
		r = sd_event_add_io(
			m->event, NULL, fr_recorder_ended_fd(m->recorder), EPOLLIN, on_tasks_ended, m);
	if (r >= 0)
		r = sd_event_add_time_relative(m->event, NULL, CLOCK_MONOTONIC,
			FR_RATE_PERIOD_NS / FR_NSEC_PER_USEC, 500 * FR_NSEC_PER_MSEC / FR_NSEC_PER_USEC,
			on_tick, m);
	if (r >= 0)
		r = sd_event_add_time_relative(m->event, NULL, CLOCK_MONOTONIC, 0, 1000, on_aux_look, m);
	if (r >= 0)
		r = fr_daemon_add_watchdog(m);
	if (r >= 0 && m->command.pid > 0)
		r = sd_event_add_child(m->event, NULL, m->command.pid, WEXITED, on_command_ended, m);
	if (r < 0)
		return fr_fail_errno(d, r, NULL, "cannot set up the main loop");
	fr_start_progress(m, "arms the triggers");
	r = fr_daemon_triggers_open(m, d);
	if (r < 0)
		return r;
	fr_daemon_watch_cpus(m);
	return open_http(m);
}

static void report_ready(struct fr_daemon *m)
{
	char ring[FR_UNIT_SIZE], events[512];
	struct fr_history_stats stats;

	fr_rings_stats(&m->rings, &stats);
	fr_size_format(stats.size_bytes, ring);
	fr_recording_describe(&m->recording, events, sizeof(events));
	fr_log_struct(LOG_INFO, FR_MSG_STARTED, NULL, 0, "recording %s into %s%s of %s; dumps go to %s",
		events, m->rings.n > 1 ? "rings with " : "", ring,
		m->memory ? m->config->ring_memory : "memory", m->config->directory);
	sd_notify(0, "READY=1");
	fr_daemon_notify_status(m);
}

/* Called when the parts are open. Enables the samples, and arms the triggers. */
static int begin_recording(struct fr_daemon *m, struct fr_diag *d)
{
	int r = fr_daemon_begin_samples(m, d);

	if (r >= 0 && m->handover.adopted) {
		/* First the state knows that the old events have ended, and then the store loses their
		   programs. */
		fr_daemon_update_state(m);
		fr_bpf_store_remove_old(&m->handover.bpf);
	}
	if (r >= 0 && m->config->command)
		r = fr_command_go(&m->command, m->config->command[0], d);
	if (r >= 0)
		fr_daemon_begin_memory(m);
	if (r >= 0)
		r = add_sources(m, d);
	if (r < 0)
		return r;
	fr_rates_tick(&m->rates, m->recording.capture);
	report_ready(m);
	return 0;
}

int fr_daemon_run(struct fr_daemon *m, struct fr_buf *saved_config, bool inherited)
{
	static const struct fr_start_ops ops = {begin_recording, handle_signal};
	struct fr_diag diag = {0};
	int r = open_loop(m, &diag);

	if (r >= 0)
		r = fr_start_begin(m, &ops, saved_config, inherited, &diag);
	if (r < 0) {
		fr_start_report_failure(&diag, r);
		return inherited ? FR_EXIT_AGAIN : fr_exit_code(r);
	}
	fr_thread_begin(FR_THREAD_MAIN);
	r = sd_event_loop(m->event);
	fr_thread_begin(FR_THREAD_UNNAMED);
	if (m->is_open)
		fr_log_struct(LOG_INFO, FR_MSG_STOPPED, NULL, 0, "stopped");
	return r < 0 ? FR_EXIT_AGAIN : r;
}

void fr_daemon_close(struct fr_daemon *m)
{
	fr_start_end(m);
	fr_change_abort(m);
	fr_reload_fail_calls(m, &(struct fr_diag){.code = -ESHUTDOWN, .what = "flightrecd is stopping"});
	fr_daemon_triggers_close(m);
	fr_daemon_switches_close(m);
	/* Finish the waiting jobs and answer their callers before the socket is closed. */
	fr_dumper_stop(m->dumper);
	if (m->dumper)
		fr_daemon_reap(m);
	m->dumper = fr_dumper_free(m->dumper);
	/* Let the collector copy the object files of the dumps in its queue now. Later, the processes of
	   these dumps can have ended, and a merge can have removed the dumps. */
	m->collector = fr_collector_stop(m->collector);
	m->http = fr_http_close(m->http);
	m->server = fr_server_free(m->server);
	free(TAKE_PTR(m->socket));
	free(TAKE_PTR(m->group));
	fr_subscribers_deinit(&m->watchers);
	m->cpu_watch = fr_cpu_watch_free(m->cpu_watch);
	fr_stages_close(m);
	m->event = sd_event_unref(m->event);
	fr_rates_reset(&m->rates);
	fr_recent_dumps_deinit(&m->recent_dumps);
}
