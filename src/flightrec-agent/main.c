// SPDX-License-Identifier: GPL-2.0-or-later
/* The program flightrec-agent: the folder agent/ does the work on its threads. The main thread answers
   signals, feeds the watchdog, and serves the metrics. */
#include "agent/agent.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "base/units.h"
#include "config/config.h"
#include "flightrec-agent/command.h"
#include "flightrec-agent/metrics.h"
#include "metrics/http.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>

#define TICK_USEC 1000000ULL
#define NOT_ENABLED 1 /* run_once() */
#define RELOAD 2

struct program {
	struct agent_command command;
	struct fr_config *config;
	struct fr_agent *agent;
	sd_event *event;
	uint64_t watchdog_usec; /* 0: none */
	uint64_t fed_ns;
	char status[256];
};

static void block_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static int on_stop(sd_event_source *source, const struct signalfd_siginfo *info, void *ctx)
{
	struct program *p = ctx;

	return sd_event_exit(p->event, 0);
}

static int on_reload(sd_event_source *source, const struct signalfd_siginfo *info, void *ctx)
{
	struct program *p = ctx;

	return sd_event_exit(p->event, RELOAD);
}

/* Tells the service manager in a line what the agent does. */
static void tell_status(struct program *p)
{
	char status[sizeof(p->status)], bytes[FR_UNIT_SIZE];
	struct fr_agent_stats s;

	fr_agent_stats(p->agent, &s);
	if (!s.is_up)
		snprintf(status, sizeof(status), "%s: no broker: %.160s", s.name,
			s.why_down[0] ? s.why_down : "connecting");
	else if (s.recorder[0])
		snprintf(status, sizeof(status), "%s: no recorder: %.160s", s.name, s.recorder);
	else if (s.store[0])
		snprintf(status, sizeof(status), "%s: %llu uploads wait: %.160s", s.name,
			(unsigned long long)s.uploads, s.store);
	else
		snprintf(status, sizeof(status), "%s: connected; %llu uploads wait, %s", s.name,
			(unsigned long long)s.uploads, fr_size_format(s.uploads_bytes, bytes));
	if (!strcmp(status, p->status))
		return;
	strcpy(p->status, status);
	sd_notifyf(0, "STATUS=%s", status);
}

static int on_tick(sd_event_source *source, uint64_t usec, void *ctx)
{
	struct program *p = ctx;
	const uint64_t now_ns = fr_monotonic_ns();

	tell_status(p);
	if (p->watchdog_usec && now_ns - p->fed_ns >= p->watchdog_usec * FR_NSEC_PER_USEC / 4 &&
		fr_agent_is_alive(p->agent)) {
		sd_notify(0, "WATCHDOG=1");
		p->fed_ns = now_ns;
	}
	sd_event_source_set_time_relative(source, TICK_USEC);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int add_sources(struct program *p)
{
	int r = sd_event_add_signal(p->event, NULL, SIGTERM, on_stop, p);

	if (r >= 0)
		r = sd_event_add_signal(p->event, NULL, SIGINT, on_stop, p);
	if (r >= 0)
		r = sd_event_add_signal(p->event, NULL, SIGHUP, on_reload, p);
	if (r >= 0)
		r = sd_event_add_time_relative(
			p->event, NULL, CLOCK_MONOTONIC, TICK_USEC, TICK_USEC / 10, on_tick, p);
	return r < 0 ? r : 0;
}

/* Runs the loop until a signal. Returns 0, RELOAD or a negative errno. */
static int loop(struct program *p, struct fr_diag *d)
{
	struct fr_http *http = NULL;
	int r = sd_event_new(&p->event);

	if (r >= 0)
		r = add_sources(p);
	if (r >= 0 && *p->config->fleet.metrics_listen)
		r = fr_http_open(
			p->event, p->config->fleet.metrics_listen, NULL, agent_metrics, p->agent, &http);
	if (r >= 0) {
		sd_notify(0, "READY=1");
		tell_status(p);
		/* From here on, this thread must not wait for a disk. */
		fr_thread_begin(FR_THREAD_MAIN);
		r = sd_event_loop(p->event);
		fr_thread_begin(FR_THREAD_UNNAMED);
	}
	if (r < 0)
		fr_fail_errno(d, r, NULL, "the main loop failed");
	fr_http_close(http);
	p->event = sd_event_unref(p->event);
	return r;
}

/* Runs the agent with the configuration of now. Returns 0, NOT_ENABLED, RELOAD or a negative errno. */
static int run_agent(struct program *p, struct fr_diag *d)
{
	const struct fr_agent_config config = {.fleet = &p->config->fleet,
		.socket = p->command.socket ? p->command.socket : p->config->socket,
		.state = p->command.state};
	int r;

	if (!p->config->fleet.enabled) {
		fr_log(LOG_NOTICE, "this machine is no member of a fleet: set Enabled=yes in [Fleet] of "
				   "flightrecd.conf(5)");
		return NOT_ENABLED;
	}
	r = fr_agent_new(&config, &p->agent, d);
	if (r < 0)
		return r;
	r = loop(p, d);
	sd_notify(0, r == RELOAD ? "STATUS=reads the configuration again" : "STOPPING=1");
	p->agent = fr_agent_free(p->agent, r == 0);
	return r;
}

static int run_once(struct program *p, struct fr_diag *d)
{
	struct fr_config config;
	int r;

	fr_config_init(&config);
	r = fr_config_load(&config, p->command.config, d);
	p->config = &config;
	p->status[0] = '\0';
	if (r == 0)
		r = run_agent(p, d);
	p->config = NULL;
	fr_config_deinit(&config);
	return r;
}

int main(int argc, char *argv[])
{
	struct program p = {0};
	struct fr_diag d = {0};
	int r;

	fr_log_set_program(AGENT_PROGRAM);
	r = agent_command_parse(&p.command, argc, argv, &d);
	if (r < 0) {
		fr_diag_print(AGENT_PROGRAM, &d, r);
		return FR_EXIT_USAGE;
	}
	if (r > 0)
		return FR_EXIT_OK;
	block_signals();
	if (sd_watchdog_enabled(0, &p.watchdog_usec) <= 0)
		p.watchdog_usec = 0;
	do
		r = run_once(&p, &d);
	while (r == RELOAD);
	if (r == NOT_ENABLED)
		sd_notify(0, "READY=1\nSTATUS=not enabled");
	if (r < 0)
		fr_log_diag(LOG_ERR, &d, r);
	return r < 0 ? fr_exit_code(r) : FR_EXIT_OK;
}
