// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecd/start.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/utf8.h"
#include "base/worker.h"
#include "config/saved.h"
#include "control/deferred.h"
#include "control/interface.h"
#include "reporting/view.h"
#include "control/server.h"
#include "flightrecd/reload.h"
#include "flightrecd/resize.h"
#include "flightrecd/stages.h"
#include "flightrecd/stop.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include <systemd/sd-daemon.h>

/* How long a deferred call waits for the end of the start. */
#define DEFERRED_NS (20 * FR_NSEC_PER_SEC)
/* The time limit of each step of the start, for the service manager. A busy machine can have 200,000
   processes. */
#define STEP_USEC 180000000

struct fr_start {
	const struct fr_start_ops *ops;
	struct fr_worker *worker;
	sd_event_source *tick;
	_Atomic(const char *) doing;

	struct fr_buf saved_config;
	bool inherited;
	int result; /* of open_stages(): 0, or a negative errno with `diag` */
	struct fr_diag diag;

	struct fr_deferred_calls deferred;
	struct signalfd_siginfo signals[NSIG]; /* by signal number; ssi_signo 0: the signal has not come */
	bool term;
};

void fr_start_report_failure(const struct fr_diag *d, int code)
{
	char text[sizeof(d->what)];

	fr_log_diag(LOG_ERR, d, code);
	snprintf(text, sizeof(text), "%s", d->what);
	fr_utf8_sanitize(text);
	sd_notifyf(0, "STATUS=cannot start: %s", text);
}

void fr_start_progress(struct fr_daemon *m, const char *doing)
{
	atomic_store(&m->start->doing, doing);
	sd_notifyf(0, "EXTEND_TIMEOUT_USEC=%d\nSTATUS=starting: %s", STEP_USEC, doing);
}

int fr_start_restore_config(struct fr_daemon *m, const struct fr_buf *saved_config, struct fr_diag *d)
{
	int r;

	fr_config_deinit(m->config);
	fr_config_init(m->config);
	r = fr_config_restore(m->config, saved_config, d);
	return r == 0 ? fr_config_check(m->config, d) : r;
}

static int open_parts(struct fr_daemon *m, struct fr_diag *d)
{
	int r = fr_stages_open(m, fr_start_progress, d);

	if (r >= 0)
		fr_daemon_fit_rings(m);
	return r;
}

/* Opens the parts with the configuration of the daemon. If this fails, and there is a history that would be
   lost, opens the parts with the configuration of the previous instance. */
static int open_stages(struct fr_daemon *m, struct fr_start *s)
{
	struct fr_diag why = {0};
	int r = open_parts(m, &why);

	if (r >= 0)
		return 0;
	if (!why.code)
		fr_fail_errno(&why, r, NULL, "cannot start");
	s->diag = why;
	/* The failed configuration was already that of the previous instance; or there is no history in the
	   descriptor store any more that could be lost. */
	if (m->refused.code || fr_handover_config(NULL) < 0)
		return r;
	if (fr_start_restore_config(m, &s->saved_config, NULL) < 0)
		return r;
	fr_daemon_refuse_config(&m->refused, &why);
	s->diag = (struct fr_diag){0};
	return open_parts(m, &s->diag);
}

static void work(void *ctx)
{
	struct fr_daemon *m = ctx;

	m->start->result = open_stages(m, m->start);
}

/* Handles the signals and calls that came during the start. A stop comes last, because nothing is handled
   after it. */
static void catch_up(struct fr_daemon *m, struct fr_start *s)
{
	if (s->signals[SIGUSR1].ssi_signo)
		s->ops->handle_signal(m, &s->signals[SIGUSR1]);
	fr_deferred_run(&s->deferred, m);
	if (s->signals[SIGHUP].ssi_signo)
		s->ops->handle_signal(m, &s->signals[SIGHUP]);
	if (s->signals[SIGUSR2].ssi_signo || s->term)
		fr_daemon_stop(m, s->signals[SIGUSR2].ssi_signo ? FR_STOP_MERGE : FR_STOP_CLEAN);
}

static void on_done(void *ctx)
{
	struct fr_daemon *m = ctx;
	struct fr_start *s = m->start;
	int r = s->result;

	/* End the thread before samples flow, so that there are no samples of this thread. */
	s->worker = fr_worker_free(s->worker);
	if (r >= 0)
		r = s->ops->begin_recording(m, &s->diag);
	if (r < 0) {
		fr_start_report_failure(&s->diag, r);
		sd_event_exit(m->event, s->inherited ? FR_EXIT_AGAIN : fr_exit_code(r));
		return;
	}
	m->start = NULL; /* from here on, signals and calls are not deferred */
	catch_up(m, s);
	m->start = s;
	fr_start_end(m);
}

