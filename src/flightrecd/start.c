// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecd/start.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/utf8.h"
#include "control/interface.h"
#include "control/server.h"
#include "flightrecd/config_kept.h"
#include "flightrecd/daemon.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <systemd/sd-daemon.h>

/* Each connection has one call, and of these there are not more. */
#define HELD_MAX 64
#define HELD_NS (20 * FR_NSEC_PER_SEC)
/* What one step may take before the service manager gives up: a machine may have 200,000 processes and no
 * CPU. */
#define STEP_USEC 180000000

struct held {
	struct fr_call *call;
	const struct fr_method *method;
	cJSON *parameters;
	uint64_t since_ns;
};

struct fr_start {
	pthread_t thread;
	bool has_thread;
	int done_fd;
	sd_event_source *done, *tick;
	_Atomic(const char *) does;

	struct fr_buf kept;
	bool inherited;
	int result; /* of the stages, with `diag` */
	struct fr_diag diag;

	struct held held[HELD_MAX];
	size_t n_held;
	bool usr1, usr2, hangup, term;
	struct signalfd_siginfo usr1_info, hangup_info;
};

void fr_start_say_why_not(const struct fr_diag *d, int code)
{
	char text[sizeof(d->what)];

	fr_log_diag(LOG_ERR, d, code);
	snprintf(text, sizeof(text), "%s", d->what);
	fr_utf8_sanitize(text);
	sd_notifyf(0, "STATUS=cannot start: %s", text);
}

void fr_start_does(struct fr_daemon *m, const char *what)
{
	atomic_store(&m->start->does, what);
	sd_notifyf(0, "EXTEND_TIMEOUT_USEC=%d\nSTATUS=starting: %s", STEP_USEC, what);
}

int fr_start_go_back(struct fr_daemon *m, const struct fr_buf *kept, struct fr_diag *d)
{
	int r;

	fr_config_deinit(m->config);
	fr_config_init(m->config);
	r = fr_config_restore(m->config, kept, d);
	return r == 0 ? fr_config_check(m->config, d) : r;
}

/* With what the files say; where that cannot be used and there is a history to lose, with what the instance
   before went by. */
static int open_stages(struct fr_daemon *m, struct fr_start *s)
{
	struct fr_diag why = {0};
	int r = fr_daemon_open(m, &why);

	if (r >= 0)
		return 0;
	if (!why.code)
		fr_fail_errno(&why, r, NULL, "cannot start");
	s->diag = why;
	/* Tried with that already, or too late for another try. */
	if (m->refused.code || fr_handover_config(NULL) < 0)
		return r;
	if (fr_start_go_back(m, &s->kept, NULL) < 0)
		return r;
	fr_daemon_refuse_config(&m->refused, &why);
	s->diag = (struct fr_diag){0};
	return fr_daemon_open(m, &s->diag);
}

static void *run(void *arg)
{
	struct fr_daemon *m = arg;
	const uint64_t one = 1;

	pthread_setname_np(pthread_self(), "fr-start");
	m->start->result = open_stages(m, m->start);
	(void)!write(m->start->done_fd, &one, sizeof(one));
	return NULL;
}

static void run_held(struct fr_daemon *m, struct held *h)
{
	if (fr_call_is_abandoned(h->call))
		fr_call_reply(h->call, NULL);
	else
		h->method->handle(m, h->call, h->parameters);
	cJSON_Delete(h->parameters);
}

/* What came meanwhile, in an order that loses nothing: what a stop would end is done before. */
static void catch_up(struct fr_daemon *m, struct fr_start *s)
{
	if (s->hangup)
		fr_daemon_take_signal(m, &s->hangup_info);
	if (s->usr1)
		fr_daemon_take_signal(m, &s->usr1_info);
	for (size_t i = 0; i < s->n_held; i++)
		run_held(m, &s->held[i]);
	if (s->usr2 || s->term)
		fr_daemon_stop(m, s->usr2 ? FR_STOP_MERGE : FR_STOP_CLEAN);
}

static int on_done(sd_event_source *source, int fd, uint32_t revents, void *ctx)
{
	struct fr_daemon *m = ctx;
	struct fr_start *s = m->start;
	int r;

	sd_event_source_set_enabled(source, SD_EVENT_OFF);
	pthread_join(s->thread, NULL);
	s->has_thread = false;
	r = s->result;
	if (r >= 0)
		r = fr_daemon_go(m, &s->diag);
	if (r < 0) {
		fr_start_say_why_not(&s->diag, r);
		sd_event_exit(m->event, s->inherited ? FR_EXIT_AGAIN : fr_exit_code(r));
		return 0;
	}
	m->start = NULL; /* from here on nothing is held back */
	catch_up(m, s);
	s->n_held = 0;
	m->start = s;
	fr_start_end(m);
	return 0;
}

