// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Services come and go while a recorder runs for weeks. One that is started anew has a control group of the
 * same path and of another id, one that was upgraded runs from another file: what was armed for the one
 * before hears nothing, and says nothing either. And what a trigger is about may come only after the
 * recorder.
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "source/cgroup.h"
#include "trigger/triggers_private.h"

#include <errno.h>

/* A service that crashes in a loop must not have us load programs in a loop, nor a function that is not there
   have us read all symbols. */
#define PAUSE_MIN_NS (10 * FR_NSEC_PER_SEC)
#define PAUSE_MAX_NS (60 * FR_NSEC_PER_SEC)

static uint64_t cgroup_now(const struct fr_trigger *g)
{
	uint64_t id = 0;

	return g->config.cgroup && fr_cgroup_id(g->config.cgroup, &id) == 0 ? id : 0;
}

void fr_trigger_tried(struct fr_trigger *g)
{
	g->cgroup_id = cgroup_now(g);
	g->tried_ns = fr_monotonic_ns();
}

/* One that is gone is not: what is armed for it stays. */
static bool has_other_cgroup(const struct fr_trigger *g)
{
	const uint64_t now = cgroup_now(g);

	return now && now != g->cgroup_id;
}

bool fr_trigger_is_stale(const struct fr_trigger *g)
{
	return g->source && (has_other_cgroup(g) || (g->class->is_stale && g->class->is_stale(g->source)));
}

static bool is_of_a_file(const struct fr_trigger *g)
{
	return g->config.kind == FR_TRIGGER_FUNCTION || g->config.kind == FR_TRIGGER_USDT;
}

/* A program of the user is its author's to change, and opened anew by a reload. A pressure looks for itself.
 */
static bool is_left_behind(const struct fr_trigger *g)
{
	if (g->config.kind == FR_TRIGGER_PRESSURE)
		return false;
	return is_of_a_file(g) ? fr_trigger_is_stale(g) : has_other_cgroup(g);
}

/* Of what is not armed: whether what it lacked may have come. */
static bool may_have_come(const struct fr_trigger *g)
{
	switch (g->diag.code) {
	case -ENOENT:  /* the file, or what is in it */
	case -ENOEXEC: /* it is not whole yet */
	case -EBADMSG:
		return is_of_a_file(g) || has_other_cgroup(g);
	case -ESRCH: /* whose root has it; a process that has ended does not come back, but its number does */
		return (is_of_a_file(g) && !g->config.pid) || has_other_cgroup(g);
	case -ENODEV: /* a CPU that went as we looked */
		return g->config.kind == FR_TRIGGER_EVENT;
	default:
		return has_other_cgroup(g);
	}
}

void fr_trigger_followed(struct fr_triggers *t, struct fr_trigger *g, int r)
{
	g->pause_ns = r < 0 || (g->soon && !g->failed_before) ? FR_MIN(2 * g->pause_ns, PAUSE_MAX_NS) : 0;
	if (r >= 0 && !g->failed_before) /* else arm() has told it */
		t->ops.armed(t->ops.ctx, g->config.name, NULL);
}

/* An upgrade is not a restart: who still runs the file of before is heard on. One such file, the newest. */
static void arm_anew(struct fr_triggers *t, struct fr_trigger *g, uint64_t now_ns)
{
	const bool beside = g->source && is_of_a_file(g) && !has_other_cgroup(g);

	g->soon = now_ns - g->tried_ns < 2 * g->pause_ns;
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
		if (g->source ? is_left_behind(g) : may_have_come(g))
			arm_anew(t, g, now_ns);
	}
}
