// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecd/stop.h"
#include "base/log.h"
#include "base/service.h"
#include "flightrecd/dumps.h"
#include "flightrecd/triggers.h"

#include <stdio.h>
#include <stdlib.h>

#include <systemd/sd-daemon.h>

/* Makes the last dump, because a person can have stopped the recorder in order to look at the history. */
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

/* At the end of the service the ring is lost, so a last dump is needed. At a restart, the next instance
   adopts the ring. If systemd does not say whether the service ends or restarts, this function assumes the
   end: an unnecessary dump does less harm than a lost ring. */
bool fr_daemon_service_ends(void)
{
	enum fr_service_job job;

	if (!getenv("NOTIFY_SOCKET") || !getenv("INVOCATION_ID"))
		return false;
	return fr_service_get_job(&job) < 0 || job != FR_SERVICE_RESTART;
}

void fr_daemon_stop(struct fr_daemon *m, enum fr_stop how)
{
	if (m->stop != FR_STOP_NO)
		return;
	sd_notify(0, "STOPPING=1");
	if (how == FR_STOP_CLEAN && fr_daemon_service_ends())
		how = FR_STOP_DUMP;
	m->stop = how;
	fr_daemon_triggers_close(m); /* so that no trigger makes a dump after the last dump */
	if (how == FR_STOP_MERGE)
		submit_final_dump(m, "stop and merge");
	else if (how == FR_STOP_DUMP)
		submit_final_dump(m, "end of the service");
	else
		sd_event_exit(m->event, 0);
}