static int on_tick(sd_event_source *source, uint64_t usec, void *ctx)
{
	struct fr_daemon *m = ctx;
	struct fr_start *s = m->start;
	const uint64_t now_ns = fr_monotonic_ns();
	struct fr_diag d = {0};

	fr_fail(&d, -EBUSY, "try again; `flightrecctl status` shows what it does",
		"flightrecd is still starting: %s", atomic_load(&s->doing));
	fr_deferred_fail(&s->deferred, now_ns > DEFERRED_NS ? now_ns - DEFERRED_NS : 0, &d);
	sd_event_source_set_time_relative(source, FR_NSEC_PER_SEC / FR_NSEC_PER_USEC);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

int fr_start_begin(struct fr_daemon *m, const struct fr_start_ops *ops, struct fr_buf *saved_config,
	bool inherited, struct fr_diag *d)
{
	struct fr_start *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	m->start = s;
	s->ops = ops;
	s->saved_config = *saved_config;
	*saved_config = (struct fr_buf){0};
	s->inherited = inherited;
	atomic_store(&s->doing, "begins");
	r = sd_event_add_time_relative(
		m->event, &s->tick, CLOCK_MONOTONIC, FR_NSEC_PER_SEC / FR_NSEC_PER_USEC, 0, on_tick, m);
	if (r < 0)
		return fr_fail_errno(d, r, NULL, "cannot set the timer of the start");
	r = fr_worker_new(FR_THREAD_START, &s->worker, d);
	if (r >= 0)
		r = fr_worker_attach(s->worker, m->event);
	return r < 0 ? r : fr_worker_run(s->worker, &(struct fr_work){work, on_done, m});
}

static void fail_deferred(struct fr_start *s)
{
	struct fr_diag d = {0};

	fr_fail(&d, -ESHUTDOWN, s->diag.hint, "flightrecd did not start%s%s", s->diag.code ? ": " : "",
		s->diag.what);
	fr_deferred_fail(&s->deferred, UINT64_MAX, &d);
}

void fr_start_end(struct fr_daemon *m)
{
	struct fr_start *s = m->start;

	if (!s)
		return;
	fr_worker_free(s->worker);
	fail_deferred(s);
	sd_event_source_disable_unref(s->tick);
	fr_buf_deinit(&s->saved_config);
	free(s);
	m->start = NULL;
}

/* Ends the process without waiting for the thread. A last dump is not needed: either there are no samples
   yet, or the service manager keeps the history for the next instance. */
static _Noreturn void end_now(struct fr_daemon *m)
{
	fr_log_struct(LOG_INFO, FR_MSG_STOPPED, NULL, 0, "stopped before recording began");
	sd_notify(0, "STOPPING=1");
	fr_server_free(m->server);
	_exit(FR_EXIT_OK);
}

static void request_stop(struct fr_daemon *m)
{
	if (!m->start->inherited || !fr_daemon_service_ends())
		end_now(m);
	m->start->term = true;
	sd_notify(0, "STATUS=will stop after a last dump of the previous instance's history");
}

bool fr_start_defers_signal(struct fr_daemon *m, const struct signalfd_siginfo *si)
{
	struct fr_start *s = m->start;

	if (!s)
		return false;
	s->signals[si->ssi_signo] = *si;
	if (si->ssi_signo == SIGTERM || si->ssi_signo == SIGINT)
		request_stop(m);
	return true;
}

bool fr_start_gate(
	void *daemon, struct fr_call *call, const struct fr_method *method, const cJSON *parameters)
{
	struct fr_daemon *m = daemon;
	struct fr_start *s = m->start;
	bool merge = false;

	if (!s)
		return false;
	(void)fr_param_bool(parameters, "merge", &merge);
	if (!strcmp(method->name, FR_METHOD(Status))) {
		fr_call_reply(call, fr_status_of_start(&m->begun, atomic_load(&s->doing)));
	} else if (!strcmp(method->name, FR_METHOD(Stop)) && !merge) {
		fr_call_reply(call, NULL);
		request_stop(m);
	} else {
		fr_deferred_add(&s->deferred, call, method, parameters);
	}
	return true;
}
