// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rearms triggers whose target (control group or file) has changed. A restarted service has a new control
 * group at the same path, and an upgraded service runs another file. A source for the old target sees nothing
 * from then on, and reports no error. It is also possible that a target is missing when the recorder starts,
 * and appears later.
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "source/cgroup.h"
#include "trigger/triggers_private.h"

#include <errno.h>

/* The pause between two attempts to arm a trigger. The pause limits the work if a service crashes in a loop,
   or if a function does not exist. */
#define PAUSE_MIN_NS (10 * FR_NSEC_PER_SEC)
#define PAUSE_MAX_NS (60 * FR_NSEC_PER_SEC)

static uint64_t get_cgroup_id(const struct fr_trigger *g)
{
	uint64_t id = 0;

	return g->config.cgroup && fr_cgroup_id(g->config.cgroup, &id) == 0 ? id : 0;
}

void fr_trigger_note_attempt(struct fr_trigger *g)
{
	g->cgroup_id = get_cgroup_id(g);
	g->tried_ns = fr_monotonic_ns();
}

/* Returns whether there is now another control group at the path of CGroup=. Returns false if there is no
   control group at the path, so that the source stays armed. */
static bool has_other_cgroup(const struct fr_trigger *g)
{
	const uint64_t now = get_cgroup_id(g);

	return now && now != g->cgroup_id;
}

bool fr_trigger_is_stale(const struct fr_trigger *g)
{
	return g->source && (has_other_cgroup(g) || (g->class->is_stale && g->class->is_stale(g->source)));
}

static bool probes_a_file(const struct fr_trigger *g)
{
	return g->config.kind == FR_TRIGGER_FUNCTION || g->config.kind == FR_TRIGGER_USDT;
}

/* Returns whether G must be armed again now, because its target has changed. Returns false if the file of
   Program= has changed, because only a reload opens this file again. Returns false for Pressure=, because its
   source opens the file of a new cgroup itself. */
static bool needs_rearming(const struct fr_trigger *g)
{
	if (g->config.kind == FR_TRIGGER_PRESSURE)
		return false;
	return probes_a_file(g) ? fr_trigger_is_stale(g) : has_other_cgroup(g);
}

/* G is a trigger that could not be armed. Returns whether it is possible that its target exists now. */
static bool may_succeed_now(const struct fr_trigger *g)
{
	switch (g->diag.code) {
	case -ENOENT:  /* the file, or the function in it, did not exist */
	case -ENOEXEC: /* the file may be incomplete */
	case -EBADMSG:
		return probes_a_file(g) || has_other_cgroup(g);
	case -ESRCH: /* CGroup= had no process. If the process of Pid= has ended, do not try again. */
		return (probes_a_file(g) && !g->config.pid) || has_other_cgroup(g);
	case -ENODEV: /* a CPU went offline during the attempt */
		return g->config.kind == FR_TRIGGER_EVENT;
	default:
		return has_other_cgroup(g);
	}
}

void fr_trigger_report_rearmed(struct fr_triggers *t, struct fr_trigger *g, int r)
{
	g->pause_ns =
		r < 0 || (g->is_frequent && !g->failed_before) ? FR_MIN(2 * g->pause_ns, PAUSE_MAX_NS) : 0;
	if (r >= 0 && !g->failed_before) /* triggers.c reports a success after a failure */
		t->ops.armed(t->ops.ctx, g->config.name, NULL);
}

/* Arms G again. If G's file was replaced by an upgrade, the source for the old file stays armed beside the
   new one, for processes that still run the old file. A trigger has at most one older source. */
static void rearm(struct fr_triggers *t, struct fr_trigger *g, uint64_t now_ns)
{
	const bool beside = g->source && probes_a_file(g) && !has_other_cgroup(g);

	g->is_frequent = now_ns - g->tried_ns < 2 * g->pause_ns;
	(void)fr_trigger_arm(t, g, FR_ARM_AGAIN | (beside ? FR_ARM_BESIDE : FR_ARM_INSTEAD));
}

void fr_triggers_rearm_stale(struct fr_triggers *t)
{
	const uint64_t now_ns = fr_monotonic_ns();

	for (size_t i = 0; i < t->n; i++) {
		struct fr_trigger *g = t->list[i];

		g->pause_ns = FR_MAX(g->pause_ns, PAUSE_MIN_NS);
		if (!g->class || !g->policy.enabled || g->job || now_ns < g->tried_ns + g->pause_ns)
			continue;
		if (g->source ? needs_rearming(g) : may_succeed_now(g))
			rearm(t, g, now_ns);
	}
}