/* Nobody waits for ever. */
static int on_tick(sd_event_source *source, uint64_t usec, void *ctx)
{
	struct fr_daemon *m = ctx;
	struct fr_start *s = m->start;
	const uint64_t now_ns = fr_monotonic_ns();
	size_t n = 0;

	for (size_t i = 0; i < s->n_held; i++) {
		struct held *h = &s->held[i];
		struct fr_diag d = {0};

		if (now_ns - h->since_ns < HELD_NS) {
			s->held[n++] = *h;
			continue;
		}
		fr_fail(&d, -EBUSY, "try again; `flightrecctl status` shows what it does",
			"flightrecd is still starting: %s", atomic_load(&s->does));
		fr_call_fail(h->call, &d, d.code);
		cJSON_Delete(h->parameters);
	}
	s->n_held = n;
	sd_event_source_set_time_relative(source, FR_NSEC_PER_SEC / FR_NSEC_PER_USEC);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

int fr_start_begin(struct fr_daemon *m, struct fr_buf *kept, bool inherited, struct fr_diag *d)
{
	struct fr_start *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	m->start = s;
	s->kept = *kept;
	*kept = (struct fr_buf){0};
	s->inherited = inherited;
	atomic_store(&s->does, "begins");
	s->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = s->done_fd < 0 ? -errno : sd_event_add_io(m->event, &s->done, s->done_fd, EPOLLIN, on_done, m);
	if (r >= 0)
		r = sd_event_add_time_relative(m->event, &s->tick, CLOCK_MONOTONIC,
			FR_NSEC_PER_SEC / FR_NSEC_PER_USEC, 0, on_tick, m);
	if (r >= 0)
		r = -pthread_create(&s->thread, NULL, run, m);
	if (r < 0)
		return fr_fail_errno(d, r, NULL, "cannot begin to start");
	s->has_thread = true;
	return 0;
}

/* Of a start that failed. */
static void fail_held(struct fr_start *s)
{
	struct fr_diag d = {0};

	fr_fail(&d, -ESHUTDOWN, s->diag.hint, "flightrecd did not start%s%s", s->diag.code ? ": " : "",
		s->diag.what);
	for (size_t i = 0; i < s->n_held; i++) {
		fr_call_fail(s->held[i].call, &d, d.code);
		cJSON_Delete(s->held[i].parameters);
	}
	s->n_held = 0;
}

void fr_start_end(struct fr_daemon *m)
{
	struct fr_start *s = m->start;

	if (!s)
		return;
	if (s->has_thread)
		pthread_join(s->thread, NULL);
	fail_held(s);
	sd_event_source_disable_unref(s->done);
	sd_event_source_disable_unref(s->tick);
	fr_closep(&s->done_fd);
	fr_buf_deinit(&s->kept);
	free(s);
	m->start = NULL;
}

/* There is nothing yet that a dump could have; or what there is stays with the service manager, for the next
   instance. Neither has to wait for what the thread waits for. */
static _Noreturn void end_now(struct fr_daemon *m)
{
	fr_log_struct(LOG_INFO, FR_MSG_STOPPED, NULL, 0, "stopped before it recorded");
	sd_notify(0, "STOPPING=1");
	fr_server_free(m->server);
	_exit(FR_EXIT_OK);
}

static void stop_wanted(struct fr_daemon *m)
{
	if (!m->start->inherited || !fr_daemon_service_ends())
		end_now(m);
	m->start->term = true;
	sd_notify(0, "STATUS=stops when it has the history of the instance before, for its last dump");
}

bool fr_start_signalled(struct fr_daemon *m, const struct signalfd_siginfo *si)
{
	struct fr_start *s = m->start;

	if (!s)
		return false;
	switch (si->ssi_signo) {
	case SIGUSR1:
		s->usr1 = true;
		s->usr1_info = *si;
		break;
	case SIGUSR2:
		s->usr2 = true;
		break;
	case SIGHUP:
		s->hangup = true;
		s->hangup_info = *si;
		break;
	default:
		stop_wanted(m);
	}
	return true;
}

static void reply_status(struct fr_daemon *m, struct fr_call *call)
{
	cJSON *reply = cJSON_CreateObject(), *status = cJSON_AddObjectToObject(reply, "status");
	char stamp[FR_STAMP_SIZE];

	cJSON_AddStringToObject(status, "version", FR_VERSION);
	cJSON_AddNumberToObject(status, "pid", getpid());
	cJSON_AddStringToObject(status, "state", "starting");
	cJSON_AddStringToObject(status, "doing", atomic_load(&m->start->does));
	fr_rfc3339_format(m->begun.realtime_ns, stamp);
	cJSON_AddStringToObject(status, "since", stamp);
	cJSON_AddNumberToObject(
		status, "uptime_s", (double)(fr_monotonic_ns() - m->begun.monotonic_ns) / 1e9);
	fr_call_reply(call, reply);
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
	if (!strcmp(method->name, FR_METHOD_STATUS)) {
		reply_status(m, call);
	} else if (!strcmp(method->name, FR_METHOD_STOP) && !merge) {
		fr_call_reply(call, NULL);
		stop_wanted(m);
	} else if (s->n_held < HELD_MAX) {
		s->held[s->n_held++] =
			(struct held){call, method, cJSON_Duplicate(parameters, true), fr_monotonic_ns()};
	} else {
		fr_call_fail(call, NULL, -EBUSY);
	}
	return true;
}
