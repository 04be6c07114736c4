// SPDX-License-Identifier: GPL-2.0-or-later
#include "flightrecd/cgroup.h"
#include "base/log.h"
#include "flightrecd/daemon.h"

void fr_cgroup_tick(struct fr_daemon *m)
{
	const char *path = m->config->cgroup;
	struct fr_diag d = {0};
	int r;

	if (!path || !fr_capture_has_other_cgroup(m->capture, path))
		return;
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
