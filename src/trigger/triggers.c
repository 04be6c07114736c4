// SPDX-License-Identifier: GPL-2.0-or-later
/* Arms and disarms triggers, and returns their state. */
#include "trigger/triggers.h"
#include "base/cleanup.h"
#include "base/nearest.h"
#include "base/clock.h"
#include "base/thread.h"
#include "base/units.h"
#include "base/utf8.h"
#include "source/probes.h"
#include "trigger/triggers_private.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

/* After an anomaly, a BPF program reports nothing for this time. With this pause, a storm of a million
   anomalies in a minute takes 1 % of a CPU; without the pause, it takes 17 %. */
#define BPF_QUIET_NS (10 * FR_NSEC_PER_MSEC)

/* EARLIER has the statistics of an earlier source of the trigger. Adds its counters to STATS. If STATS has no
   last value, copies the last value of EARLIER. */
static void add_stats(const struct fr_source_stats *earlier, struct fr_source_stats *stats)
{
	if (!stats->last_ns) {
		stats->last = earlier->last;
		stats->last_ns = earlier->last_ns;
	}
	stats->fired += earlier->fired;
	stats->cooled += earlier->cooled;
	stats->lost += earlier->lost;
	stats->bad += earlier->bad;
}

/* Closes SOURCE (NULL is allowed), and adds its counters to G->closed_stats. */
static void close_source(struct fr_trigger *g, struct fr_source *source)
{
	struct fr_source_stats stats;

	if (!source)
		return;
	fr_source_get_stats(source, &stats);
	fr_source_close(source);
	add_stats(&g->closed_stats, &stats);
	stats.gone = NULL;
	g->closed_stats = stats;
}

void fr_trigger_disarm(struct fr_trigger *g)
{
	if (g->job)
		fr_arming_cancel(TAKE_PTR(g->job));
	close_source(g, TAKE_PTR(g->older));
	close_source(g, TAKE_PTR(g->source));
}

struct fr_trigger *fr_trigger_free(struct fr_trigger *g)
{
	fr_trigger_disarm(g);
	fr_trigger_config_deinit(&g->config);
	free(g);
	return NULL;
}

struct fr_triggers *fr_triggers_free(struct fr_triggers *t)
{
	if (!t)
		return NULL;
	for (int i = 0; i < FR_ARMING_LANES; i++)
		sd_event_source_disable_unref(t->armed_io[i]);
	for (size_t i = 0; i < t->n; i++)
		fr_trigger_free(t->list[i]);
	free(t->list);
	free(t->socket);
	free(t);
	return NULL;
}

struct fr_trigger *fr_trigger_find(const struct fr_triggers *t, const char *name)
{
	for (size_t i = 0; i < t->n; i++)
		if (!strcmp(t->list[i]->config.name, name))
			return t->list[i];
	return NULL;
}

static const char *name_of(const void *triggers, size_t i)
{
	const struct fr_triggers *t = triggers;

	return t->list[i]->config.name;
}

struct fr_trigger *fr_trigger_find_named(const struct fr_triggers *t, const char *name, struct fr_diag *d)
{
	struct fr_trigger *g = fr_trigger_find(t, name);
	const char *near = g ? NULL : fr_nearest_name(name, name_of, t, t->n);
	char hint[128] = "`flightrecctl triggers` lists all triggers";

	if (near)
		snprintf(hint, sizeof(hint), "did you mean %s? `flightrecctl triggers` lists all triggers",
			near);
	if (!g)
		fr_fail(d, -ENOENT, hint, "there is no trigger %s", name);
	return g;
}

/* Reports the end of an attempt to arm G. If R >= 0, G is armed. If R < 0, G is not armed, and D has the
   reason. */
static void report_attempt(struct fr_triggers *t, struct fr_trigger *g, int r, struct fr_diag *d)
{
	if (r >= 0) {
		g->diag = (struct fr_diag){0};
		if (g->failed_before)
			t->ops.armed(t->ops.ctx, g->config.name, NULL);
		return;
	}
	if (!d->code)
		fr_fail_errno(d, r, NULL, "cannot arm the trigger %s", g->config.name);
	if (g->config.origin)
		fr_diag_prefix(d, "%s", g->config.origin);
	fr_utf8_sanitize(d->what); /* the message can contain names from a hostile file */
	fr_utf8_sanitize(d->hint);
	if (!(g->arm_flags & FR_ARM_AGAIN) || strcmp(g->diag.what, d->what) != 0)
		t->ops.armed(t->ops.ctx, g->config.name, d);
	g->diag = *d;
}

