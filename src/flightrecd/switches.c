// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecd/switches.h"
#include "base/cleanup.h"

#include <systemd/sd-event.h>

static void set_timer(struct fr_daemon *m);

static int on_time(sd_event_source *source, uint64_t usec, void *ctx)
{
	set_timer(ctx);
	return 0;
}

/* Ends the switches whose time is over, and sets the timer to the next end. */
static void set_timer(struct fr_daemon *m)
{
	const uint64_t next_ns = fr_switching_expire(&m->switching, m->recording.capture);
	const uint64_t usec = next_ns / FR_NSEC_PER_USEC + 1;

	if (!next_ns) {
		fr_daemon_switches_close(m);
		return;
	}
	if (!m->switch_timer &&
		sd_event_add_time(m->event, &m->switch_timer, CLOCK_MONOTONIC, usec, 1, on_time, m) < 0)
		return; /* the next tick tries again */
	(void)sd_event_source_set_time(m->switch_timer, usec);
	(void)sd_event_source_set_enabled(m->switch_timer, SD_EVENT_ONESHOT);
}

int fr_daemon_switch_event(
	struct fr_daemon *m, const struct fr_switch_request *q, cJSON *changed, struct fr_diag *d)
{
	const int r = fr_switching_ask(&m->switching, m->recording.capture, q, changed, d);

	set_timer(m);
	return r;
}

void fr_daemon_saw_switch(struct fr_daemon *m, const struct fr_switch_record *record, const char *trigger)
{
	fr_switching_saw(&m->switching, m->recording.capture, record, trigger);
	set_timer(m);
}

void fr_daemon_switches_tick(struct fr_daemon *m)
{
	m->switching.limit_ns = m->config->switch_limit_ns;
	fr_switching_tick(&m->switching, m->recording.capture);
	set_timer(m);
}

void fr_daemon_switches_close(struct fr_daemon *m)
{
	m->switch_timer = sd_event_source_disable_unref(m->switch_timer);
}
