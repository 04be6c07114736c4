// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecd/cgroup.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "flightrecd/daemon.h"

/* Opening all events anew costs time, and their new ids room in all files of this lap of the ring: a service
   that crashes in a loop must not have us do so in a loop. */
#define PAUSE_MIN_NS (10 * FR_NSEC_PER_SEC)
#define PAUSE_MAX_NS (60 * FR_NSEC_PER_SEC)

static uint64_t next_pause(const struct fr_cgroup *c, uint64_t now_ns)
{
	const bool soon = c->tried_ns && now_ns - c->tried_ns < 2 * c->pause_ns;

	return soon ? FR_MIN(2 * c->pause_ns, PAUSE_MAX_NS) : PAUSE_MIN_NS;
}

void fr_cgroup_tick(struct fr_daemon *m)
{
	const uint64_t now_ns = fr_monotonic_ns();
	const char *path = m->config->cgroup;
	struct fr_diag d = {0};
	int r;

	if (!path || now_ns - m->cgroup.tried_ns < m->cgroup.pause_ns ||
		!fr_capture_has_other_cgroup(m->capture, path))
		return;
	m->cgroup.pause_ns = next_pause(&m->cgroup, now_ns);
	m->cgroup.tried_ns = now_ns;
	r = fr_hotplug_reopen(m, FR_LOSS_CGROUP_CAME, 1, &d);
	if (r >= 0) {
		fr_log(LOG_NOTICE, "the cgroup %s was made anew, and is recorded from now on", path);
	} else if (!m->cgroup.failed) {
		fr_diag_prefix(
			&d, "the cgroup %s was made anew and is not recorded, and it is tried again", path);
		fr_log_diag(LOG_ERR, &d, r);
	}
	m->cgroup.failed = r < 0;
}