/* Finishes an attempt to arm G. SOURCE is the new source. If the new source could not be opened, SOURCE is
   NULL, and R and D have the error. Returns R, or the error of G->class->listen(). */
static int finish_arming(
	struct fr_triggers *t, struct fr_trigger *g, struct fr_source *source, int r, struct fr_diag *d)
{
	const bool beside = g->arm_flags & FR_ARM_BESIDE;
	struct fr_source *previous = TAKE_PTR(g->source);

	if (source) {
		source->env = &t->env;
		source->config = &g->config;
		source->trigger = g;
	}
	if (source && g->class->listen)
		r = g->class->listen(source, d);
	if (source && r < 0)
		source = fr_source_close(source);
	g->source = source ? source : beside ? previous : NULL;
	if (!beside || source)
		close_source(g, TAKE_PTR(g->older));
	if (!beside)
		close_source(g, previous);
	else if (source)
		g->older = previous;
	report_attempt(t, g, r, d);
	if (g->arm_flags & FR_ARM_AGAIN)
		fr_trigger_report_rearmed(t, g, r);
	return r;
}

static int on_jobs_done(sd_event_source *io, int fd, uint32_t revents, void *ctx)
{
	struct fr_triggers *t = ctx;
	struct fr_arming_job *job;

	for (int i = 0; i < FR_ARMING_LANES; i++)
		while (t->ops.arming[i] && (job = fr_arming_take(t->ops.arming[i]))) {
			struct fr_trigger *g = job->trigger;

			g->job = NULL;
			(void)finish_arming(t, g, TAKE_PTR(job->source), job->code, &job->diag);
			fr_arming_job_free(job);
		}
	if (t->ops.settled)
		t->ops.settled(t->ops.ctx);
	return 0;
}

int fr_trigger_arm(struct fr_triggers *t, struct fr_trigger *g, unsigned flags)
{
	struct fr_arming *arming =
		t->ops.arming[g->config.kind == FR_TRIGGER_PROBE ? FR_ARMING_OWN : FR_ARMING_FILES];
	struct fr_source *source = NULL;
	struct fr_diag d = {0};
	int r;

	if (g->job)
		return 1;
	if (g->class && !g->class->listen && (flags & FR_ARM_INSTEAD))
		fr_trigger_disarm(g);
	g->failed_before = g->diag.code;
	if (!(flags & FR_ARM_AGAIN))
		g->diag = (struct fr_diag){0};
	if (!g->class || (g->source && !(flags & (FR_ARM_BESIDE | FR_ARM_INSTEAD))))
		return 0;
	g->arm_flags = flags;
	fr_trigger_note_attempt(g);
	if (g->class->listen && arming) {
		g->job = fr_arming_submit(arming, g->class, &t->env, &g->config, g);
		if (g->job)
			return 1;
		r = -ENOMEM;
	} else {
		r = fr_source_open(g->class, &t->env, &g->config, g, &source, &d);
	}
	return finish_arming(t, g, source, r, &d);
}

static int find_switch(void *ctx, const char *name, uint32_t *ret_slot, struct fr_diag *d)
{
	const struct fr_triggers *t = ctx;

	return t->ops.find_switch(t->ops.ctx, name, ret_slot, d);
}

static void report_switch(void *ctx, void *trigger, const struct fr_switch_record *record)
{
	const struct fr_triggers *t = ctx;
	const struct fr_trigger *g = trigger;

	t->ops.switched(t->ops.ctx, g->config.name, record);
}

int fr_triggers_new(
	const struct fr_source_env *env, const struct fr_triggers_ops *ops, struct fr_triggers **ret)
{
	struct fr_triggers *t = calloc(1, sizeof(*t));
	int r = 0;

	if (t)
		t->socket = strdup("");
	if (!t || !t->socket) {
		free(t);
		return -ENOMEM;
	}
	t->env = *env;
	t->env.fire = fr_trigger_fire;
	t->env.find_switch = ops->find_switch ? find_switch : NULL;
	t->env.switched = ops->switched ? report_switch : NULL;
	t->env.ctx = t;
	t->env.application_socket = t->socket;
	t->env.bpf_quiet_ns = BPF_QUIET_NS;
	t->ops = *ops;
	t->next_id = 1;
	fr_policy_init(&t->policy, 0, 0, fr_monotonic_ns());
	*ret = t;
	for (int i = 0; r >= 0 && i < FR_ARMING_LANES; i++)
		if (t->ops.arming[i])
			r = sd_event_add_io(t->env.event, &t->armed_io[i],
				fr_arming_done_fd(t->ops.arming[i]), EPOLLIN, on_jobs_done, t);
	if (r < 0)
		*ret = fr_triggers_free(t);
	return r < 0 ? r : 0;
}

