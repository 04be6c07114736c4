// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecd/watchdog.h"

#include <systemd/sd-daemon.h>

/* How many times the watchdog is fed in each period of WatchdogSec=. This is more than once, because a busy
   machine can delay a feeding. */
#define FEEDS 4
#define SLACK_NS (2 * FR_NSEC_PER_SEC)

/* Returns whether the recorder thread works. The other threads do not matter: a thread that waits for a disk
   that hangs is not a reason to kill the recorder, because the dump waits in memory. */
static bool is_draining(const struct fr_daemon *m)
{
	return fr_monotonic_ns() - fr_recorder_last_round_ns(m->recorder) <
	       2 * FR_RECORDER_PERIOD_NS + SLACK_NS;
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
	sd_event_source_set_time_relative(source, m->watchdog_usec / FEEDS);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

int fr_daemon_add_watchdog(struct fr_daemon *m)
{
	if (sd_watchdog_enabled(0, &m->watchdog_usec) <= 0)
		return 0;
	return sd_event_add_time_relative(m->event, NULL, CLOCK_MONOTONIC, m->watchdog_usec / FEEDS,
		m->watchdog_usec / (4 * FEEDS), on_watchdog, m);
}