void fr_trigger_describe(struct fr_trigger *g)
{
	char every[FR_UNIT_SIZE];

	g->subject[0] = '\0';
	if (g->config.kind == FR_TRIGGER_TIMER)
		snprintf(g->subject, sizeof(g->subject), "every %s",
			fr_duration_format(g->config.every_ns, every));
}

int fr_triggers_enable(struct fr_triggers *t, const char *name, bool enable, struct fr_diag *d)
{
	struct fr_trigger *g = fr_trigger_find_named(t, name, d);
	int r;

	fr_thread_assert(FR_THREAD_MAIN);
	if (!g)
		return -ENOENT;
	g->policy.enabled = enable;
	if (!enable) {
		fr_trigger_disarm(g);
		g->diag = (struct fr_diag){0};
		return 0;
	}
	r = fr_trigger_arm(t, g, 0);
	if (r < 0 && d)
		*d = g->diag;
	return r;
}

void fr_triggers_rearm_events(struct fr_triggers *t)
{
	for (size_t i = 0; i < t->n; i++) {
		struct fr_trigger *g = t->list[i];

		if (!g->source || g->config.kind != FR_TRIGGER_EVENT || g->config.pid)
			continue;
		(void)fr_trigger_arm(t, g, FR_ARM_INSTEAD); /* ops.armed() reports an error */
	}
}

size_t fr_triggers_count(const struct fr_triggers *t)
{
	return t->n;
}

/* For a probe that is not armed: sets the unit and the threshold that it will have when it is armed. */
static void fill_probe_stats(const struct fr_trigger_config *c, struct fr_source_stats *s)
{
	const struct fr_probe *probe =
		c->kind == FR_TRIGGER_PROBE && c->subject ? fr_probe_find(c->subject) : NULL;
	const char *threshold = c->threshold ? c->threshold : probe ? probe->threshold : NULL;

	if (!probe)
		return;
	s->unit = probe->unit;
	if (threshold)
		(void)fr_threshold_parse(threshold, probe->unit, &s->threshold);
}

static void sum_stats(const struct fr_trigger *g, struct fr_source_stats *ret)
{
	struct fr_source_stats now, older;

	*ret = g->closed_stats;
	if (!g->class || !g->source) {
		fill_probe_stats(&g->config, ret);
		return;
	}
	fr_source_get_stats(g->source, &now);
	if (g->older) {
		fr_source_get_stats(g->older, &older);
		add_stats(&older, &now);
	}
	add_stats(&g->closed_stats, &now);
	*ret = now;
}

static enum fr_trigger_state get_state(const struct fr_trigger *g)
{
	if (!g->policy.enabled)
		return FR_TRIGGER_DISABLED;
	if (g->diag.code)
		return FR_TRIGGER_FAILED;
	/* If G has a source, FR_ARM_AGAIN | FR_ARM_INSTEAD means that the control group of G has been
	   replaced (rearm() in follow.c). The source is for the old control group, which has gone, so G
	   is not armed. */
	if (g->job && (!g->source || g->arm_flags == (FR_ARM_AGAIN | FR_ARM_INSTEAD)))
		return FR_TRIGGER_ARMING;
	return FR_TRIGGER_ARMED;
}

size_t fr_triggers_count_arming(const struct fr_triggers *t)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		n += get_state(t->list[i]) == FR_TRIGGER_ARMING;
	return n;
}

void fr_triggers_get_info(struct fr_triggers *t, size_t i, struct fr_trigger_info *ret)
{
	const struct fr_trigger *g = t->list[i];

	*ret = (struct fr_trigger_info){
		.name = g->config.name,
		.source = g->class ? g->class->name : g->config.name,
		.subject = g->subject[0] ? g->subject : g->config.subject,
		.state = get_state(g),
		.diag = &g->diag,
		.last_fired_ns = g->last_fired_ns,
		.last_file = g->last_file,
		.quiet_until_ns = g->policy.quiet_until_ns,
		.config = &g->config,
	};
	if (ret->state == FR_TRIGGER_ARMING) {
		ret->arming_ns = fr_monotonic_ns() - g->tried_ns;
		(void)fr_arming_is_waiting(g->job, ret->behind);
	}
	memcpy(ret->counts, g->policy.counts, sizeof(ret->counts));
	sum_stats(g, &ret->stats);
}

struct fr_policy fr_triggers_get_policy(const struct fr_triggers *t)
{
	return t->policy;
}
